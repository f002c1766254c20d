//! The loop itself: one run from its committed user message to its one terminal event. `ask` has its model calls.
//!
//! **Invariant:** an assistant message with calls is committed only together with all its results, so a stored history is
//! valid for every model, whatever ended the run. **Invariant:** no tool runs before its turn's stream has ended well.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::language::{RETRY_NOTICE, RETRY_REQUEST, Verdict};
use super::ports::llm::{LlmProvider, SystemPrompt};
use super::ports::store::{ConversationStore, RunOutcome, RunStart, StoreError};
use super::ports::tools::{ToolContext, ToolExecutor};
use super::profile::Profile;
use super::state::{Open, Transcript};
use crate::chat::caller::Caller;
use crate::chat::causes::Causes;
use crate::chat::event::{AgentEvent, Failure};
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::message::{Message, UserMessage};
use crate::chat::model::ModelChoice;
use crate::chat::tool::{ToolCall, ToolOutput, ToolResult};

/// What a run works with; one for the whole process.
pub struct Agent {
    /// The model.
    pub llm: Arc<dyn LlmProvider>,
    /// The tools.
    pub tools: Arc<dyn ToolExecutor>,
    /// Where the transcript is kept.
    pub store: Arc<dyn ConversationStore>,
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

/// How long a reader that does not read holds up a run that was cancelled.
const LAST_EVENT: Duration = Duration::from_secs(1);

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
    Cancelled,
}

impl Agent {
    /// Drives `run` to its end and sends every event of it, exactly one terminal event last. A cancelled token, or a
    /// receiver that is gone, drops the model call and the tool at once; what was said until then is kept.
    pub async fn drive(&self, run: Run, events: &mpsc::Sender<AgentEvent>, cancel: &CancellationToken) {
        let span = tracing::info_span!(
            "agent.run",
            run.id = %run.id,
            conversation.id = %run.conversation,
            profile.id = run.profile.id,
        );
        let started = std::time::Instant::now();
        async {
            let RunStart { history, message } = run.start;
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
            let mut transcript = Transcript::new(history, message);
            let ended = turns.until_ended(&mut transcript, cancel).await;
            let ended = self.keep_what_was_said(run.id, &mut transcript, ended).await;

            let (event, outcome, code) = match ended {
                Ok(()) => (AgentEvent::Finished { usage: transcript.usage }, RunOutcome::Completed, "completed"),
                Err(Ended::Failed(failure)) => {
                    let code = failure.code;
                    (AgentEvent::Failed(failure), RunOutcome::Failed(code), code)
                }
                Err(Ended::Cancelled) => (AgentEvent::Cancelled, RunOutcome::Cancelled, "cancelled"),
            };
            if let Err(error) = self.store.finish_run(run.id, outcome, transcript.usage).await {
                tracing::error!(error = %Causes(&error), "run outcome not recorded");
            }
            log_end(code, &transcript, started.elapsed());
            // The reader may be slow, and is waited for; but not when the server stops.
            let given_up = async {
                cancel.cancelled().await;
                tokio::time::sleep(LAST_EVENT).await;
            };
            tokio::select! {
                biased;
                // A receiver that is gone has no use for the event.
                _ = events.send(event) => {}
                () = given_up => {}
            }
        }
        .instrument(span)
        .await;
    }

    /// Settles the open turn and commits; a store that fails turns a success into a failure.
    async fn keep_what_was_said(
        &self,
        run: RunId,
        transcript: &mut Transcript,
        ended: Result<(), Ended>,
    ) -> Result<(), Ended> {
        transcript.settle();
        let committed = self.commit(run, transcript).await;
        ended.and(committed)
    }

