//! The calls of a turn: looked at, let through or held, run one after the other, and noted.
//!
//! **Invariant:** what a caller may not use is not run, and what needs an approval is not run before it has it.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use serde_json::{Map, Value};
use tracing::Instrument;

use super::capacity::approval_unavailable;
use super::context::{Ended, Helping, Role, Turns, failed, store_failed};
use super::fold::OVERSIZED_KEPT_BYTES;
use super::operations::Begun;
use super::state::{Open, Times, Transcript};
use super::steps::{Leave, Step};
use super::stop::StopReason;
use super::tries::Write;
use crate::agent::offer::Offer;
use crate::agent::offer::client;
use crate::agent::offer::consent;
use crate::agent::ports::approvals::{call_digest, definition_digest};
use crate::agent::ports::clock::ms;
use crate::agent::ports::tools::{Report, Reporter, ToolContext};
use crate::chat::approval::Consent;
use crate::chat::event::AgentEvent;
use crate::chat::failure::FailureCode;
use crate::chat::fate::{CallError, CallFate};
use crate::chat::message::AssistantPart;
use crate::chat::payload::PayloadSource;
use crate::chat::tool::{CallNote, Effect, ToolCall, ToolInput, ToolOutput, ToolResult};
use crate::chat::unfinished::Unfinished;
use crate::observe::spans;

/// The result of a call behind the last one that a run may make.
const AT_LIMIT: &str = "the limit of tool calls is reached; answer with what you have";

/// Whether a call would be made as it was let through.
enum ApprovedMatch {
    /// It would, or it needed no approval.
    AsItIs(Ready),
    /// Its tool is another one by now, or other arguments would be sent.
    Otherwise,
}

/// The input of a call that is made.
struct Ready {
    /// The arguments as they are sent; `None` where the tool completes them itself.
    arguments: Option<Map<String, Value>>,
    effect: Effect,
}

