//! The loop itself: one run from its committed user message to its one terminal event. `ask` has its model calls.
//!
//! **Invariant:** an assistant message with calls is committed only together with all its results, so a stored history
//! is valid for every model, whatever ended the run. **Invariant:** no tool runs before its turn's stream has ended
//! well.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use tokio::time::{Instant, sleep_until};

use super::context::{Agent, Ended, Flow, Role, Turns, failed, store_failed};
use super::diagnosis::Diagnosis;
use super::language::Verdict;
use super::moves;
use super::pending::{Maker, Resuming};
use super::recall::Recall;
use super::state::{Open, Transcript};
use super::steps::Leave;
use super::stop::{Stop, StopReason};
use super::terms::Terms;
use crate::agent::offer::Offer;
use crate::agent::offer::consent;
use crate::agent::offer::profile::{OnLimit, Profile, ReplyLanguage};
use crate::agent::offer::selection::Wanted;
use crate::agent::ports::events::EventSink;
use crate::agent::ports::store::{DecidedCall, RunStart};
use crate::agent::ports::tools::{KeepsFiles, Reporter, ToolContext};
use crate::chat::answer_format::AnswerFormat;
use crate::chat::caller::Caller;
use crate::chat::causes::Causes;
use crate::chat::event::AgentEvent;
use crate::chat::failure::{Failure, FailureCode};
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::input::Direct;
use crate::chat::message::{AssistantMessage, AssistantPart, Author, Message, ModelOrigin, UserMessage};
use crate::chat::model::ModelChoice;
use crate::chat::payload::PayloadSource;
use crate::chat::place::{Mover, Place};
use crate::chat::state::{Recap, StateEvent};
use crate::chat::tool::{ToolCall, ToolChoice, ToolDef};
use crate::chat::unfinished::Unfinished;
use crate::observe::within::within;
use crate::observe::{metrics, spans};

/// One run, its user message already committed.
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The caller.
    pub caller: Caller,
    /// The conversation it continues.
    pub conversation: ConversationId,
    /// The profile that answers.
    pub profile: Arc<Profile>,
    /// The model and its options.
    pub model: ModelChoice,
    /// Whether events tell what tools are called with and what they say; see [`crate::chat::input::RunOptions`].
    pub details: bool,
    /// Whether a plan may wait for a person in the middle; see [`crate::chat::input::RunOptions`].
    pub may_pause: bool,
    /// What the turn before was about, as its client says it; untrusted.
    pub recap: Option<Recap>,
    /// Tools that its client runs itself.
    pub client_tools: Vec<Arc<ToolDef>>,
    /// Whether one of those has to be called.
    pub tool_choice: ToolChoice,
    /// The form of its answer, where it is not free text.
    pub answer_format: Option<AnswerFormat>,
    /// The client's own instructions for the model, which count where the profile lets them; untrusted.
    pub instructions: Option<Arc<str>>,
    /// What it does instead of asking a model.
    pub direct: Option<Box<Direct>>,
    /// What it does about what it does not read of the past.
    pub recall: Recall,
    /// History, message and screen state, as the store gave them.
    pub start: RunStart,
}

