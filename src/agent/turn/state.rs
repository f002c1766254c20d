//! A run's growing transcript and trail, and how an interrupted turn is settled so that the stored history stays valid
//! for any model.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tokio::sync::OnceCell;

use super::about::{self, About};
use super::aside::Aside;
use super::diagnosis::{Diagnosis, Ended};
use super::fold::{CallIds, TurnFold};
use super::ledger::Ledger;
use super::messages::Messages;
use super::moves::Moves;
use super::names::Names;
use super::pending::{Paused, Pending, Resuming};
use super::repeats::Repeats;
use super::speech::Speech;
use super::tries::Tries;
use crate::agent::offer::consent;
use crate::agent::offer::profile::Profile;
use crate::agent::ports::store::{ApprovedCall, Commit, DecidedCall, RunStart};
use crate::chat::answer::{Answer, AnswerPiece};
use crate::chat::artifact::{Artifact, CallArtifact};
use crate::chat::failure::Failure;
use crate::chat::fate::CallFate;
use crate::chat::ids::{FileId, RunId, ToolCallId};
use crate::chat::message::{AssistantMessage, AssistantPart, Message, ModelOrigin};
use crate::chat::payload::Payload;
use crate::chat::run::RunState;
use crate::chat::stream::Counted;
use crate::chat::tool::{CallNote, ToolCall, ToolOutput, ToolResult};
use crate::chat::trail::{Excerpt, TrailEntry, TrailEvent};
use crate::chat::unfinished::Unfinished;

/// The transcript of a run while it grows. It outlives the turn's future, so that dropping that loses nothing.
pub(super) struct Transcript {
    run: RunId,
    pub(super) messages: Messages,
    pub(super) ledger: Ledger,
    pub(super) pending: Pending,
    /// The number of the turn that is open or comes next.
    turns: u32,
    pub(super) open: Open,
    trail: Vec<TrailEntry>,
    /// How many entries of this run's trail the store has; the first is its user message.
    entries_committed: u32,
    /// Where the conversation is, and how it came there.
    pub(super) moves: Moves,
    /// What it leaves of the state of the conversation.
    pub(super) about: About,
    /// What things are called.
    pub(super) names: Names,
    /// Payloads that the store has not got yet.
    pub(super) payloads: Vec<Arc<Payload>>,
    /// What tools have made for the client's screen that the store has not got yet.
    pub(super) artifacts: Vec<CallArtifact>,
    /// How many of them it has got.
    artifacts_committed: u32,
    /// The model of the newest answer, and the vendor's id of that request.
    pub(super) answered_by: Option<(Arc<ModelOrigin>, Option<String>)>,
    /// The call ids of the whole conversation.
    pub(super) call_ids: CallIds,
    /// The answer for its user.
    pub(super) speech: Speech,
    /// How it is carried out, where its caller may see that.
    pub(super) diagnosis: Option<Diagnosis>,
    /// The newest call, and how often in a row.
    pub(super) repeats: Repeats,
    /// The files that its user knows a model was not shown.
    pub(super) not_shown: Vec<FileId>,
    /// The files of requests that were refused: the others of the run have none of them.
    pub(super) refused_files: Vec<FileId>,
    /// Calls that have failed since the last one that did not.
    pub(super) failures: u32,
    /// Writes whose outcome is unknown.
    pub(super) tries: Tries,
    /// What helpers have done and this run has not taken over yet.
    pub(super) aside: Arc<Aside>,
    /// The writes of helpers, which the store has not got yet.
    pub(super) helped: Vec<TrailEvent>,
    /// Whether plans or sub-agents were begun.
    pub(super) has_plans: bool,
    /// The plan that the run begins with.
    pub(super) resuming: Option<Resuming>,
    /// The call of a tool of the loop's own that goes on: it sends nothing itself.
    pub(super) own_call: Option<ToolCallId>,
}

/// What a run and its helpers share of their calls.
#[derive(Clone)]
pub(super) struct Shared {
    /// Their ids.
    call_ids: CallIds,
    /// Writes whose outcome is unknown.
    tries: Tries,
    /// What things are called.
    names: Names,
    /// How many of them wait for a person.
    held: Arc<AtomicUsize>,
    /// How many payloads the conversation has with theirs.
    payloads: Arc<OnceCell<AtomicUsize>>,
}

impl Shared {
    /// That many calls wait no more.
    pub(super) fn wait_no_more(&self, calls: usize) {
        self.held.fetch_sub(calls, Ordering::Relaxed);
    }
}

