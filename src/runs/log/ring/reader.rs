//! A reader's position in a ring: the events it has got, the next ones that it may see, and the end.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::future::poll_fn;
use tokio::sync::futures::OwnedNotified;

use super::Ring;
use crate::chat::event::AgentEvent;

/// Events that a reader takes at a time: enough that a replay seldom locks, few enough that a slow reader keeps little
/// alive.
const BATCH: usize = 64;

/// The events that a reader may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sees {
    /// Every event at once: for readers that never come back with a number.
    Everything,
    /// Events that other replicas have too: for readers that may go on there after the last number they got.
    Kept,
}

/// An item of a reader.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// The next event.
    Event {
        /// Its number.
        id: u64,
        /// It.
        event: Arc<AgentEvent>,
    },
    /// The next event is not held any more, or never came here: begin anew from the store. Nothing follows.
    Lost,
    /// The terminal event was given. Nothing follows.
    Ended,
}

/// Follows a ring from some event on.
pub struct Reader {
    ring: Arc<Ring>,
    sees: Sees,
    next: u64,
    taken: VecDeque<Arc<AgentEvent>>,
    /// Whether it began among events that were there, none of them the end: then the end is still to be given.
    awaits_end: bool,
    /// Its only item from now on.
    over: Option<Next>,
    /// Done when something has changed since it was made.
    changed: Pin<Box<OwnedNotified>>,
}

impl Reader {
    /// A reader that is first given the event numbered `next`. It may not have come yet.
    pub fn new(ring: Arc<Ring>, next: u64, sees: Sees) -> Self {
        let awaits_end = {
            let state = ring.lock();
            state.end.map_or(next <= state.next_id(), |end| next <= end)
        };
        let changed = Box::pin(Arc::clone(&ring.changed).notified_owned());
        Self { ring, sees, next, taken: VecDeque::new(), awaits_end, over: None, changed }
    }

    /// The next item, if it is there.
    pub fn try_next(&mut self) -> Option<Next> {
        if self.taken.is_empty()
            && let Some(last) = self.take()
        {
            return Some(last);
        }
        let event = self.taken.pop_front()?;
        let id = self.next;
        self.next += 1;
        if event.is_terminal() {
            self.over = Some(Next::Ended);
        }
        Some(Next::Event { id, event })
    }

    /// Fills `taken` with what may be seen, or tells that nothing more will come.
    fn take(&mut self) -> Option<Next> {
        if self.over.is_some() {
            return self.over.clone();
        }
        let state = self.ring.lock();
        if let Some(end) = state.end
            && self.next > end
        {
            if !self.awaits_end {
                // A number beyond the end is none that this log has given.
                self.over = Some(if self.next > end + 1 { Next::Lost } else { Next::Ended });
                return self.over.clone();
            }
            // Its last events were taken back, since the run had been ended elsewhere; they had no numbers for it.
            self.next = end;
        }
        if state.lost || self.next < state.first {
            self.over = Some(Next::Lost);
            return self.over.clone();
        }
        let seen = match self.sees {
            Sees::Everything => state.next_id(),
            Sees::Kept => state.kept,
        };
        let from = usize::try_from(self.next - state.first).unwrap_or(usize::MAX);
        let to =
            usize::try_from(seen.saturating_sub(state.first)).unwrap_or(usize::MAX).min(from.saturating_add(BATCH));
        if from < to {
            self.taken.extend(state.events.range(from..to).cloned());
        }
        None
    }

    /// The next item; the task is woken when there is one.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        loop {
            if let Some(next) = self.try_next() {
                return Poll::Ready(next);
            }
            // It is there since before that look: what was appended behind it has ended the wait already.
            ready!(self.changed.as_mut().poll(cx));
            self.changed.set(Arc::clone(&self.ring.changed).notified_owned());
        }
    }

    /// Waits for what comes next. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Next {
        poll_fn(|cx| self.poll_next(cx)).await
    }
}