impl Agent {
    /// Drives `run` to its end and emits every event of it, exactly one terminal event last. A stop drops the model
    /// call and the tool at once; the text until then is kept.
    ///
    /// Returns how many of the newest messages stay, where the conversation has grown beyond its profile's budget.
    pub async fn drive(&self, run: Run, events: &dyn EventSink, stop: &Stop) -> Option<usize> {
        let span = spans::agent_run(&run.id, &run.conversation, &run.profile.id);
        let started = std::time::Instant::now();
        let driven = async {
            let mut start = run.start;
            let (context, mut decided) = (start.context.take(), start.decided.take());
            let recap = run.recap.or_else(|| start.recap.take());
            let cx = ToolContext {
                caller: &run.caller,
                conversation: &run.conversation,
                number: self.number(&run.caller, &run.conversation, &run.profile).await,
                run: run.id,
                call: None,
                context: context.as_ref(),
                place: None,
                completed: None,
                first_try: None,
                progress: Reporter::default(),
                files: KeepsFiles::there(&*self.files),
            };
            let wall = self.limits.wall;
            // A time that no clock reaches is no limit.
            let deadline = Some(wall).filter(|wall| !wall.is_zero()).and_then(|wall| Instant::now().checked_add(wall));
            let (is_moved, is_refocused) = (start.is_moved, start.is_refocused);
            let mut transcript = Transcript::new(run.id, start, &run.profile);
            transcript.diagnosis = Diagnosis::from_profile(&run.profile, &cx, &run.model, self.limits);
            transcript.speech.keep_raw(transcript.diagnosis.is_some());
            if let Some(decided) = &mut decided {
                transcript.name_apart(decided);
            }
            if let Some(event) = decided.as_ref().and_then(consent::decided) {
                events.emit(event);
            }
            let mut place = transcript.moves.now().cloned();
            if let Some(place) = place.clone().filter(|_| is_moved) {
                events.emit(AgentEvent::PlaceChanged { by: Mover::Request, place: Box::new(place), is_refocused });
            }
            if let Some(usage) = transcript.about.usage().cloned() {
                events.emit(AgentEvent::State(Box::new(StateEvent::ContextUsage(usage))));
            }
            if let Some(recap) = recap.clone().filter(|_| run.profile.recap.is_some()) {
                events.emit(AgentEvent::State(Box::new(StateEvent::RecapBefore(recap))));
            }
            let mut profile = run.profile.clone();
            let (mut held, mut unread) = (None, Some(run.recall));
            let ended = loop {
                let here = (&cx, transcript.messages.question());
                if let Err(ended) = self.enter_workspace(&profile, here, &mut held, (events, stop)).await {
                    break Err(ended);
                }
                if let Some(recall) = unread.take()
                    && let Err(ended) =
                        recall.wait(&mut transcript, self.limits.summary_wait, (events, stop, deadline)).await
                {
                    break Err(ended);
                }
                let turns = Turns {
                    agent: self,
                    profile: &profile,
                    model: &run.model,
                    deadline,
                    cx: ToolContext { place: place.as_ref(), ..cx },
                    details: run.details,
                    may_pause: run.may_pause,
                    recap: recap.as_ref(),
                    client_tools: &run.client_tools,
                    direct: run.direct.as_deref(),
                    terms: Terms {
                        format: run.answer_format.as_ref(),
                        tool_choice: Some(&run.tool_choice),
                        instructions: run.instructions.as_deref(),
                    },
                    events,
                    role: Role::Answers,
                };
                let ended = turns.until_ended(&mut transcript, decided.take(), stop).await;
                if !matches!(ended, Ok(Flow::Moved)) {
                    turns.absorb(&mut transcript).await;
                    turns.charge_broken_off(&mut transcript).await;
                    turns.end_speech(&mut transcript).await;
                    break ended.map(|_| ());
                }
                place = transcript.moves.now().cloned();
                // A plan goes on with the assistant that makes it, wherever it has moved the conversation.
                let maker = transcript.resuming.as_ref().and_then(Resuming::made_at);
                let next = maker.or(place.as_ref().map(|place| place.context_type.as_str()));
                if let Some(next) = next.and_then(|context_type| self.profiles.of_type(context_type)) {
                    profile = next;
                }
                transcript.speech.enter(&profile);
                transcript.about.enter(&profile);
                transcript.names.want(&profile);
            };
            self.end((run.id, &run.caller.owner), &mut transcript, (ended, held), events, started).await;
            transcript.about.keep(&transcript.messages)
        };
        within(span, driven).await
    }

    /// The number by which a page, its tools and its data know the conversation; `None` where they know its id, or where
    /// there is no number to be had.
    async fn number(&self, caller: &Caller, conversation: &ConversationId, profile: &Profile) -> Option<i64> {
        if !profile.is_page {
            return None;
        }
        let given = self.chats.number(&caller.owner, caller.known_as.as_deref(), conversation, &profile.app).await;
        given.map_err(|error| tracing::error!(error = %Causes(&error), "conversation not numbered")).ok()
    }

    pub(super) async fn commit(&self, run: RunId, transcript: &mut Transcript) -> Result<(), Ended> {
        self.store.append(run, transcript.uncommitted()).await.map_err(store_failed)?;
        transcript.mark_committed();
        Ok(())
    }
}