/// The turn that has not been committed yet.
pub(super) enum Open {
    /// There is none.
    Nothing,
    /// A model is called, since this time in milliseconds; none answers yet.
    Asking { since_ms: i64 },
    /// The model is still streaming.
    Streaming { fold: TurnFold, since_ms: i64 },
    /// The model has called tools; some may have run.
    Calling { turn: Unfinished, since_ms: i64 },
}

impl Transcript {
    pub(super) fn new(run: RunId, start: RunStart, profile: &Profile) -> Self {
        let ledger = Ledger::after(start.used);
        // Its trail has the message, and each call that the client has answered.
        let answered = start.answered.as_ref().map_or(0, |(_, results)| results.len());
        let moves = Moves::new(start.place.clone());
        let about = About::new(&start, profile);
        let names = Names::default();
        names.want(profile);
        let messages = Messages::from_start(start);
        Self {
            run,
            call_ids: messages.call_ids(),
            messages,
            ledger,
            pending: Pending::default(),
            turns: 0,
            open: Open::Nothing,
            trail: Vec::new(),
            moves,
            about,
            names,
            entries_committed: u32::try_from(answered).unwrap_or(u32::MAX).saturating_add(1),
            payloads: Vec::new(),
            artifacts: Vec::new(),
            artifacts_committed: 0,
            answered_by: None,
            speech: Speech::new(profile),
            diagnosis: None,
            repeats: Repeats::default(),
            not_shown: Vec::new(),
            refused_files: Vec::new(),
            failures: 0,
            tries: Tries::default(),
            aside: Arc::default(),
            helped: Vec::new(),
            has_plans: false,
            resuming: None,
            own_call: None,
        }
    }

    /// The entries of the trail that the store has not got.
    pub(super) fn take_trail(&mut self) -> Vec<TrailEntry> {
        std::mem::take(&mut self.trail)
    }

    /// That of a helper of the run, which begins so. It shares with the run what calls have had.
    pub(super) fn of_helper(run: RunId, start: RunStart, profile: &Profile, shared: Shared) -> Self {
        let Shared { call_ids, tries, names, held, payloads } = shared;
        let pending = Pending { counted: held, payloads, ..Pending::default() };
        let own = Self::new(run, start, profile);
        // Those from before it waited, too.
        for id in own.messages.calls() {
            call_ids.claim(id);
        }
        Self { call_ids, tries, names, pending, ..own }
    }

    /// Gives a call that was let through an id that no other one has. One that was let through before and not made has left its own
    /// in the history, and vendors refuse two calls of one id.
    pub(super) fn name_apart(&self, decided: &mut DecidedCall) {
        if let DecidedCall::Approved(ApprovedCall { call, .. }) = decided {
            call.id = self.call_ids.claim_later(&call.id);
        }
    }

    /// What it shares with helpers.
    pub(super) fn shared(&self) -> Shared {
        Shared {
            call_ids: self.call_ids.clone(),
            tries: self.tries.clone(),
            names: self.names.clone(),
            held: self.pending.counted.clone(),
            payloads: self.pending.payloads.clone(),
        }
    }

