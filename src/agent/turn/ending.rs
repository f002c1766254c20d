//! How a run ends: the open turn is settled, the end is recorded with the answer, and then it is emitted.
//!
//! **Invariant:** a run emits exactly one terminal event, its last; and a call that waits for a person is announced
//! only once it can be decided.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::context::{Agent, Ended, store_failure};
use super::state::Transcript;
use super::stop::StopReason;
use super::workspace::{self, Held};
use crate::agent::offer::client;
use crate::agent::ports::events::EventSink;
use crate::agent::ports::store::{RunEnd, StateLeft};
use crate::agent::ports::store_error::StoreError;
use crate::chat::answer::Answer;
use crate::chat::caller::Owner;
use crate::chat::causes::Causes;
use crate::chat::cost::Cost;
use crate::chat::event::AgentEvent;
use crate::chat::failure::{Failure, FailureCode};
use crate::chat::ids::RunId;
use crate::chat::place::Mover;
use crate::chat::run::RunState;
use crate::chat::state::StateEvent;
use crate::observe::{names, spans};

/// A try to record how a run ended that takes longer has failed: its client waits for the end meanwhile.
const RECORD_LIMIT: Duration = Duration::from_secs(5);

/// The pauses between further tries, while the store does not answer, after the client has got its end. When they are
/// over, the run's lease ends it.
const RECORD_AGAIN: [Duration; 3] = [Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(3)];

impl Agent {
    /// Settles the open turn, records the end and emits it. A store that fails turns a success into a failure; the end
    /// is recorded again after the client has got it.
    pub(super) async fn end(
        &self,
        (run, owner): (RunId, &Owner),
        transcript: &mut Transcript,
        (ended, held): (Result<(), Ended>, Held),
        events: &dyn EventSink,
        started: std::time::Instant,
    ) {
        // First: who has read the end finds all of it, also where recording it takes long.
        workspace::leave(held, &ended).await;
        let usage = transcript.ledger.usage;
        let (state, mut event) = match ended {
            Ok(()) if transcript.pending.is_for_a_person() => {
                (RunState::AwaitingApproval, AgentEvent::AwaitingApproval { usage })
            }
            Ok(()) if !transcript.pending.left.is_empty() => {
                (RunState::Completed, AgentEvent::AwaitingClient { usage, calls: transcript.pending.left.clone() })
            }
            Ok(()) => (RunState::Completed, AgentEvent::Finished { usage }),
            Err(Ended::Failed(failure)) => (RunState::Failed, AgentEvent::Failed(failure)),
            Err(Ended::Stopped(StopReason::Cancelled)) => (RunState::Cancelled, AgentEvent::Cancelled),
            Err(Ended::Stopped(StopReason::OverLength)) => (RunState::Failed, AgentEvent::Failed(over_length())),
            Err(Ended::Stopped(StopReason::Interrupted)) => (RunState::Interrupted, AgentEvent::Interrupted),
        };
        if state != RunState::AwaitingApproval {
            // A call that is not announced cannot be decided.
            transcript.withdraw();
        }
        if state != RunState::Completed {
            transcript.take_back_left(&client::withdrawn());
        }
        transcript.settle(code_of(&event), self.clock.now_ms());
        if let Some(suggestions) = transcript.speech.suggestions() {
            events.emit(AgentEvent::Suggested(suggestions));
        }
        if let Some(diagnosis) = transcript.diagnosis.take() {
            let diagnosis = Arc::new(diagnosis.end(transcript.ended(), code_of(&event), event.failure()));
            transcript.speech.answer_mut().diagnostics = Some((*diagnosis).clone());
            events.emit(AgentEvent::Diagnosed(diagnosis));
        }
        let mut error = event.failure().cloned();
        transcript.note_end(self.clock.now_ms(), state, error.as_ref());
        // Calls that wait are announced when they can be decided, and what is told of the conversation is stored.
        let mut stored: Vec<AgentEvent> = Vec::new();
        if let Some(place) = transcript.moves.uncommitted().cloned() {
            let profile = self.profiles.of_type(&place.context_type);
            let recap = transcript.about.move_to(&place, profile.as_deref(), self.clock.now_ms());
            if !transcript.moves.is_told() {
                stored.push(AgentEvent::PlaceChanged { by: Mover::Tool, place: Box::new(place), is_refocused: true });
                stored.extend(recap.map(|recap| AgentEvent::State(Box::new(StateEvent::RecapOfMove(recap)))));
            }
        }
        stored.extend(transcript.pending.paused.iter().map(|paused| AgentEvent::Plan(Box::new(paused.told.clone()))));
        let approvals = transcript.pending.approvals.iter();
        stored.extend(approvals.map(|approval| AgentEvent::Artifact(Box::new(approval.artifact()))));
        if matches!(state, RunState::Completed | RunState::AwaitingApproval) {
            let recap = transcript.about.close(&transcript.messages, self.clock.now_ms()).cloned();
            stored.extend(recap.map(|recap| AgentEvent::State(Box::new(StateEvent::Recap(recap)))));
        }
        let last_event_id = events.next_id() + stored.len() as u64;
        let answer = transcript.take_distinct_answer();
        let mut recorded = self.record(run, transcript, (state, error.as_ref()), answer.as_ref(), last_event_id).await;
        if matches!(recorded, Err(StoreError::Unavailable(_))) {
            // It may have been kept and only its confirmation lost: the same again finds out.
            recorded = self.record(run, transcript, (state, error.as_ref()), answer.as_ref(), last_event_id).await;
        }
        match &recorded {
            Ok(()) => {}
            // Another process or its user ended it, and has ended its log where it can.
            Err(StoreError::RunEnded) => {
                self.charge_rest(owner, transcript).await;
                if state != RunState::Cancelled {
                    tracing::warn!("the run was ended by somebody else");
                    event = AgentEvent::Interrupted;
                }
            }
            Err(failed @ (StoreError::Unavailable(_) | StoreError::Damaged(_))) => {
                tracing::error!(error = %Causes(failed), "run outcome not recorded");
                if matches!(state, RunState::Completed | RunState::AwaitingApproval) {
                    transcript.withdraw();
                    transcript.take_back_left(&client::withdrawn());
                    transcript.about.reopen();
                    let failure = store_failure();
                    transcript.note_end_instead(self.clock.now_ms(), RunState::Failed, Some(&failure));
                    error = Some(failure.clone());
                    event = AgentEvent::Failed(failure);
                }
            }
        }
        if let Some(failure) = event.failure() {
            spans::tell_current(names::ERROR_TYPE, || failure.code.name());
        }
        log_end(code_of(&event), transcript, started.elapsed());
        if recorded.is_ok() {
            stored.into_iter().for_each(|event| events.emit(event));
        }
        let state = if error.is_some() { RunState::Failed } else { state };
        events.emit(event);
        for pause in RECORD_AGAIN {
            if !matches!(recorded, Err(StoreError::Unavailable(_))) {
                break;
            }
            tokio::time::sleep(pause).await;
            recorded = self.record(run, transcript, (state, error.as_ref()), answer.as_ref(), last_event_id).await;
        }
    }