    async fn commit(&self, run: RunId, transcript: &mut Transcript) -> Result<(), Ended> {
        let (first, messages) = transcript.uncommitted();
        if messages.is_empty() {
            return Ok(());
        }
        self.store.append(run, first, messages).await.map_err(|error| store_failed(&error))?;
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
    events: &'a mpsc::Sender<AgentEvent>,
}

impl Turns<'_> {
    async fn until_ended(&self, transcript: &mut Transcript, cancel: &CancellationToken) -> Result<(), Ended> {
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
            () = cancel.cancelled() => Err(Ended::Cancelled),
            () = self.events.closed() => Err(Ended::Cancelled),
            ended = turns => ended.unwrap_or_else(|_| {
                Err(failed("internal", "The server failed while answering; please try again", true))
            }),
            () = out_of_time => Err(failed("run_timeout", "The run took too long and was ended", true)),
        }
    }

    async fn all(&self, transcript: &mut Transcript) -> Result<(), Ended> {
        let limits = &self.agent.limits;
        let mut may_retry_language = self.profile.reply_language.is_some();
        let mut calls_made = 0;
        let mut turn = 0;
        while limits.max_turns == 0 || turn < limits.max_turns {
            self.emit(AgentEvent::TurnStarted { turn }).await?;
            let span = tracing::info_span!("agent.turn", turn);
            let (answer, mut gate) = self.ask_model(transcript, may_retry_language).instrument(span.clone()).await?;

            if answer.message.calls().next().is_some() {
                calls_made += answer.message.calls().count();
                transcript.open = Open::Calling { message: answer.message, results: Vec::new() };
                if limits.max_tool_calls != 0 && calls_made > limits.max_tool_calls as usize {
                    return Err(failed("tool_call_limit", "Maximum number of tool calls exceeded", false));
                }
                self.run_tools(transcript).instrument(span).await?;
                transcript.settle();
            } else {
                let message = Message::Assistant(answer.message);
                match gate.close() {
                    Verdict::Shown(rest) => {
                        transcript.push(message);
                        self.emit_text(rest).await?;
                        return Ok(());
                    }
                    Verdict::Rejected => {
                        may_retry_language = false;
                        transcript.push(message);
                        transcript.push(Message::User(UserMessage::new(RETRY_REQUEST)));
                        self.emit_text(RETRY_NOTICE.to_owned()).await?;
                    }
                }
            }
            self.agent.commit(self.cx.run, transcript).await?;
            turn += 1;
        }
        Err(failed("max_turns", "Maximum tool-call rounds exceeded", false))
    }

    /// Runs the open turn's calls one after the other: later calls of a turn may build on earlier ones (drafts do).
    async fn run_tools(&self, transcript: &mut Transcript) -> Result<(), Ended> {
        let Open::Calling { message, .. } = &transcript.open else { return Ok(()) };
        let calls: Vec<ToolCall> = message.calls().cloned().collect();
        for call in calls {
            let output = self.run_tool(&call).await;
            let ToolOutput { content, artifacts, is_error } = output;
            let (id, name) = (call.id.as_str().to_owned(), call.name.clone());
            transcript.add_result(ToolResult { id: call.id, name: call.name, content, is_error });
            self.emit(AgentEvent::ToolCallFinished { id, name, is_error }).await?;
            for artifact in artifacts {
                self.emit(AgentEvent::Artifact(artifact)).await?;
            }
        }
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

    pub(super) async fn emit_text(&self, text: String) -> Result<(), Ended> {
        if text.is_empty() {
            return Ok(());
        }
        self.emit(AgentEvent::TextDelta { text }).await
    }

    pub(super) async fn emit(&self, event: AgentEvent) -> Result<(), Ended> {
        self.events.send(event).await.map_err(|_| Ended::Cancelled)
    }
}

pub(super) fn failed(code: &'static str, message: &str, retryable: bool) -> Ended {
    Ended::Failed(Failure { code, message: message.to_owned(), retryable })
}

fn store_failed(error: &StoreError) -> Ended {
    tracing::error!(error = %Causes(error), "transcript not committed");
    failed("store_unavailable", "The conversation could not be saved; please try again", true)
}

fn log_end(outcome: &'static str, transcript: &Transcript, elapsed: Duration) {
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
