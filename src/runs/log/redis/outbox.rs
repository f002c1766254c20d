//! The events of a run that Redis does not have yet.
//!
//! **Invariant:** an event is numbered and visible to local readers at once, while Redis keeps up. While it does not,
//! pieces of text that follow each other become one before they are numbered: numbers and events are the same wherever
//! they are read.

use std::collections::VecDeque;
use std::sync::Arc;

use super::stream::Batch;
use crate::chat::event::AgentEvent;
use crate::runs::log::ring::{Ring, size};

/// Events that may wait for Redis before pieces of text are joined: 10,000 a second at the usual pace.
const KEEPS_UP: usize = 256;

/// About how many bytes go out in one command: enough for any pace, few enough to be written within its time.
const BATCH_BYTES: usize = 1 << 20;

/// A piece of text that has grown so far is not joined with more.
const PIECE_BYTES: usize = 64 << 10;

/// Bytes that wait at most. A run that says more in the second before an outage is called one is not shared to its end.
const WAITING_BYTES: usize = 64 << 20;

/// The events between a run and Redis.
pub struct Outbox {
    ring: Arc<Ring>,
    /// The number of `waiting[0]`.
    first: u64,
    waiting: VecDeque<Arc<AgentEvent>>,
    waiting_bytes: usize,
    /// A piece of text without a number, that may grow.
    loose: Option<AgentEvent>,
    /// First numbers of the batches whose events the ring still holds, some of them at least.
    batches: VecDeque<u64>,
    /// Whether Redis has been away for so long that nothing waits for it.
    alone: bool,
    /// Whether waiting events are not sent any more.
    local: bool,
    closed: bool,
}

impl Outbox {
    /// An empty outbox for what is appended to `ring`.
    pub fn new(ring: Arc<Ring>) -> Self {
        let first = ring.next_id();
        Self {
            ring,
            first,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            loose: None,
            batches: VecDeque::new(),
            alone: false,
            local: false,
            closed: false,
        }
    }

    /// Takes the next event; tells whether it was the end. What comes after the end is dropped.
    pub fn push(&mut self, event: AgentEvent) -> bool {
        if self.closed {
            return false;
        }
        let Some(event) = self.join(event) else { return false };
        self.number_loose();
        if is_text(&event) && self.waiting.len() >= KEEPS_UP && !self.alone {
            self.loose = Some(event);
            return false;
        }
        self.closed = event.is_terminal();
        self.number(event);
        self.closed
    }

    /// Joins `event` with the loose piece of its kind, or gives it back.
    fn join(&mut self, event: AgentEvent) -> Option<AgentEvent> {
        match (&mut self.loose, event) {
            (Some(AgentEvent::TextDelta { text }), AgentEvent::TextDelta { text: more })
            | (Some(AgentEvent::ThinkingDelta { text }), AgentEvent::ThinkingDelta { text: more })
                if text.len() + more.len() <= PIECE_BYTES =>
            {
                text.push_str(&more);
                None
            }
            (_, event) => Some(event),
        }
    }

    /// Numbers the piece that could have grown.
    pub fn number_loose(&mut self) {
        if let Some(event) = self.loose.take() {
            self.number(event);
        }
    }

    fn number(&mut self, event: AgentEvent) {
        let appended = if self.alone { self.ring.append_kept(event) } else { self.ring.append(event) };
        let Some((id, event)) = appended.filter(|_| !self.local) else { return };
        if self.waiting.is_empty() {
            self.first = id;
        }
        self.waiting_bytes += size(&event);
        self.waiting.push_back(event);
        if self.waiting_bytes > WAITING_BYTES && !self.closed {
            self.waiting.clear();
            self.waiting_bytes = 0;
            self.ring.keep(id + 1);
        }
    }

