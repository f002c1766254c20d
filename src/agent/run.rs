//! The loop itself: one run from its committed user message to its one terminal event.
//!
//! **Invariant:** an assistant message with calls is committed only together with all its results, so a stored history is
//! valid for every model, whatever ended the run. **Invariant:** no tool runs before its turn's stream has ended well.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::language::{LanguageGate, RETRY_NOTICE, RETRY_REQUEST, Verdict};
use super::ports::llm::{ChatRequest, LlmProvider, ProviderError, ProviderErrorKind, SystemPrompt};
use super::ports::store::{ConversationStore, RunOutcome, RunStart, StoreError};
use super::ports::tools::{ToolContext, ToolExecutor};
use super::profile::Profile;
use super::state::{Open, Transcript};
use super::turn::{Turn, TurnFold};
use crate::chat::caller::Caller;
use crate::chat::causes::Causes;
use crate::chat::event::{AgentEvent, Failure};
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::message::{Message, UserMessage};
use crate::chat::stream::{FinishReason, Usage};
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
    /// An answer's length, in tokens.
    pub max_tokens: u32,
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
    /// The screen state, for tools.
    pub context: Option<Map<String, Value>>,
    /// The system prompt, screen state included.
    pub system: SystemPrompt,
    /// History and message, as the store gave them.
    pub start: RunStart,
}

/// Why a run ended without an answer.
enum Ended {
    Failed(Failure),
    Cancelled,
}

impl From<ProviderError> for Ended {
    fn from(error: ProviderError) -> Self {
        let failure = Failure { code: error.kind.code(), message: error.to_string(), retryable: error.retryable };
        Self::Failed(failure)
    }
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
                context: run.context.as_ref(),
            };
            let turns = Turns { agent: self, profile: &run.profile, system: &run.system, cx, events };
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
            log_end(code, transcript.usage, started.elapsed());
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
struct Turns<'a> {
    agent: &'a Agent,
    profile: &'a Profile,
    system: &'a SystemPrompt,
    cx: ToolContext<'a>,
    events: &'a mpsc::Sender<AgentEvent>,
}

impl Turns<'_> {
    async fn until_ended(&self, transcript: &mut Transcript, cancel: &CancellationToken) -> Result<(), Ended> {
        let wall = self.agent.limits.wall;
        let out_of_time = async {
            match wall.is_zero() {
                true => std::future::pending().await,
                false => tokio::time::sleep(wall).await,
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

    /// One model call: streams it to the client and returns the complete turn. An answer that was cut off or is empty is an
    /// error, its text kept.
    async fn ask_model(
        &self,
        transcript: &mut Transcript,
        hold_ideographs: bool,
    ) -> Result<(Turn, LanguageGate), Ended> {
        let mut gate = LanguageGate::new(hold_ideographs);
        let streamed = self.stream_turn(transcript, &mut gate).await;
        if let Err(ended) = streamed {
            // Nothing was decided about withheld text; show it with the rest of what was said, unless it would be rejected.
            if let (Ended::Failed(_), Verdict::Shown(rest)) = (&ended, gate.close()) {
                self.emit_text(rest).await?;
            }
            return Err(ended);
        }
        let Open::Streaming(fold) = std::mem::replace(&mut transcript.open, Open::Nothing) else {
            return Err(failed("internal", "The server failed while answering; please try again", true));
        };
        let mut turn = fold.finish();
        transcript.used_ids = std::mem::take(&mut turn.used_ids);
        transcript.usage += turn.usage.unwrap_or_default();

        let failure = match turn.reason {
            Some(FinishReason::Stop) if turn.message.parts.iter().all(|part| !part.is_visible()) => {
                failed("empty_answer", "The model gave an empty answer; please try again", true)
            }
            Some(FinishReason::Stop) => return Ok((turn, gate)),
            Some(FinishReason::Length) => {
                failed("max_tokens", "The answer was cut off at the model's length limit", false)
            }
            Some(FinishReason::ContentFilter) => {
                failed("content_filtered", "The model declined to answer on safety grounds", false)
            }
            None => {
                let error = ProviderError::new(ProviderErrorKind::Truncated, "the stream ended without a finish");
                provider_failed(error)
            }
        };
        transcript.keep_text(turn.message);
        if let Verdict::Shown(rest) = gate.close() {
            self.emit_text(rest).await?;
        }
        Err(failure)
    }

    async fn stream_turn(&self, transcript: &mut Transcript, gate: &mut LanguageGate) -> Result<(), Ended> {
        let origin = self.agent.llm.origin();
        let span = tracing::info_span!(
            "llm.chat",
            gen_ai.provider.name = origin.provider,
            gen_ai.request.model = origin.model
        );
        async {
            let request = ChatRequest {
                system: self.system,
                messages: transcript.messages(),
                tools: &self.profile.tools,
                max_tokens: self.agent.limits.max_tokens,
            };
            let mut stream = self.agent.llm.stream_chat(request).await.map_err(provider_failed)?;
            transcript.open =
                Open::Streaming(TurnFold::new(stream.origin.clone(), std::mem::take(&mut transcript.used_ids)));
            while let Some(event) = stream.events.next().await {
                let event = event.map_err(provider_failed)?;
                let Open::Streaming(fold) = &mut transcript.open else { break };
                let Some(event) = fold.push(event) else { continue };
                match event {
                    AgentEvent::TextDelta { text } => self.emit_text(gate.push(text)).await?,
                    AgentEvent::ToolCallStarted { .. } => {
                        self.emit_text(gate.open()).await?;
                        self.emit(event).await?;
                    }
                    other => self.emit(other).await?,
                }
            }
            Ok(())
        }
        .instrument(span)
        .await
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

    async fn emit_text(&self, text: String) -> Result<(), Ended> {
        if text.is_empty() {
            return Ok(());
        }
        self.emit(AgentEvent::TextDelta { text }).await
    }

    async fn emit(&self, event: AgentEvent) -> Result<(), Ended> {
        self.events.send(event).await.map_err(|_| Ended::Cancelled)
    }
}

fn failed(code: &'static str, message: &str, retryable: bool) -> Ended {
    Ended::Failed(Failure { code, message: message.to_owned(), retryable })
}

/// The one place where a model's failure is logged, with the vendor's own words.
fn provider_failed(error: ProviderError) -> Ended {
    tracing::error!(error.code = error.kind.code(), error = %Causes(&error), "model call failed");
    error.into()
}

fn store_failed(error: &StoreError) -> Ended {
    tracing::error!(error = %Causes(error), "transcript not committed");
    failed("store_unavailable", "The conversation could not be saved; please try again", true)
}

fn log_end(outcome: &'static str, usage: Usage, elapsed: Duration) {
    tracing::info!(
        outcome,
        gen_ai.usage.input_tokens = usage.input_tokens,
        gen_ai.usage.output_tokens = usage.output_tokens,
        duration_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        "run ended"
    );
}