impl Turns<'_> {
    /// Runs the open turn's calls one after the other: later calls of a turn may build on earlier ones (drafts do). Those
    /// behind the first `most` are answered instead.
    pub(super) async fn run_calls(
        &self,
        transcript: &mut Transcript,
        offer: &mut Offer,
        leave: Leave<'_>,
        most: usize,
    ) -> Result<(), Ended> {
        self.read_inputs(transcript, offer);
        let mut calls = self.measured(transcript);
        let too_many = calls.split_off(calls.len().min(most));
        for (call, oversized) in calls {
            let since_ms = self.now_ms();
            let step = match oversized {
                Some(output) => Step::Answer(output),
                None => match offer.find(&call, &self.agent.finder).await {
                    Some(output) => Step::Answer(output),
                    None => self.step(&call, offer, leave),
                },
            };
            let step = self.unless_repeated(&call, step, transcript);
            let step = self.unless_nowhere(&call, step, offer, transcript);
            let begun = self.operation(&call, &step, offer, transcript).await;
            self.emit_ready(&call, &step, begun.as_ref());
            self.begin_operation(begun.as_ref());
            let mut output = match step {
                Step::Leave => {
                    self.leave(call, since_ms, transcript);
                    continue;
                }
                Step::Answer(output) => output,
                Step::Hold(consent) => self.hold(&call, (consent, leave), offer, transcript).await,
                // Whatever comes after a call that waits may build on it.
                Step::Make(_) | Step::Own if transcript.pending.holds() => consent::comes_after(),
                Step::Own => self.run_own(&call, offer, transcript).await?,
                Step::Make(effect) => match self.completed(&call, effect, leave, offer).await {
                    Ok(ApprovedMatch::AsItIs(ready)) => self.make(&call, ready, leave, transcript).await?,
                    // What would be sent now has no approval.
                    Ok(ApprovedMatch::Otherwise) => {
                        self.hold(&call, (asks(offer, &call), leave), offer, transcript).await
                    }
                    Err(output) => *output,
                },
            };
            self.leave_out_too_many(&mut output, transcript).await;
            let (said, fate) = (transcript.read_result(&output), output.fate);
            let seen = self.seen(&call, &output, since_ms);
            self.answered(call, output, since_ms, transcript);
            self.observe_call(seen, offer);
            self.end_operation(begun, said.as_ref(), fate, &transcript.names);
            self.unless_failing(fate, transcript)?;
        }
        self.refuse(too_many, AT_LIMIT, transcript);
        if transcript.pending.holds() {
            // The run ends with what waits for a person, and its client gets no calls besides.
            for (id, name) in transcript.take_back_left(&client::after_approval()) {
                self.emit(AgentEvent::ToolCallFinished {
                    id,
                    name,
                    fate: CallFate::NotRun,
                    error: None,
                    result: Arc::from(""),
                });
            }
        }
        self.end_round(transcript);
        Ok(())
    }

    /// Ends a run whose calls fail one after the other. A call that waits for a person has not failed, nor have those that are not
    /// made since it does.
    fn unless_failing(&self, fate: CallFate, transcript: &mut Transcript) -> Result<(), Ended> {
        if transcript.pending.holds() {
            return Ok(());
        }
        transcript.failures = match fate {
            CallFate::Done | CallFate::AwaitsApproval | CallFate::AwaitsClient => 0,
            CallFate::Failed | CallFate::NotRun | CallFate::Unknown => transcript.failures.saturating_add(1),
        };
        match self.profile.bounds.failures_in_a_row {
            Some(most) if transcript.failures >= most => {
                let words = format!("{most} calls of tools have failed one after the other");
                Err(failed(FailureCode::ToolFailures, &words, false))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Answers the open turn's calls instead of making them.
    pub(super) fn refuse_calls(&self, transcript: &mut Transcript, why: &str) {
        let calls = self.measured(transcript);
        self.refuse(calls, why, transcript);
        self.end_round(transcript);
    }

    /// Answers `calls` instead of making them.
    fn refuse(&self, calls: Vec<(ToolCall, Option<ToolOutput>)>, why: &str, transcript: &mut Transcript) {
        for (call, _) in calls {
            let since_ms = self.now_ms();
            let step = Step::Answer(ToolOutput::not_made(why));
            self.emit_ready(&call, &step, None);
            let Step::Answer(output) = step else { continue };
            self.answered(call, output, since_ms, transcript);
        }
    }

    /// Reads the open turn's calls whose arguments are bare text, where their tools have an argument for that.
    fn read_inputs(&self, transcript: &mut Transcript, offer: &Offer) {
        let Open::Calling { turn, .. } = &mut transcript.open else { return };
        for part in &mut turn.message.parts {
            if let AssistantPart::ToolCall { call, .. } = part
                && let Some(argument) = offer.tool(&call.name).and_then(|tool| tool.bare_text.as_ref())
                && self.oversized(call).is_none()
            {
                call.input.read_bare(argument);
            }
        }
    }

    /// The open turn's calls, each with what the model reads where its arguments are too long. Of those that are no JSON
    /// object only the beginning stays in the turn.
    fn measured(&self, transcript: &mut Transcript) -> Vec<(ToolCall, Option<ToolOutput>)> {
        let Open::Calling { turn, .. } = &mut transcript.open else { return Vec::new() };
        let calls = turn.message.parts.iter_mut().filter_map(|part| match part {
            AssistantPart::ToolCall { call, .. } => Some(call),
            AssistantPart::Text { .. } | AssistantPart::Thinking { .. } | AssistantPart::Opaque(_) => None,
        });
        let measured = calls.map(|call| {
            let oversized = self.oversized(call);
            if let (ToolInput::Invalid(text), Some(_)) = (&mut call.input, &oversized) {
                text.truncate(text.floor_char_boundary(OVERSIZED_KEPT_BYTES));
                text.shrink_to_fit();
            }
            (call.clone(), oversized)
        });
        measured.collect()
    }

    /// The output for the model of a call whose arguments are too long.
    fn oversized(&self, call: &ToolCall) -> Option<ToolOutput> {
        let most = self.agent.limits.tool_arguments_bytes;
        if most == 0 {
            return None;
        }
        let bytes = match &call.input {
            ToolInput::Object(fields) => serde_json::to_vec(fields).map_or(0, |json| json.len()),
            ToolInput::Invalid(text) => text.len(),
        };
        let words = || format!("the arguments have {bytes} bytes, and {most} are allowed; make several smaller calls");
        (bytes > most).then(|| ToolOutput::refused(&words(), CallError::BadArguments))
    }

    fn emit_ready(&self, call: &ToolCall, step: &Step, begun: Option<&Begun>) {
        let (id, name) = (call.id.clone(), call.name.clone());
        // Events are kept for a while and carried elsewhere: what no reader needs is not in them.
        let mut input = match step {
            Step::Leave => call.input.clone(),
            Step::Make(_) | Step::Answer(_) | Step::Hold(_) | Step::Own if self.details => call.input.clone(),
            Step::Make(_) | Step::Answer(_) | Step::Hold(_) | Step::Own => ToolInput::Object(Map::new()),
        };
        if let (true, ToolInput::Object(arguments), Some((argument, shown))) =
            (self.details, &mut input, begun.and_then(Begun::shown))
        {
            arguments.entry(argument).or_insert_with(|| Value::from(shown));
        }
        self.emit(AgentEvent::ToolCallReady { id, name, input: Box::new(input) });
    }

    /// Leaves a call to the client, with a placeholder as its result: the next run may never come.
    fn leave(&self, call: ToolCall, since_ms: i64, transcript: &mut Transcript) {
        let result = ToolResult::from_call(&call, client::left());
        transcript.pending.left.push(call.clone());
        self.note(call, (result, None), since_ms, transcript);
    }

    fn note(
        &self,
        call: ToolCall,
        (result, note): (ToolResult, Option<CallNote>),
        since_ms: i64,
        transcript: &mut Transcript,
    ) {
        let times = Times { since_ms, now_ms: self.now_ms() };
        transcript.speech.call(call.id.clone());
        transcript.note_call(call, &result, note, times);
        if let Open::Calling { turn, .. } = &mut transcript.open {
            turn.results.push(result);
            turn.dispatched = None;
        }
    }

    /// Notes and tells what came of a call.
    fn answered(&self, call: ToolCall, output: ToolOutput, since_ms: i64, transcript: &mut Transcript) {
        let (id, name) = (call.id.clone(), call.name.clone());
        let ToolOutput { content, artifacts, payload, fate, error, moves, note, files } = output;
        let visible: Arc<str> = Arc::from(if self.details { content.as_str() } else { "" });
        let result = ToolResult { id: id.clone(), name: name.clone(), content, fate, files };
        self.note(call, (result, note), since_ms, transcript);
        self.emit(AgentEvent::ToolCallFinished { id: id.clone(), name, fate, error, result: visible });
        for artifact in artifacts {
            transcript.keep_artifact(&id, &artifact);
            self.emit(AgentEvent::Artifact(Box::new(artifact)));
        }
        if let Some(payload) = payload {
            self.keep(transcript, payload, PayloadSource::Tool);
            transcript.note_payload_of(&id);
        }
        if let Some(moved) = moves {
            transcript.moves.note(moved);
        }
    }

    fn end_round(&self, transcript: &mut Transcript) {
        transcript.speech.round_end();
        self.emit(AgentEvent::RoundEnded);
    }

    /// Keeps a call until it is decided.
    async fn hold(
        &self,
        call: &ToolCall,
        (consent, leave): (Consent, Leave<'_>),
        offer: &Offer,
        transcript: &mut Transcript,
    ) -> ToolOutput {
        let ToolInput::Object(input) = &call.input else {
            return ToolOutput::error("bad params: the arguments are not a JSON object");
        };
        let arguments = match self.agent.tools.complete(call, &self.cx).await {
            Ok(arguments) => arguments,
            Err(output) => return *output,
        };
        let now_ms = match self.agent.approvals.time().await {
            Ok(now_ms) => now_ms,
            Err(error) => return approval_unavailable(&error),
        };
        if let Err(output) = self.check_approvals(transcript).await {
            return *output;
        }
        let life_ms = ms(self.agent.limits.approval);
        let of = (self.cx.run, self.cx.conversation);
        let origin = match self.role {
            Role::Answers => None,
            Role::Helps(Helping { origin, .. }) => origin,
        };
        let wanted = consent::Wanted { call, origin, input, arguments, definition: self.definition(offer, call) };
        let approval = consent::ask(of, wanted, consent, now_ms, life_ms);
        let (id, name) = (call.id.clone(), call.name.clone());
        self.emit(AgentEvent::ToolCallHeld { id, name, approval: approval.id });
        let output = consent::waits(&approval, matches!(leave, Leave::Given(_)));
        transcript.pending.approvals.push(approval);
        transcript.pending.held.push(call.id.clone());
        output
    }

    /// Notes in the store that a write is about to be sent; without the note it is not.
    async fn note_dispatch(&self, call: &ToolCall, transcript: &mut Transcript) -> Result<(), Ended> {
        let Open::Calling { turn, .. } = &mut transcript.open else { return Ok(()) };
        let own;
        let noted = match self.role {
            Role::Answers => {
                own = Unfinished { dispatched: Some(call.id.clone()), ..turn.clone() };
                &own
            }
            Role::Helps(Helping { noted, .. }) => noted,
        };
        self.agent.store.dispatch(self.cx.run, call, noted).await.map_err(store_failed)?;
        turn.dispatched = Some(call.id.clone());
        Ok(())
    }

    /// Completes a call. The arguments of a write are fixed before it is sent; a call that was let through is made as
    /// its user saw it, or not at all.
    async fn completed(
        &self,
        call: &ToolCall,
        effect: Effect,
        leave: Leave<'_>,
        offer: &Offer,
    ) -> Result<ApprovedMatch, Box<ToolOutput>> {
        let complete = async || self.agent.tools.complete(call, &self.cx_of(leave)).await;
        let arguments = match (leave, effect) {
            (Leave::Needed, Effect::Read) => None,
            (Leave::Needed, Effect::Write) => Some(complete().await?),
            (Leave::Given(approved), Effect::Read | Effect::Write) => {
                let arguments = complete().await?;
                if call_digest(&call.name, &self.definition(offer, call), &arguments) != approved.digest {
                    return Ok(ApprovedMatch::Otherwise);
                }
                Some(arguments)
            }
        };
        Ok(ApprovedMatch::AsItIs(Ready { arguments, effect }))
    }

    /// The digest of a call's tool as it is now.
    fn definition(&self, offer: &Offer, call: &ToolCall) -> String {
        let def = offer.tool(&call.name).map(|tool| &*tool.def);
        definition_digest(def, &self.agent.tools.source(&call.name))
    }

    /// The context of a call: one that was let through runs on the screen of the run that requested it.
    fn cx_of<'a>(&'a self, leave: Leave<'a>) -> ToolContext<'a> {
        match leave {
            Leave::Given(approved) => ToolContext { context: approved.context.as_ref(), ..self.cx },
            Leave::Needed => self.cx,
        }
    }

    /// Makes a call. A write is noted before, and what came of it behind.
    async fn make(
        &self,
        call: &ToolCall,
        Ready { arguments, effect }: Ready,
        leave: Leave<'_>,
        transcript: &mut Transcript,
    ) -> Result<ToolOutput, Ended> {
        let write = match (effect, &arguments) {
            (Effect::Write, Some(arguments)) => Some(Write::from_tool(&call.name, arguments)),
            (Effect::Write, None) | (Effect::Read, _) => None,
        };
        let cx = ToolContext { completed: arguments.as_ref(), ..self.cx_of(leave) };
        let Some(write) = write else { return self.execute(call, effect, cx).await };
        self.note_dispatch(call, transcript).await?;
        let tried = transcript.tries.begin(write, &call.id);
        let output = self.execute(call, effect, ToolContext { first_try: tried.first.as_ref(), ..cx }).await?;
        tried.end(output.fate);
        Ok(output)
    }

    /// Makes a call. A write goes on only while the lease lasts under which it was noted: a process that was paused for
    /// longer finds out before it sends anything, and the outcome of a write that it has sent already is unknown.
    async fn execute(&self, call: &ToolCall, effect: Effect, cx: ToolContext<'_>) -> Result<ToolOutput, Ended> {
        let span = spans::tool_execute(&call.name, call.id.as_str());
        let report = |report: Report| match report {
            Report::Progress(progress) => {
                let (id, name) = (call.id.clone(), call.name.clone());
                self.emit(AgentEvent::ToolProgress { id, name, progress: Box::new(progress) });
            }
            Report::Directive(notice) => self.emit(AgentEvent::Directive(Box::new(notice))),
        };
        let cx = ToolContext { progress: Reporter::to(&report), ..cx };
        let making = self.agent.tools.execute(call, &cx).instrument(span);
        match effect {
            Effect::Read => Ok(making.await),
            Effect::Write => self.while_leased(making).await,
        }
    }

    /// The result of `work`, which goes on only while the run's lease lasts: checked before each step of it, and not
    /// beside it, since a process that wakes up takes its next step before any clock of it goes off.
    async fn while_leased<T>(&self, work: impl Future<Output = T>) -> Result<T, Ended> {
        let mut work = pin!(work);
        poll_fn(|cx| match self.has_lease() {
            true => work.as_mut().poll(cx).map(Ok),
            false => Poll::Ready(Err(Ended::Stopped(StopReason::Interrupted))),
        })
        .await
    }
}

/// The consent for a call that was let through and has changed since.
fn asks(offer: &Offer, call: &ToolCall) -> Consent {
    match offer.tool(&call.name).map(|tool| tool.policy.consent.clone()) {
        Some(consent @ (Consent::User | Consent::Role { .. })) => consent,
        Some(Consent::Auto) | None => Consent::User,
    }
}
