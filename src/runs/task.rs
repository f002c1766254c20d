//! A run's task: it commits the question, waits for its turn where it has to, and drives the loop to the end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::admission::Admission;
use super::live::Live;
use super::log::EventLog;
use super::request::Request;
use super::summary::Summaries;
use super::titles::Titles;
use crate::agent::offer::profile::Profile;
use crate::agent::ports::events::EventSink;
use crate::agent::ports::store::{
    BeginError, Begun, Commit, MostRuns, NewRun, Question, RequestKey, RunEnd, RunStart, RunStore, StateLeft, Used,
};
use crate::agent::ports::store_error::StoreError;
use crate::agent::ports::summaries::HistoryBound;
use crate::agent::turn::context::Agent;
use crate::agent::turn::run::Run;
use crate::agent::turn::stop::StopReason;
use crate::chat::answer_format::AnswerFormat;
use crate::chat::approval::Decision;
use crate::chat::caller::Caller;
use crate::chat::causes::Causes;
use crate::chat::event::AgentEvent;
use crate::chat::failure::Failure;
use crate::chat::ids::{ApprovalId, ConversationId, RunId};
use crate::chat::input::{Ask, ClientMessage, Parent, RunOptions};
use crate::chat::model::ModelChoice;
use crate::chat::run::{RunRecord, RunState};
use crate::chat::stream::Usage;

/// How long a run that begins waits for a permit.
const PERMIT_WAIT: Duration = Duration::from_secs(5);

/// The pause between two tries of a queued run to take its turn.
const TURN_AGAIN: Duration = Duration::from_millis(250);

/// A run's task.
pub(super) struct Task {
    pub(super) agent: Arc<Agent>,
    pub(super) store: Arc<dyn RunStore>,
    pub(super) log: Arc<dyn EventLog>,
    pub(super) live: Arc<Live>,
    pub(super) caller: Caller,
    pub(super) requested: Arc<RequestedRun>,
    pub(super) replica: String,
    pub(super) lease_ms: i64,
    pub(super) queue: Option<u32>,
    pub(super) history: HistoryBound,
    pub(super) most: MostRuns,
    pub(super) admission: Arc<Admission>,
    pub(super) summaries: Arc<Summaries>,
    pub(super) titles: Arc<Titles>,
}

/// Tells the requester how it began: the record of the run that the same request began before, if there is one.
pub(super) type TellBegun = oneshot::Sender<Result<Option<Box<RunRecord>>, BeginError>>;

