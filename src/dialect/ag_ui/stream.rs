//! One AG-UI run as its client sees it. It may be made of several of ours: calls that waited together are decided one
//! after the other, each in a run of its own, and only the last of them ends what the client sees.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};

use super::super::frame;
use super::super::shown::{Shown, ShownCall, ShownState};
use super::events::{Activity, Custom, Event, Interrupt, Outcome, SnapshotCall, SnapshotMessage};
use super::usage::Tally;
use super::{Asker, OpenInterrupts, Version};
use crate::chat::approval::Approval;
use crate::chat::fate::CallFate;

/// The protocol's version here.
const PROTOCOL: &str = "1.0";

/// A run as its client sees it.
#[derive(Clone)]
pub struct Stream {
    asker: Arc<Asker>,
    open: OpenInterrupts,
    so_far: Arc<Mutex<SoFar>>,
}

/// Data of our runs for its end.
#[derive(Default)]
pub(super) struct SoFar {
    pub(super) tally: Tally,
    pub(super) interrupts: Vec<Interrupt>,
    pub(super) pending: Vec<String>,
    /// Whether the newest of them ended well and left the end to the next one.
    pub(super) goes_on: bool,
}

impl Stream {
    /// The run that `asker` wants.
    pub fn new(asker: Asker) -> Self {
        Self { asker: Arc::new(asker), open: OpenInterrupts::Error, so_far: Arc::default() }
    }

    /// The same, with what becomes of an input that leaves an interrupt open.
    pub(super) fn with_open(self, open: OpenInterrupts) -> Self {
        Self { open, ..self }
    }

    /// Whether our newest run of it ended well and left the end to the next one.
    pub fn goes_on(&self) -> bool {
        self.so_far().goes_on
    }

    /// A whole stream that says why nothing was done.
    pub fn refusal(&self, code: &str, message: &str) -> Bytes {
        let mut out = BytesMut::new();
        self.begin(&mut out);
        self.fail(code, message, &mut out);
        out.freeze()
    }

    /// The good end of a stream, where its last run has left that to another one.
    pub fn finished(&self) -> Bytes {
        let mut out = BytesMut::new();
        self.tell_cost(&mut out);
        self.finish(&mut out);
        out.freeze()
    }

    /// The end of a stream that cannot go on.
    pub fn failure(&self, code: &str, message: &str) -> Bytes {
        let mut out = BytesMut::new();
        self.fail(code, message, &mut out);
        out.freeze()
    }

    /// A whole stream in which nothing happens.
    pub fn nothing(&self) -> Bytes {
        self.restored(&[], &[])
    }

    /// A whole stream that does nothing, since calls wait for a person first, and says so. Where that is no error it names
    /// them as interrupts, also to a client that has not heard of them.
    pub fn decide_first(&self, waiting: &[Approval]) -> Bytes {
        self.remember(waiting);
        let questions: Vec<String> =
            self.so_far().interrupts.iter().map(|interrupt| interrupt.message().to_owned()).collect();
        let delta = format!("Nothing was done yet, since a decision is needed first: {}.", questions.join("; "));
        if self.open == OpenInterrupts::Error {
            return self.refusal("open_interrupts", &delta);
        }
        let mut out = BytesMut::new();
        self.begin(&mut out);
        let id = format!("{}.open", self.asker.run);
        for event in [
            Event::TextMessageStart { message_id: &id, role: "assistant" },
            Event::TextMessageContent { message_id: &id, delta: &delta },
            Event::TextMessageEnd { message_id: &id },
        ] {
            frame::write_data(&mut out, None, &event);
        }
        self.finish(&mut out);
        out.freeze()
    }

    /// Notes calls that wait for a person whatever this run does: its good end names them.
    pub fn remember(&self, waiting: &[Approval]) {
        let interrupts =
            waiting.iter().map(|held| Interrupt::from_payload(&held.artifact().payload, held.call.clone()));
        self.so_far().interrupts.extend(interrupts);
    }

    /// A whole stream that shows a thread as it is: its messages, and the calls that wait for a person. Without
    /// messages the client keeps what it has.
    pub fn restored(&self, messages: &[Shown], waiting: &[Approval]) -> Bytes {
        let mut out = BytesMut::new();
        self.begin(&mut out);
        let snapshot: Vec<SnapshotMessage<'_>> = messages.iter().flat_map(snapshot_messages).collect();
        if !snapshot.is_empty() {
            frame::write_data(&mut out, None, &Event::MessagesSnapshot { messages: &snapshot });
        }
        self.remember(waiting);
        self.finish(&mut out);
        out.freeze()
    }

