//! The loop itself: one run from its committed user message to its one terminal event. `ask` has its model calls.
//!
//! **Invariant:** an assistant message with calls is committed only together with all its results, so a stored history
//! is valid for every model, whatever ended the run. **Invariant:** no tool runs before its turn's stream has ended
//! well.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::Instrument;

use super::language::{RETRY_NOTICE, RETRY_REQUEST, Verdict};
use super::ports::clock::Clock;
use super::ports::events::EventSink;
use super::ports::llm::{LlmProvider, SystemPrompt};
use super::ports::store::{RunEnd, RunStart, RunStore, StoreError};
use super::ports::tools::{ToolContext, ToolExecutor};
use super::profile::Profile;
use super::state::{Open, Times, Transcript};
use super::stop::{Stop, StopReason};
use crate::chat::caller::Caller;
use crate::chat::causes::Causes;
use crate::chat::event::{AgentEvent, Failure};
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::message::{Message, UserMessage};
use crate::chat::model::ModelChoice;
use crate::chat::run::RunState;
use crate::chat::tool::{Effect, ToolCall, ToolOutput, ToolResult};
use crate::chat::unfinished::Unfinished;

/// What a run works with; one for the whole process.
pub struct Agent {
    /// The model.
    pub llm: Arc<dyn LlmProvider>,
    /// The tools.
    pub tools: Arc<dyn ToolExecutor>,
    /// Where the transcript is kept.
    pub store: Arc<dyn RunStore>,
    /// Tells the time for the trail.
    pub clock: Arc<dyn Clock>,
    /// The bounds.
    pub limits: Limits,
}

/// The bounds of a run; 0 means none.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Model calls in a run; 20 by the protocol (section 3).
    pub max_turns: u32,
    /// Tool calls in a run.
    pub max_tool_calls: u32,
    /// A run's whole time.
    pub wall: Duration,
}

/// A try to record how a run ended that takes longer has failed: its client waits for the end meanwhile.
const RECORD_LIMIT: Duration = Duration::from_secs(5);

/// The pauses between further tries, while the store does not answer, after the client has been told. When they are
/// over, the run's lease ends it.
const RECORD_AGAIN: [Duration; 3] = [Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(3)];

/// One run, its user message already committed.
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// Who asked.
    pub caller: Caller,
    /// The conversation it continues.
    pub conversation: ConversationId,
    /// Who answers.
    pub profile: Arc<Profile>,
    /// Which model, and how it is asked.
    pub model: ModelChoice,
    /// The screen state, for tools.
    pub context: Option<Map<String, Value>>,
    /// The system prompt, screen state included.
    pub system: SystemPrompt,
    /// History and message, as the store gave them.
    pub start: RunStart,
}

/// Why a run ended without an answer.
pub(super) enum Ended {
    Failed(Failure),
    Stopped(StopReason),
}

impl Agent {
    /// Drives `run` to its end and emits every event of it, exactly one terminal event last. A stop drops the model
    /// call and the tool at once; what was said until then is kept.
    pub async fn drive(&self, run: Run, events: &dyn EventSink, stop: &Stop) {
        let span = tracing::info_span!(
            "agent.run",
            run.id = %run.id,
            conversation.id = %run.conversation,
            profile.id = run.profile.id,
        );
        let started = std::time::Instant::now();
        async {
            let cx = ToolContext {
                caller: &run.caller,
                conversation: &run.conversation,
                run: run.id,
                call: None,
                context: run.context.as_ref(),
            };
            let wall = self.limits.wall;
            let turns = Turns {
                agent: self,
                profile: &run.profile,
                model: &run.model,
                system: &run.system,
                // A time that no clock reaches is no limit.
                deadline: Some(wall).filter(|wall| !wall.is_zero()).and_then(|wall| Instant::now().checked_add(wall)),
                cx,
                events,
            };
            let mut transcript = Transcript::new(run.id, run.start);
            let ended = turns.until_ended(&mut transcript, stop).await;
            self.end(run.id, &mut transcript, ended, events, started).await;
        }
        .instrument(span)
        .await;
    }