impl Task {
    /// Drives the run from its first commit to its end.
    pub(super) async fn run(self, begun: TellBegun) {
        let RequestedRun { conversation, question, options, request, profile, .. } = &*self.requested;
        let form = options.answer_format.as_ref().filter(|_| options.keeps_form).map(AnswerFormat::to_text);
        let new = NewRun {
            id: self.live.id,
            owner: &self.caller.owner,
            conversation,
            context_type: &profile.context_type,
            context: options.context.as_ref(),
            place: &options.place,
            question: match question {
                OwnedQuestion::Ask { ask, parent, .. } => Question::Ask { ask, parent: *parent },
                OwnedQuestion::Continue(run) => Question::Continue(*run),
                OwnedQuestion::Decided { approval, decision } => Question::Decided { approval: *approval, decision },
            },
            earlier: match question {
                OwnedQuestion::Ask { earlier, .. } => earlier,
                OwnedQuestion::Continue(_) | OwnedQuestion::Decided { .. } => &[],
            },
            unlisted: question.is_unlisted(),
            asked_as: options.asked_as.as_deref(),
            gathers: !self.agent.limits.decisions.is_zero(),
            direct: options.direct.is_some(),
            form: form.as_deref(),
            key: request.key.as_ref().map(|(key, digest)| RequestKey { key, digest, or_lately: request.may_repeat }),
            queue: self.queue,
            background: self.live.background,
            request_id: &request.id,
            replica: &self.replica,
            lease_ms: self.lease_ms,
            history: self.history,
            most: self.most,
        };
        let since = std::time::Instant::now();
        let answer = self.when_admitted(self.store.begin_run(new)).await;
        // The requester may be gone; their hold has cancelled the run then, and driving it settles it.
        let start = match answer {
            Err(error) => {
                self.log.forget(&[self.live.id]).await;
                return drop(begun.send(Err(error)));
            }
            Ok(Begun::Joined(record)) => {
                self.log.forget(&[self.live.id]).await;
                return drop(begun.send(Ok(Some(record))));
            }
            Ok(Begun::Running(start)) => {
                self.live.has_begun(since);
                self.live.meter.running();
                let _ = begun.send(Ok(None));
                *start
            }
            Ok(Begun::Queued) => {
                self.live.has_begun(since);
                self.live.meter.queued();
                let _ = begun.send(Ok(None));
                match self.turn().await {
                    Ok(start) => {
                        self.live.meter.running();
                        start
                    }
                    Err(end) => return self.live.emit(end),
                }
            }
        };
        let Self { agent, live, caller, requested, summaries, titles, history, .. } = self;
        let of = (caller.owner.clone(), requested.conversation.clone());
        let kept_form = || start.message.form.as_deref().and_then(AnswerFormat::of_text);
        let answer_format = requested.options.answer_format.clone().or_else(kept_form);
        let is_first = start.past.is_nothing();
        let recall = summaries.recall((live.id, of.clone()), &requested.model, (history, start.past.extent));
        let run = Run {
            id: live.id,
            caller,
            conversation: requested.conversation.clone(),
            profile: requested.profile.clone(),
            model: requested.model.clone(),
            details: requested.options.details,
            may_pause: requested.options.may_pause,
            recap: requested.options.recap.clone(),
            client_tools: requested.options.client_tools.clone(),
            tool_choice: requested.options.tool_choice.clone(),
            answer_format,
            instructions: requested.options.instructions.clone(),
            direct: requested.options.direct.clone(),
            recall,
            start,
        };
        let keep = agent.drive(run, &*live, &live.stop).await;
        // What is newest is never summarised.
        if !is_first {
            summaries.after(live.id, of.clone(), &requested.model, keep);
        }
        // No model is asked about what a client has done with its own.
        if requested.options.direct.is_none() {
            titles.after(of, &requested.model);
        }
    }

    /// Begins when few others do, so that those who begin do not hold up those who end.
    async fn when_admitted<T>(&self, beginning: impl Future<Output = Result<T, BeginError>>) -> Result<T, BeginError> {
        match timeout(PERMIT_WAIT, self.admission.acquire(self.requested.bytes())).await {
            Ok(Ok(_permit)) => beginning.await,
            Ok(Err(closed)) => Err(StoreError::Unavailable(closed.into()).into()),
            Err(late) => Err(StoreError::Unavailable(late.into()).into()),
        }
    }

    /// Waits until the runs before this one have ended; the terminal event when this one ends first.
    async fn turn(&self) -> Result<RunStart, AgentEvent> {
        loop {
            match self.store.promote(self.live.id, self.history).await {
                Ok(Some(start)) => return Ok(start),
                Ok(None) => {}
                Err(StoreError::RunEnded) => return Err(self.ended_elsewhere().await),
                Err(StoreError::Unavailable(cause)) => {
                    // The lease ends it when this lasts.
                    tracing::warn!(error = %Causes(&*cause), run.id = %self.live.id, "a queued run could not be looked at");
                }
                // It would be so for ever.
                Err(StoreError::Damaged(cause)) => {
                    tracing::error!(error = %Causes(&*cause), run.id = %self.live.id, "a queued run cannot begin");
                    let failure = Failure::internal();
                    self.record_end(RunState::Failed, Some(&failure)).await;
                    return Err(AgentEvent::Failed(failure));
                }
            }
            tokio::select! {
                () = sleep(TURN_AGAIN) => {}
                reason = self.live.stop.stopped() => {
                    let (state, end) = match reason {
                        StopReason::Cancelled => (RunState::Cancelled, AgentEvent::Cancelled),
                        // One that has not begun has no text.
                        StopReason::Interrupted | StopReason::OverLength => {
                            (RunState::Interrupted, AgentEvent::Interrupted)
                        }
                    };
                    self.record_end(state, None).await;
                    return Err(end);
                }
            }
        }
    }