    pub(super) fn is_v1(&self) -> bool {
        self.asker.version == Version::V1
    }

    pub(super) fn so_far(&self) -> MutexGuard<'_, SoFar> {
        self.so_far.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self, out: &mut BytesMut) {
        let protocol_version = self.is_v1().then_some(PROTOCOL);
        let Asker { thread, run, version: _ } = &*self.asker;
        frame::write_data(out, None, &Event::RunStarted { thread_id: thread.as_str(), run_id: run, protocol_version });
    }

    /// Ends it well, with what our runs have left.
    pub(super) fn finish(&self, out: &mut BytesMut) {
        let so_far = self.so_far();
        let outcome = match (so_far.pending.as_slice(), so_far.interrupts.as_slice()) {
            ([], []) => None,
            ([], interrupts) => Some(Outcome::Interrupt { interrupts }),
            // The client makes its calls first; the end of the run that follows names what waits.
            (pending, _) => self.is_v1().then_some(Outcome::Success { pending_tool_call_ids: pending }),
        };
        self.end(outcome, &so_far.tally, out);
    }

    /// Tells the cost of our runs, where their models have prices.
    pub(super) fn tell_cost(&self, out: &mut BytesMut) {
        if let Some(cost) = self.so_far().tally.cost {
            let value = Custom::Cost { usd: cost.usd() };
            frame::write_data(out, None, &Event::Custom { name: "cost", value });
        }
    }

    /// Ends it as cancelled. Clients before 1.0 know no such end.
    pub(super) fn cancel(&self, out: &mut BytesMut) {
        let outcome = self.is_v1().then_some(Outcome::Cancelled);
        self.end(outcome, &self.so_far().tally, out);
    }

    fn end(&self, outcome: Option<Outcome<'_>>, tally: &Tally, out: &mut BytesMut) {
        let Asker { thread, run, version: _ } = &*self.asker;
        let (thread_id, usage) = (thread.as_str(), tally.models.as_slice());
        frame::write_data(out, None, &Event::RunFinished { thread_id, run_id: run, outcome, usage });
    }

    pub(super) fn fail(&self, code: &str, message: &str, out: &mut BytesMut) {
        frame::write_data(out, None, &Event::RunError { message, code });
    }
}

/// A message of a snapshot, the results of its calls, and what they have made. A call that waits has no result yet, every
/// other one has, so that no client takes it for one to make.
fn snapshot_messages(message: &Shown) -> Vec<SnapshotMessage<'_>> {
    match message {
        Shown::User { id, text } => vec![SnapshotMessage::User { id: id.to_string(), content: text }],
        // Notices are events there, and no messages.
        Shown::Assistant { id, text, notices: _, calls } => {
            let content = Some(text.as_str()).filter(|text| !text.is_empty());
            let tool_calls = calls.iter().map(|call| SnapshotCall::new(&call.id, &call.name)).collect();
            let answered = calls.iter().enumerate().flat_map(|(nth, ShownCall { id: call, state, made, name: _ })| {
                let result = format!("{}.r{}.{nth}", id.run, id.seq);
                let told = match state {
                    ShownState::Waits(_) => None,
                    ShownState::Ended(fate) => {
                        Some(SnapshotMessage::Tool { id: result.clone(), tool_call_id: call, content: words(*fate) })
                    }
                };
                let made = made.iter().enumerate().map(move |(nth, artifact)| SnapshotMessage::Activity {
                    id: Activity::id(artifact).unwrap_or_else(|| format!("{result}.a{nth}")),
                    activity_type: &artifact.kind,
                    content: Activity::from_artifact(artifact),
                });
                told.into_iter().chain(made)
            });
            let id = id.to_string();
            std::iter::once(SnapshotMessage::Assistant { id, content, tool_calls }).chain(answered).collect()
        }
    }
}

/// Replaces a call's result in a snapshot, since it is not sent again.
fn words(fate: CallFate) -> &'static str {
    match fate {
        CallFate::Done => r#"{"status":"done"}"#,
        CallFate::Failed => r#"{"status":"failed"}"#,
        CallFate::NotRun | CallFate::AwaitsApproval | CallFate::AwaitsClient => r#"{"status":"not_run"}"#,
        CallFate::Unknown => r#"{"status":"unknown"}"#,
    }
}