    /// Settles the open turn, records the end and tells it. A store that fails turns a success into a failure; it is
    /// asked again after the client has been told.
    async fn end(
        &self,
        run: RunId,
        transcript: &mut Transcript,
        ended: Result<(), Ended>,
        events: &dyn EventSink,
        started: std::time::Instant,
    ) {
        let (state, mut event) = match ended {
            Ok(()) => (RunState::Completed, AgentEvent::Finished { usage: transcript.usage }),
            Err(Ended::Failed(failure)) => (RunState::Failed, AgentEvent::Failed(failure)),
            Err(Ended::Stopped(StopReason::Cancelled)) => (RunState::Cancelled, AgentEvent::Cancelled),
            Err(Ended::Stopped(StopReason::Interrupted)) => (RunState::Interrupted, AgentEvent::Interrupted),
        };
        transcript.settle(code_of(&event), self.clock.now_ms());
        let mut error = failure_of(&event).cloned();
        transcript.note_end(self.clock.now_ms(), state, error.as_ref());
        let last_event_id = events.next_id();
        let end = RunEnd { state, error: error.as_ref(), last_event_id };
        let mut recorded = self.record(run, transcript, end).await;
        if matches!(recorded, Err(StoreError::Unavailable(_))) {
            // It may have been kept and only its confirmation lost: the same again finds out.
            recorded = self.record(run, transcript, end).await;
        }
        match &recorded {
            Ok(()) => {}
            // Somebody else ended it, and has told its readers wherever they can see.
            Err(StoreError::RunEnded) => {
                if state != RunState::Cancelled {
                    tracing::warn!("the run was ended by somebody else");
                    event = AgentEvent::Interrupted;
                }
            }
            Err(failed @ (StoreError::Unavailable(_) | StoreError::Damaged(_))) => {
                tracing::error!(error = %Causes(failed), "run outcome not recorded");
                if state == RunState::Completed {
                    let failure = store_failure();
                    transcript.note_end_instead(self.clock.now_ms(), RunState::Failed, Some(&failure));
                    error = Some(failure.clone());
                    event = AgentEvent::Failed(failure);
                }
            }
        }
        log_end(code_of(&event), transcript, started.elapsed());
        let state = if error.is_some() { RunState::Failed } else { state };
        events.emit(event);
        for pause in RECORD_AGAIN {
            if !matches!(recorded, Err(StoreError::Unavailable(_))) {
                break;
            }
            tokio::time::sleep(pause).await;
            recorded = self.record(run, transcript, RunEnd { state, error: error.as_ref(), last_event_id }).await;
        }
    }

    async fn record(&self, run: RunId, transcript: &Transcript, end: RunEnd<'_>) -> Result<(), StoreError> {
        let recording = self.store.finish_run(run, transcript.uncommitted(), end);
        timeout(RECORD_LIMIT, recording).await.unwrap_or_else(|late| Err(StoreError::Unavailable(late.into())))
    }

    async fn commit(&self, run: RunId, transcript: &mut Transcript) -> Result<(), Ended> {
        self.store.append(run, transcript.uncommitted()).await.map_err(store_failed)?;
        transcript.mark_committed();
        Ok(())
    }
}

/// The turns of one run.
pub(super) struct Turns<'a> {
    pub(super) agent: &'a Agent,
    pub(super) profile: &'a Profile,
    pub(super) model: &'a ModelChoice,
    pub(super) system: &'a SystemPrompt,
    pub(super) deadline: Option<Instant>,
    cx: ToolContext<'a>,
    events: &'a dyn EventSink,
}