    /// The next batch, if anything waits.
    pub fn take(&mut self) -> Option<Batch> {
        self.number_loose();
        let mut batch = Batch { first: self.first, events: Vec::new(), end: None };
        let mut bytes = 0;
        while bytes < BATCH_BYTES
            && let Some(event) = self.waiting.pop_front()
        {
            self.first += 1;
            bytes += size(&event);
            if event.is_terminal() {
                batch.end = Some(event);
            } else {
                batch.events.push(event);
            }
        }
        self.waiting_bytes -= bytes;
        (bytes > 0).then_some(batch)
    }

    /// Notes that `batch` goes out. Tells the first number of the oldest batch of which the ring still holds an event,
    /// where there are older ones.
    pub fn keep_from(&mut self, batch: &Batch) -> Option<u64> {
        if !batch.events.is_empty() {
            self.batches.push_back(batch.first);
        }
        let held = self.ring.first_kept();
        let mut dropped = false;
        while self.batches.get(1).is_some_and(|second| *second <= held) {
            self.batches.pop_front();
            dropped = true;
        }
        self.batches.front().copied().filter(|_| dropped)
    }

    /// Redis has everything before `next_id`, and can be waited for again.
    pub fn shared(&mut self, next_id: u64) {
        self.alone = self.local;
        self.ring.keep(next_id);
    }

    /// Nothing waits for Redis from now on.
    pub fn go_on_alone(&mut self) {
        self.alone = true;
        self.number_loose();
        self.ring.keep(self.ring.next_id());
    }

    /// Nothing is sent from now on: all events are for readers here.
    pub fn stay_local(&mut self) {
        self.go_on_alone();
        self.local = true;
        self.waiting.clear();
        self.waiting_bytes = 0;
    }

    /// Takes nothing more, and gives up what waits.
    pub fn close(&mut self) {
        self.closed = true;
        self.loose = None;
        self.waiting.clear();
        self.waiting_bytes = 0;
    }

    /// Ends with the event that another replica has put at `id`.
    pub fn end_elsewhere(&mut self, id: u64, end: AgentEvent) {
        self.close();
        self.ring.end_elsewhere(id, end);
    }

    /// Whether nothing will have to be sent any more.
    pub fn is_over(&self) -> bool {
        self.closed || self.local
    }

    /// Whether it has its end, or would have it at this number; without one it always would.
    pub fn ends_at(&mut self, at: Option<u64>) -> bool {
        self.number_loose();
        self.closed || at.is_none_or(|at| at == self.ring.next_id())
    }
}

fn is_text(event: &AgentEvent) -> bool {
    match event {
        AgentEvent::TextDelta { .. } | AgentEvent::ThinkingDelta { .. } => true,
        AgentEvent::PlaceChanged { .. }
        | AgentEvent::State(_)
        | AgentEvent::Summarising
        | AgentEvent::Summarised
        | AgentEvent::TurnStarted { .. }
        | AgentEvent::TurnEnded { .. }
        | AgentEvent::Notice(_)
        | AgentEvent::ToolCallStarted { .. }
        | AgentEvent::ToolCallReady { .. }
        | AgentEvent::ToolProgress { .. }
        | AgentEvent::ToolCallHeld { .. }
        | AgentEvent::CallDecided { .. }
        | AgentEvent::ToolCallFinished { .. }
        | AgentEvent::Directive(_)
        | AgentEvent::Operation(_)
        | AgentEvent::Artifact(_)
        | AgentEvent::Payload(_)
        | AgentEvent::Plan(_)
        | AgentEvent::Within(_)
        | AgentEvent::RoundEnded
        | AgentEvent::LimitReached
        | AgentEvent::Suggested(_)
        | AgentEvent::Diagnosed(_)
        | AgentEvent::Observed(_)
        | AgentEvent::Finished { .. }
        | AgentEvent::AwaitingApproval { .. }
        | AgentEvent::AwaitingClient { .. }
        | AgentEvent::Failed(_)
        | AgentEvent::Cancelled
        | AgentEvent::Interrupted => false,
    }
}