    /// Records the end of a run that has not had its turn.
    async fn record_end(&self, state: RunState, error: Option<&Failure>) {
        let nothing = Commit {
            first: 1,
            messages: &[],
            first_entry: 1,
            trail: &[],
            place: None,
            payloads: &[],
            first_artifact: 0,
            artifacts: &[],
            turns: 0,
            used: Used::default(),
            usage: Usage::default(),
            cost: None,
            first_spent: 0,
            spent: &[],
            helped: &[],
            has_plans: false,
        };
        let end = RunEnd {
            state,
            error,
            answer: None,
            approvals: &[],
            paused: None,
            left: &[],
            state_left: StateLeft::default(),
            last_event_id: self.live.next_id(),
        };
        match self.store.finish_run(self.live.id, nothing, end).await {
            // One that another process has ended meanwhile has its end.
            Ok(()) | Err(StoreError::RunEnded) => {}
            Err(error) => {
                tracing::warn!(error = %Causes(&error), run.id = %self.live.id, "the end of a queued run was not recorded");
            }
        }
    }

    /// The end of a run that another process has ended.
    async fn ended_elsewhere(&self) -> AgentEvent {
        let found = self.store.find_run(&self.caller.owner, self.live.id).await;
        match found {
            Ok(None) => AgentEvent::Cancelled,
            Ok(Some(record)) => record.end().unwrap_or(AgentEvent::Interrupted),
            Err(_) => AgentEvent::Interrupted,
        }
    }
}

/// A run as it was requested.
pub(super) struct RequestedRun {
    pub(super) conversation: ConversationId,
    /// Whether the conversation begins with it.
    pub(super) is_first: bool,
    pub(super) question: OwnedQuestion,
    pub(super) options: RunOptions,
    pub(super) profile: Arc<Profile>,
    pub(super) model: ModelChoice,
    pub(super) request: Request,
}

impl RequestedRun {
    /// About how many bytes it brings: its message and those before, its screen state and its instructions.
    fn bytes(&self) -> usize {
        let message = match &self.question {
            OwnedQuestion::Ask { ask, earlier, .. } => {
                let brought = match ask {
                    Ask::Message { text, .. } => text.len(),
                    Ask::Results(results) => results.iter().map(|result| result.content.len()).sum(),
                    Ask::Again => 0,
                };
                brought + earlier.iter().map(ClientMessage::bytes).sum::<usize>()
            }
            OwnedQuestion::Continue(_) | OwnedQuestion::Decided { .. } => 0,
        };
        let instructions = self.options.instructions.as_ref().map_or(0, |text| text.len());
        message + instructions + self.options.context.as_ref().map_or(0, |context| context.as_str().len())
    }
}

/// An owned [`Question`].
pub(super) enum OwnedQuestion {
    Ask { ask: Ask, parent: Option<Parent>, earlier: Vec<ClientMessage>, unlisted: bool },
    Continue(RunId),
    Decided { approval: ApprovalId, decision: Decision },
}

impl OwnedQuestion {
    /// Whether it is asked in a conversation that no list shows.
    fn is_unlisted(&self) -> bool {
        match self {
            Self::Ask { unlisted, .. } => *unlisted,
            Self::Continue(_) | Self::Decided { .. } => false,
        }
    }

    /// Whether it counts as a start. A decision does not: a person takes it once, and the model calls behind it count
    /// against the message that began its chain of runs. Results of a client's tools are no person's, and come as fast
    /// as a client can send them.
    pub(super) fn is_start(&self) -> bool {
        match self {
            Self::Ask { .. } | Self::Continue(_) => true,
            Self::Decided { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_may_send_without_end_is_a_start() {
        let decision = Decision { approve: true, comment: None };
        let ask = |ask| OwnedQuestion::Ask { ask, parent: None, earlier: Vec::new(), unlisted: false };
        let rows = [
            (ask(Ask::message("hello")), true, "a message"),
            (ask(Ask::Again), true, "the same again"),
            (OwnedQuestion::Continue(RunId::fresh()), true, "a run that goes on"),
            (ask(Ask::Results(Vec::new())), true, "results, which no person sends"),
            (
                OwnedQuestion::Decided { approval: ApprovalId::fresh(), decision },
                false,
                "a decision, which a person takes once",
            ),
        ];
        for (asking, expected, reason) in rows {
            assert_eq!(asking.is_start(), expected, "{reason}");
        }
    }
}