impl Turns<'_> {
    async fn until_ended(&self, transcript: &mut Transcript, stop: &Stop) -> Result<(), Ended> {
        let out_of_time = async {
            match self.deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        // A panic ends this run with an error and leaves every other one alone.
        let turns = AssertUnwindSafe(self.all(transcript)).catch_unwind();
        tokio::select! {
            biased;
            reason = stop.stopped() => Err(Ended::Stopped(reason)),
            ended = turns => ended.unwrap_or_else(|_| Err(Ended::Failed(Failure::internal()))),
            () = out_of_time => Err(failed("run_timeout", "The run took too long and was ended", true)),
        }
    }

    async fn all(&self, transcript: &mut Transcript) -> Result<(), Ended> {
        let limits = &self.agent.limits;
        let mut may_retry_language = self.profile.reply_language.is_some();
        let mut calls_made = 0;
        while limits.max_turns == 0 || transcript.turn() < limits.max_turns {
            let turn = transcript.turn();
            self.emit(AgentEvent::TurnStarted { turn });
            let span = tracing::info_span!("agent.turn", turn);
            let (answer, mut gate) = self.ask_model(transcript, may_retry_language).instrument(span.clone()).await?;

            if answer.message.calls().next().is_some() {
                calls_made += answer.message.calls().count();
                let turn = Unfinished { message: answer.message, results: Vec::new(), dispatched: None };
                transcript.open = Open::Calling { turn, since_ms: self.now_ms() };
                if limits.max_tool_calls != 0 && calls_made > limits.max_tool_calls as usize {
                    return Err(failed("tool_call_limit", "Maximum number of tool calls exceeded", false));
                }
                self.run_tools(transcript).instrument(span).await?;
                transcript.settle("stop", self.now_ms());
            } else {
                let message = Message::Assistant(answer.message);
                transcript.end_turn();
                match gate.close() {
                    Verdict::Shown(rest) => {
                        transcript.push(message);
                        self.emit_text(rest);
                        return Ok(());
                    }
                    Verdict::Rejected => {
                        may_retry_language = false;
                        transcript.push(message);
                        transcript.push(Message::User(UserMessage::new(RETRY_REQUEST)));
                        self.emit_text(RETRY_NOTICE.to_owned());
                    }
                }
            }
            self.agent.commit(self.cx.run, transcript).await?;
        }
        Err(failed("max_turns", "Maximum tool-call rounds exceeded", false))
    }

    /// Runs the open turn's calls one after the other: later calls of a turn may build on earlier ones (drafts do).
    async fn run_tools(&self, transcript: &mut Transcript) -> Result<(), Ended> {
        let Open::Calling { turn, .. } = &transcript.open else { return Ok(()) };
        let calls: Vec<ToolCall> = turn.message.calls().cloned().collect();
        for call in calls {
            let since_ms = self.now_ms();
            self.note_dispatch(&call, transcript).await?;
            let output = self.run_tool(&call).await;
            let times = Times { since_ms, now_ms: self.now_ms() };
            let ToolOutput { content, artifacts, is_error } = output;
            let (id, name) = (call.id.as_str().to_owned(), call.name.clone());
            let result = ToolResult { id: call.id.clone(), name: call.name.clone(), content, is_error };
            transcript.note_call(call, &result, times);
            if let Open::Calling { turn, .. } = &mut transcript.open {
                turn.results.push(result);
                turn.dispatched = None;
            }
            self.emit(AgentEvent::ToolCallFinished { id, name, is_error });
            for artifact in artifacts {
                self.emit(AgentEvent::Artifact(artifact));
            }
        }
        Ok(())
    }

    /// Notes in the store that a write is about to be sent; without the note it is not.
    async fn note_dispatch(&self, call: &ToolCall, transcript: &mut Transcript) -> Result<(), Ended> {
        let is_write = match self.agent.tools.effect(&call.name) {
            Effect::Read => false,
            Effect::Write => self.profile.allows(&call.name),
        };
        let Open::Calling { turn, .. } = &mut transcript.open else { return Ok(()) };
        if !is_write {
            return Ok(());
        }
        let noted = Unfinished { dispatched: Some(call.id.clone()), ..turn.clone() };
        self.agent.store.dispatch(self.cx.run, &call.id, &noted).await.map_err(store_failed)?;
        *turn = noted;
        Ok(())
    }

    async fn run_tool(&self, call: &ToolCall) -> ToolOutput {
        if !self.profile.allows(&call.name) {
            return ToolOutput::error(&format!("unknown tool: {}", call.name));
        }
        let span =
            tracing::info_span!("tool.execute", gen_ai.tool.name = call.name, gen_ai.tool.call.id = call.id.as_str());
        self.agent.tools.execute(call, &self.cx).instrument(span).await
    }

    pub(super) fn emit_text(&self, text: String) {
        if !text.is_empty() {
            self.emit(AgentEvent::TextDelta { text });
        }
    }

    pub(super) fn emit(&self, event: AgentEvent) {
        self.events.emit(event);
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.agent.clock.now_ms()
    }
}

pub(super) fn failed(code: &'static str, message: &str, retryable: bool) -> Ended {
    Ended::Failed(Failure { code: code.into(), message: message.to_owned(), retryable })
}

fn store_failed(error: StoreError) -> Ended {
    match error {
        // It is not ours any more.
        StoreError::RunEnded => Ended::Stopped(StopReason::Interrupted),
        StoreError::Unavailable(_) | StoreError::Damaged(_) => {
            tracing::error!(error = %Causes(&error), "transcript not committed");
            Ended::Failed(store_failure())
        }
    }
}

fn store_failure() -> Failure {
    Failure {
        code: "store_unavailable".into(),
        message: "The conversation could not be saved; please try again".to_owned(),
        retryable: true,
    }
}

fn failure_of(event: &AgentEvent) -> Option<&Failure> {
    match event {
        AgentEvent::Failed(failure) => Some(failure),
        AgentEvent::TurnStarted { .. }
        | AgentEvent::TextDelta { .. }
        | AgentEvent::ThinkingDelta { .. }
        | AgentEvent::ToolCallStarted { .. }
        | AgentEvent::ToolCallFinished { .. }
        | AgentEvent::Artifact(_)
        | AgentEvent::Finished { .. }
        | AgentEvent::Cancelled
        | AgentEvent::Interrupted => None,
    }
}

/// How a run ended, in one word for the log and the trail.
fn code_of(end: &AgentEvent) -> &str {
    match (end, failure_of(end)) {
        (_, Some(failure)) => &failure.code,
        (AgentEvent::Cancelled, None) => RunState::Cancelled.name(),
        (AgentEvent::Interrupted, None) => RunState::Interrupted.name(),
        (_, None) => RunState::Completed.name(),
    }
}

fn log_end(outcome: &str, transcript: &Transcript, elapsed: Duration) {
    let (usage, origin) = (transcript.usage, transcript.answered_by.as_ref().map(|(origin, _)| origin));
    tracing::info!(
        outcome,
        gen_ai.provider.name = origin.map(|origin| &*origin.provider),
        gen_ai.request.model = origin.map(|origin| &*origin.model),
        gen_ai.usage.input_tokens = usage.input_tokens,
        gen_ai.usage.output_tokens = usage.output_tokens,
        duration_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        "run ended"
    );
}