    /// The data of the run at its end, for a diagnosis.
    pub(super) fn ended(&mut self) -> Ended<'_> {
        Ended {
            raw: self.speech.take_raw(),
            model: self.answered_by.as_ref().map(|(origin, _)| &**origin),
            question: self.messages.question(),
            history: self.messages.history(),
            messages: self.messages.all(),
            usage: self.ledger.usage,
        }
    }

    /// The number of the turn that is open or comes next.
    pub(super) fn turn(&self) -> u32 {
        self.turns
    }

    /// The answer as its user saw it, where that is not just the text of this run's one message. It is taken: a long text is
    /// not held twice while the run's end is written.
    pub(super) fn take_distinct_answer(&mut self) -> Option<Answer> {
        let answer = std::mem::take(self.speech.answer_mut());
        let is_text = match (answer.pieces.as_slice(), self.messages.answers()) {
            ([], []) => true,
            ([AnswerPiece::Text(text)], [Message::Assistant(message)]) => {
                message.texts().flat_map(str::bytes).eq(text.bytes())
            }
            (_, _) => false,
        };
        let is_all = answer.suggestions.is_empty() && answer.diagnostics.is_none();
        (!is_text || !is_all).then_some(answer)
    }

    /// The changes that the store has not got yet.
    pub(super) fn uncommitted(&self) -> Commit<'_> {
        let (first, messages) = self.messages.uncommitted();
        let (first_spent, spent) = self.ledger.uncommitted();
        Commit {
            first,
            messages,
            first_entry: self.entries_committed,
            trail: &self.trail,
            place: self.moves.uncommitted(),
            payloads: &self.payloads,
            first_artifact: self.artifacts_committed,
            artifacts: &self.artifacts,
            turns: self.turns,
            used: self.ledger.own,
            usage: self.ledger.usage,
            cost: self.ledger.cost.known(),
            first_spent,
            spent,
            helped: &self.helped,
            has_plans: self.has_plans,
        }
    }

    /// The usage of the model call that is under way.
    pub(super) fn under_way(&self) -> Option<Counted> {
        self.ledger.under_way(self.messages.all())
    }

    pub(super) fn mark_committed(&mut self) {
        self.messages.mark_committed();
        self.ledger.mark_committed();
        self.entries_committed += u32::try_from(self.trail.len()).unwrap_or(u32::MAX);
        self.trail.clear();
        self.moves.mark_committed();
        self.payloads.clear();
        self.artifacts_committed += u32::try_from(self.artifacts.len()).unwrap_or(u32::MAX);
        self.artifacts.clear();
        self.helped.clear();
    }

    /// Keeps what a call has made for the client's screen.
    pub(super) fn keep_artifact(&mut self, call: &ToolCallId, artifact: &Artifact) {
        self.artifacts.push(CallArtifact { call: call.clone(), artifact: artifact.clone(), helper: None });
    }

    /// What a call that was made has said, where anybody wants to know. It is looked at for names and mentions.
    pub(super) fn read_result(&mut self, output: &ToolOutput) -> Option<Value> {
        let is_read = output.fate == CallFate::Done && (self.names.are_wanted() || self.about.wants_results());
        let value = is_read.then(|| about::read(&output.content)).flatten()?;
        self.names.note(&value);
        self.about.note(&value);
        Some(value)
    }

    /// Adds an entry to the trail.
    pub(super) fn note(&mut self, at_ms: i64, what: TrailEvent) {
        if let Some(diagnosis) = &mut self.diagnosis {
            diagnosis.record_entry(&what);
        }
        self.trail.push(TrailEntry { at_ms, run: Some(self.run), what });
    }

    /// Notes a model call that has come to its end, with what there was of an answer.
    pub(super) fn note_turn(
        &mut self,
        answer: Option<&AssistantMessage>,
        finish: &str,
        usage: Option<Counted>,
        times: Times,
    ) {
        let parts = answer.map(|message| message.parts.as_slice()).unwrap_or_default();
        let (mut words, mut thinking, mut calls) = (Excerpt::default(), Excerpt::default(), Vec::new());
        for part in parts {
            match part {
                AssistantPart::Text { text, .. } => words.push_str(text),
                AssistantPart::Thinking { text, .. } => thinking.push_str(text),
                AssistantPart::ToolCall { call, .. } => calls.push(call.name.clone()),
                AssistantPart::Opaque(_) => {}
            }
        }
        let answered_by = self.answered_by.clone();
        let what = TrailEvent::ModelTurn {
            turn: self.turns,
            origin: answered_by.as_ref().map(|(origin, _)| (**origin).clone()),
            request_id: answered_by.and_then(|(_, request_id)| request_id),
            text: words,
            thinking,
            calls,
            finish: finish.to_owned(),
            usage,
            duration_ms: times.elapsed_ms(),
        };
        self.note(times.now_ms, what);
    }

    /// Notes a call of the open turn and its result.
    pub(super) fn note_call(&mut self, call: ToolCall, result: &ToolResult, note: Option<CallNote>, times: Times) {
        let sent = matches!(&self.open, Open::Calling { turn, .. } if turn.dispatched.as_ref() == Some(&call.id));
        let sent = sent && self.own_call.as_ref() != Some(&call.id);
        self.note_call_of(call, result, (sent, note), times);
    }

    fn note_call_of(
        &mut self,
        call: ToolCall,
        result: &ToolResult,
        (sent, note): (bool, Option<CallNote>),
        times: Times,
    ) {
        let what = TrailEvent::ToolCall {
            turn: self.turns,
            id: call.id,
            name: call.name,
            arguments: call.input,
            result: result.content.clone(),
            fate: result.fate,
            duration_ms: times.elapsed_ms(),
            sent,
            note,
        };
        self.note(times.now_ms, what);
    }

    /// Notes that the newest payload is what the call of that id has made.
    pub(super) fn note_payload_of(&mut self, call: &ToolCallId) {
        if let (Some(diagnosis), Some(payload)) = (&mut self.diagnosis, self.payloads.last()) {
            diagnosis.made(call, payload);
        }
    }

    /// Notes how the run ended.
    pub(super) fn note_end(&mut self, at_ms: i64, state: RunState, error: Option<&Failure>) {
        let error = error.map(|failure| (failure.code.name().to_owned(), failure.message.clone()));
        self.note(at_ms, TrailEvent::RunEnded { state, error, usage: self.ledger.usage });
    }

    /// Notes another end instead of the one that could not be recorded.
    pub(super) fn note_end_instead(&mut self, at_ms: i64, state: RunState, error: Option<&Failure>) {
        self.trail.pop();
        self.note_end(at_ms, state, error);
    }

    /// Takes back what waits for a decision, since the run ends in another way: what the model reads of it says so.
    pub(super) fn withdraw(&mut self) {
        self.pending.approvals.clear();
        self.pending.others_wait = false;
        let held = std::mem::take(&mut self.pending.held);
        self.answer_instead(&held, &consent::withdrawn());
        if let Some(Paused { call, otherwise, .. }) = self.pending.paused.take() {
            self.answer_instead(&[call], &otherwise);
        }
    }

    /// Takes back the calls that were left to the client, since it does not get them: their result is `output`. Returns
    /// their ids and tools.
    pub(super) fn take_back_left(&mut self, output: &ToolOutput) -> Vec<(ToolCallId, String)> {
        let left = std::mem::take(&mut self.pending.left);
        let ids: Vec<ToolCallId> = left.iter().map(|call| call.id.clone()).collect();
        self.answer_instead(&ids, output);
        left.into_iter().map(|call| (call.id, call.name)).collect()
    }

    /// Gives these calls another result, where that is not committed yet.
    fn answer_instead(&mut self, calls: &[ToolCallId], output: &ToolOutput) {
        let answered = match &mut self.open {
            Open::Calling { turn, .. } => Some(&mut turn.results),
            Open::Nothing | Open::Asking { .. } | Open::Streaming { .. } => None,
        };
        for result in
            self.messages.uncommitted_results().chain(answered).flatten().filter(|result| calls.contains(&result.id))
        {
            result.content.clone_from(&output.content);
            result.fate = output.fate;
        }
        for entry in &mut self.trail {
            if let TrailEvent::ToolCall { id, result, fate, .. } = &mut entry.what
                && calls.contains(id)
            {
                result.clone_from(&output.content);
                *fate = output.fate;
            }
        }
    }

    /// Ends the open turn: the next one has the next number.
    pub(super) fn end_turn(&mut self) {
        self.turns += 1;
    }

    /// Moves the open turn into the transcript: the text of a stream that broke off, or the calls with a result for
    /// each. `finish` says in the trail why it did not end by itself.
    pub(super) fn settle(&mut self, finish: &str, now_ms: i64) {
        let used = self.under_way();
        self.ledger.tally = None;
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Nothing => {}
            Open::Asking { since_ms } => {
                self.note_turn(None, finish, used, Times { since_ms, now_ms });
                self.end_turn();
            }
            Open::Streaming { fold, since_ms } => {
                let partial = fold.partial();
                self.note_turn(partial.as_ref(), finish, used, Times { since_ms, now_ms });
                // It has its price, and its tokens were never reported.
                self.ledger.cost.add(None);
                if let Some(partial) = partial {
                    self.messages.push(Message::Assistant(partial));
                }
                self.end_turn();
            }
            Open::Calling { turn, since_ms } => {
                let calls: Vec<ToolCall> = turn.message.calls().skip(turn.results.len()).cloned().collect();
                let (answered, dispatched) = (turn.results.len(), turn.dispatched.clone());
                let [message, results] = turn.settle();
                if let Message::ToolResults(results) = &results {
                    for (call, result) in calls.into_iter().zip(&results[answered..]) {
                        let sent = dispatched.as_ref() == Some(&call.id) && self.own_call.as_ref() != Some(&call.id);
                        self.note_call_of(call, result, (sent, None), Times { since_ms, now_ms });
                    }
                }
                self.messages.push(message);
                self.messages.push(results);
                self.end_turn();
            }
        }
    }
}

/// When something began, and what time it is now; in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) since_ms: i64,
    pub(super) now_ms: i64,
}

impl Times {
    fn elapsed_ms(self) -> u64 {
        u64::try_from(self.now_ms.saturating_sub(self.since_ms)).unwrap_or(0)
    }
}