    async fn record(
        &self,
        run: RunId,
        transcript: &Transcript,
        (state, error): (RunState, Option<&Failure>),
        answer: Option<&Answer>,
        last_event_id: u64,
    ) -> Result<(), StoreError> {
        let (approvals, left) = (transcript.pending.approvals.as_slice(), transcript.pending.left.as_slice());
        let names = transcript.names.new_ones();
        let state_left = StateLeft { names: &names, ..transcript.about.left() };
        let paused = transcript.pending.paused.as_ref().map(|paused| paused.plan);
        let end = RunEnd { state, error, answer, approvals, paused, left, state_left, last_event_id };
        let recording = self.store.finish_run(run, transcript.uncommitted(), end);
        timeout(RECORD_LIMIT, recording).await.unwrap_or_else(|late| Err(StoreError::Unavailable(late.into())))
    }
}

/// The failure of a run whose events are too many, or too large.
fn over_length() -> Failure {
    Failure {
        code: FailureCode::RunTooLong,
        message: "The answer has become too long and was ended".to_owned(),
        retryable: false,
    }
}

/// How a run ended, in one word for the log and the trail.
fn code_of(end: &AgentEvent) -> &'static str {
    match (end, end.failure()) {
        (_, Some(failure)) => failure.code.name(),
        (AgentEvent::Cancelled, None) => RunState::Cancelled.name(),
        (AgentEvent::Interrupted, None) => RunState::Interrupted.name(),
        (AgentEvent::AwaitingApproval { .. }, None) => RunState::AwaitingApproval.name(),
        (_, None) => RunState::Completed.name(),
    }
}

fn log_end(outcome: &str, transcript: &Transcript, elapsed: Duration) {
    let (usage, origin) = (transcript.ledger.usage, transcript.answered_by.as_ref().map(|(origin, _)| origin));
    let cost_usd = transcript.ledger.cost.known().map(Cost::usd);
    let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
    spans::tell_current(names::OUTCOME, || outcome.to_owned());
    spans::tell_current(names::INPUT_TOKENS, || count(usage.input_tokens));
    spans::tell_current(names::OUTPUT_TOKENS, || count(usage.output_tokens));
    if let Some(usd) = cost_usd {
        spans::tell_current(names::COST_USD, || usd);
    }
    tracing::info!(
        outcome,
        gen_ai.provider.name = origin.map(|origin| &*origin.provider),
        gen_ai.request.model = origin.map(|origin| &*origin.model),
        gen_ai.usage.input_tokens = usage.input_tokens,
        gen_ai.usage.output_tokens = usage.output_tokens,
        gen_ai.usage.cache_read.input_tokens = usage.cached_input_tokens,
        turns = transcript.turn(),
        cost_usd,
        duration_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        "run ended"
    );
}
