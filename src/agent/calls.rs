//! The calls of a turn: looked at, let through or held, run one after the other, and noted.
//!
//! **Invariant:** what a caller may not use is not run, and what needs somebody's approval is not run before it has it.

use std::sync::Arc;

use tracing::Instrument;

use super::consent;
use super::offer::{Look, Offer};
use super::ports::tools::{Reporter, ToolContext};
use super::run::{Ended, Turns, store_failed};
use super::state::{Open, Times, Transcript};
use crate::chat::approval::Consent;
use crate::chat::event::AgentEvent;
use crate::chat::payload::PayloadSource;
use crate::chat::tool::{Effect, Progress, ToolCall, ToolInput, ToolOutput, ToolResult};
use crate::chat::unfinished::Unfinished;

/// Whether the calls of a turn were let through before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leave {
    /// A person has let them through.
    Given,
    /// Whoever has to is asked.
    Asked,
}

/// What is done with a call.
enum Step {
    /// It is made.
    Make(Effect),
    /// It is not, and the model reads why.
    Answer(ToolOutput),
    /// It waits.
    Hold(Consent),
}

impl Turns<'_> {
    /// Runs the open turn's calls.
    pub(super) async fn run_tools(&self, transcript: &mut Transcript, offer: &mut Offer) -> Result<(), Ended> {
        self.run_calls(transcript, offer, Leave::Asked).await
    }

    /// Runs the open turn's calls one after the other: later calls of a turn may build on earlier ones (drafts do).
    pub(super) async fn run_calls(
        &self,
        transcript: &mut Transcript,
        offer: &mut Offer,
        leave: Leave,
    ) -> Result<(), Ended> {
        let Open::Calling { turn, .. } = &transcript.open else { return Ok(()) };
        let calls: Vec<ToolCall> = turn.message.calls().cloned().collect();
        for call in calls {
            let since_ms = self.now_ms();
            let (id, name) = (call.id.as_str().to_owned(), call.name.clone());
            // Events are kept for a while and carried elsewhere: what no reader shows is not in them.
            let input = if self.details { call.input.clone() } else { ToolInput::Object(serde_json::Map::new()) };
            self.emit(AgentEvent::ToolCallReady { id: id.clone(), name: name.clone(), input });
            let found = offer.find(&call, self.agent.embedder.as_deref()).await;
            let output = match found.map_or_else(|| self.step(&call, offer, leave), Step::Answer) {
                Step::Answer(output) => output,
                Step::Hold(consent) => self.hold(&call, consent, transcript),
                // Whatever comes after a call that waits may build on it.
                Step::Make(_) if !transcript.approvals.is_empty() => consent::comes_after(),
                Step::Make(effect) => {
                    self.note_dispatch(&call, effect, transcript).await?;
                    self.make(&call).await
                }
            };
            let times = Times { since_ms, now_ms: self.now_ms() };
            let ToolOutput { content, artifacts, payload, is_error } = output;
            let told: Arc<str> = Arc::from(if self.details { content.as_str() } else { "" });
            let result = ToolResult { id: call.id.clone(), name: call.name.clone(), content, is_error };
            transcript.speech.call(call.id.clone());
            transcript.note_call(call, &result, times);
            if let Open::Calling { turn, .. } = &mut transcript.open {
                turn.results.push(result);
                turn.dispatched = None;
            }
            self.emit(AgentEvent::ToolCallFinished { id, name, is_error, result: told });
            for artifact in artifacts {
                self.emit(AgentEvent::Artifact(artifact));
            }
            if let Some(payload) = payload {
                self.keep(transcript, payload, PayloadSource::Tool);
            }
        }
        transcript.speech.round_end();
        self.emit(AgentEvent::RoundEnded);
        Ok(())
    }

    /// What is done with `call`.
    fn step(&self, call: &ToolCall, offer: &mut Offer, leave: Leave) -> Step {
        let policy = match (offer.look(&call.name), leave) {
            (Look::Unknown, _) => return Step::Answer(ToolOutput::error(&format!("unknown tool: {}", call.name))),
            (Look::Unseen, Leave::Asked) => {
                offer.add(&call.name);
                let words = format!("{} was not loaded; it is now: read its description and call it again", call.name);
                return Step::Answer(ToolOutput::error(&words));
            }
            (Look::Unseen, Leave::Given) => return self.checked(call),
            (Look::Offered(policy), _) => policy,
        };
        match (self.checked(call), policy.consent, leave) {
            (Step::Make(_), consent @ (Consent::User | Consent::Role(_)), Leave::Asked) => Step::Hold(consent),
            (step, _, _) => step,
        }
    }

    fn checked(&self, call: &ToolCall) -> Step {
        match self.agent.tools.check(call) {
            Ok(effect) => Step::Make(effect),
            Err(output) => Step::Answer(*output),
        }
    }

    /// Keeps a call until somebody has decided.
    fn hold(&self, call: &ToolCall, consent: Consent, transcript: &mut Transcript) -> ToolOutput {
        let ToolInput::Object(arguments) = &call.input else {
            return ToolOutput::error("bad params: the arguments are not a JSON object");
        };
        let life_ms = i64::try_from(self.agent.limits.approval.as_millis()).unwrap_or(i64::MAX);
        let of = (self.cx.run, self.cx.conversation);
        let approval = consent::ask(of, (&call.name, arguments), consent, self.now_ms(), life_ms);
        let output = consent::waits(&approval);
        transcript.approvals.push(approval);
        output
    }

    /// Notes in the store that a write is about to be sent; without the note it is not.
    async fn note_dispatch(&self, call: &ToolCall, effect: Effect, transcript: &mut Transcript) -> Result<(), Ended> {
        let Open::Calling { turn, .. } = &mut transcript.open else { return Ok(()) };
        match effect {
            Effect::Read => return Ok(()),
            Effect::Write => {}
        }
        let noted = Unfinished { dispatched: Some(call.id.clone()), ..turn.clone() };
        self.agent.store.dispatch(self.cx.run, &call.id, &noted).await.map_err(store_failed)?;
        *turn = noted;
        Ok(())
    }

    async fn make(&self, call: &ToolCall) -> ToolOutput {
        let span =
            tracing::info_span!("tool.execute", gen_ai.tool.name = call.name, gen_ai.tool.call.id = call.id.as_str());
        let report = |progress: Progress| {
            let (id, name) = (call.id.as_str().to_owned(), call.name.clone());
            self.emit(AgentEvent::ToolProgress { id, name, progress });
        };
        let cx = ToolContext { progress: Reporter::to(&report), ..self.cx };
        self.agent.tools.execute(call, &cx).instrument(span).await
    }
}