impl Turns<'_> {
    async fn until_ended(
        &self,
        transcript: &mut Transcript,
        decided: Option<DecidedCall>,
        stop: &Stop,
    ) -> Result<Flow, Ended> {
        let out_of_time = async {
            match self.deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        // A panic ends this run with an error and leaves every other one alone.
        let turns = AssertUnwindSafe(self.all(transcript, decided)).catch_unwind();
        let ended = tokio::select! {
            biased;
            reason = stop.stopped() => Err(Ended::Stopped(reason)),
            ended = turns => ended.unwrap_or_else(|_| Err(Ended::Failed(Failure::internal()))),
            () = out_of_time => Err(failed(FailureCode::RunTimeout, "The run took too long and was ended", true)),
        };
        // The event that was not emitted may have been the last.
        match stop.reason() {
            Some(reason @ StopReason::OverLength) if ended.is_ok() => Err(Ended::Stopped(reason)),
            Some(_) | None => ended,
        }
    }

    /// All turns until the end of the run, or until the conversation is somewhere else.
    pub(super) async fn all(&self, transcript: &mut Transcript, decided: Option<DecidedCall>) -> Result<Flow, Ended> {
        let decided = match (self.role, decided) {
            (Role::Answers, Some(decided)) => match decided.plan() {
                Some(plan) => {
                    self.take_paused(plan, decided, transcript).await?;
                    None
                }
                None => Some(decided),
            },
            (_, decided) => decided,
        };
        if let Some(Direct::CalledOff) = self.direct {
            // Its plan, if it is of one, ends with it.
            return Err(Ended::Stopped(StopReason::Cancelled));
        }
        let resuming = match transcript.resuming.take() {
            Some(resuming) if resuming.is_made_elsewhere(&self.profile.context_type) => {
                transcript.resuming = Some(resuming);
                return Ok(Flow::Moved);
            }
            resuming => resuming,
        };
        let asks_first = decided.is_none() && resuming.is_none() && self.direct.is_none();
        if asks_first && self.clarify(transcript).await? {
            return Ok(Flow::Done);
        }
        let (executor, finder) = (&*self.agent.tools, &self.agent.finder);
        let wanted = Wanted { question: &transcript.messages.question(), recent: &transcript.messages.recent_tools() };
        let offer = Offer::prepare(self.profile, (&self.cx, self.client_tools), executor, finder, wanted).await;
        let mut offer = offer.with_own(self.own_tools());
        let may_call = self.terms.settle(&mut offer);
        if let Some(resuming) = resuming {
            let is_elsewhere = resuming.maker == Maker::Elsewhere;
            match self.resume_first(resuming, transcript, &mut offer).await? {
                Flow::Done if transcript.pending.is_for_a_person() => return Ok(Flow::Done),
                Flow::Done if !is_elsewhere => {}
                Flow::Done | Flow::Moved => return Ok(Flow::Moved),
            }
        }
        if let Some(direct) = self.direct {
            return self.call_directly(direct, decided, transcript, &mut offer).await;
        }
        let system = self.system_prompt(&offer, &transcript.names).await?;
        if let Some(diagnosis) = &mut transcript.diagnosis {
            diagnosis.record_request(&system, offer.defs());
        }
        self.observe_prompt(&system, &offer, transcript);
        let max_turns = self.max_turns();
        let most_calls = match self.profile.bounds.max_tool_calls.unwrap_or(self.agent.limits.max_tool_calls) {
            0 => u32::MAX,
            most => most,
        };
        let mut retry = self.profile.reply_language.and_then(ReplyLanguage::retry);
        if let Some(decided) = decided {
            match self.go_on_decided(decided, transcript, &mut offer).await? {
                Flow::Done if !transcript.pending.is_for_a_person() => {}
                flow => return Ok(flow),
            }
        }
        // A call that was approved is a turn that no model has had, and turns of earlier runs of the chain are not this run's.
        while max_turns == 0 || transcript.ledger.used().model_calls < max_turns {
            let turn = transcript.turn();
            transcript.ledger.count_model_call();
            self.emit(AgentEvent::TurnStarted { turn });
            metrics::turn();
            let span = spans::agent_turn(turn);
            let request = self.turn_request((&system, &offer), may_call, retry.is_some());
            let (answer, mut gate) = within(span.clone(), self.ask_as_wanted(transcript, request)).await?;

            if answer.message.calls().next().is_some() {
                let left = most_calls.saturating_sub(transcript.ledger.used().tool_calls) as usize;
                transcript.ledger.count_tool_calls(answer.message.calls().count());
                let called = answer.message.calls().map(|call| call.name.clone());
                let called: Vec<String> =
                    called.filter(|name| offer.tool(name).is_some_and(|tool| tool.only_if.is_some())).collect();
                let turn = Unfinished { message: answer.message, results: Vec::new(), dispatched: None };
                transcript.open = Open::Calling { turn, since_ms: self.now_ms() };
                // Also what stood behind the first call.
                self.end_speech(transcript).await;
                within(span, self.run_calls(transcript, &mut offer, Leave::Needed, left)).await?;
                offer.withdraw(&called, &self.cx).await;
                transcript.settle("stop", self.now_ms());
                if transcript.pending.is_for_a_person() || !transcript.pending.left.is_empty() {
                    return Ok(Flow::Done);
                }
                if transcript.ledger.used().tool_calls > most_calls {
                    let limit = failed(FailureCode::ToolCallLimit, "Maximum number of tool calls exceeded", false);
                    return match (self.profile.bounds.on_limit, self.commit_round(transcript).await?) {
                        (OnLimit::Fail, _) => Err(limit),
                        (OnLimit::Answer, Flow::Moved) => Ok(Flow::Moved),
                        // The last words are a turn of their own, whose pieces are kept behind this one.
                        (OnLimit::Answer, Flow::Done) => {
                            self.last_words(transcript, (&system, &offer), limit).await.map(|()| Flow::Done)
                        }
                    };
                }
            } else {
                let message = Message::Assistant(answer.message);
                transcript.end_turn();
                transcript.messages.push(message);
                match (gate.close(), retry.take()) {
                    (Verdict::Accepted(rest), _) => {
                        self.say(transcript, rest);
                        self.end_speech(transcript).await;
                        return Ok(Flow::Done);
                    }
                    (Verdict::Rejected, Some(again)) => {
                        transcript.messages.push(Message::User(UserMessage::by(Author::Correction, again.request)));
                        transcript.speech.discard();
                        transcript.speech.notice(again.notice);
                        self.emit_text(again.notice.to_owned());
                        self.end_speech(transcript).await;
                    }
                    // Only a gate that may ask again watches.
                    (Verdict::Rejected, None) => return Err(Ended::Failed(Failure::internal())),
                }
            }
            if let Flow::Moved = self.commit_round(transcript).await? {
                return Ok(Flow::Moved);
            }
        }
        let limit = failed(FailureCode::MaxTurns, "Maximum tool-call rounds exceeded", false);
        match self.profile.bounds.on_limit {
            OnLimit::Fail => Err(limit),
            OnLimit::Answer => self.last_words(transcript, (&system, &offer), limit).await.map(|()| Flow::Done),
        }
    }

    /// Commits a turn whose calls are answered; where one of them has moved the conversation, that is stored with it, and
    /// readers are told.
    pub(super) async fn commit_round(&self, transcript: &mut Transcript) -> Result<Flow, Ended> {
        if let Role::Helps(_) = self.role {
            return Ok(Flow::Done);
        }
        let Some(place) = transcript.moves.uncommitted().cloned() else {
            self.agent.commit(self.cx.run, transcript).await?;
            return Ok(Flow::Done);
        };
        let is_told = transcript.moves.is_told();
        transcript.messages.push(Message::User(UserMessage::by(Author::Move, moves::words(&place))));
        self.agent.commit(self.cx.run, transcript).await?;
        if !is_told {
            self.tell_move(&place);
        }
        Ok(Flow::Moved)
    }

    /// Tells readers where a tool has moved the conversation, which is stored.
    pub(super) fn tell_move(&self, place: &Place) {
        self.emit(AgentEvent::PlaceChanged { by: Mover::Tool, place: Box::new(place.clone()), is_refocused: true });
        if self.profile.recap.is_some() {
            let recap = Recap::of_move(place, self.now_ms());
            self.emit(AgentEvent::State(Box::new(StateEvent::RecapOfMove(recap))));
        }
    }

    /// Opens a turn of one call that no model has spoken.
    pub(super) fn open_first(&self, call: ToolCall, transcript: &mut Transcript) {
        self.emit(AgentEvent::TurnStarted { turn: transcript.turn() });
        self.emit(AgentEvent::ToolCallStarted { id: call.id.clone(), name: call.name.clone() });
        // No model: there is no replay data of a vendor for this call.
        let origin = Arc::new(ModelOrigin { provider: "switchboard".to_owned(), model: "approved".to_owned() });
        let parts = vec![AssistantPart::ToolCall { call, replay: None }];
        let turn = Unfinished { message: AssistantMessage { origin, parts }, results: Vec::new(), dispatched: None };
        transcript.open = Open::Calling { turn, since_ms: self.now_ms() };
    }

    /// Ends that turn.
    pub(super) async fn close_first(&self, transcript: &mut Transcript) -> Result<Flow, Ended> {
        transcript.settle("stop", self.now_ms());
        match transcript.pending.is_for_a_person() {
            false => self.commit_round(transcript).await,
            // It waits again: its result is committed with the end.
            true => Ok(Flow::Done),
        }
    }

    /// Says this much of the model's text to the user, as far as it is for them.
    pub(super) fn say(&self, transcript: &mut Transcript, text: String) {
        if !text.is_empty() {
            self.emit_text(transcript.speech.push(text));
        }
    }

    /// Ends the text of a turn.
    pub(super) async fn end_speech(&self, transcript: &mut Transcript) {
        let (rest, payloads) = transcript.speech.close();
        self.emit_text(rest);
        for payload in payloads {
            match self.admit_payload(transcript).await {
                true => self.keep(transcript, payload, PayloadSource::Model),
                false => {
                    tracing::warn!(payload.kind = payload.kind, "a payload was left out: its conversation is full")
                }
            }
        }
    }
}
