//! Reading a run: where a reader stands in its log, and its hold on the run.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use super::live::Live;
use super::log::ring::{Next, Reader};
use super::starts::Rate;
use crate::agent::turn::stop::StopReason;
use crate::chat::ids::{ConversationId, RunId};

/// A reader of a run. Dropping it may cancel the run.
pub struct Attached {
    /// The run.
    pub run: RunId,
    /// The conversation, which may be new.
    pub conversation: ConversationId,
    /// The request that began the run; its stream names it to every reader.
    pub request_id: String,
    /// Whether the run goes on without readers.
    pub background: bool,
    /// Whether it lives in this process.
    pub is_local: bool,
    /// How often its user may begin a run, where this answer has begun one and that is counted.
    pub rate: Option<Rate>,
    is_over: bool,
    reader: Reader,
    _hold: Option<Hold>,
    _seat: Seat,
}

impl Attached {
    pub(super) fn new(of: Of, reader: Reader, (seat, hold): (Seat, Option<Hold>), is_over: bool) -> Self {
        let Of { run, conversation, request_id, background } = of;
        Self {
            run,
            conversation,
            request_id,
            background,
            is_local: hold.is_some(),
            rate: None,
            is_over,
            reader,
            _hold: hold,
            _seat: seat,
        }
    }

    /// Whether it began after the terminal event: nothing will ever come.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The next event, when there is one. Cancelling it loses nothing.
    pub async fn next(&mut self) -> Next {
        self.reader.next().await
    }

    /// The same, for whoever is polled.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        self.reader.poll_next(cx)
    }

    /// The next event, if it is there.
    pub fn try_next(&mut self) -> Option<Next> {
        self.reader.try_next()
    }
}

/// The run that is read.
pub(super) struct Of {
    pub(super) run: RunId,
    pub(super) conversation: ConversationId,
    pub(super) request_id: String,
    pub(super) background: bool,
}

/// How many read each run here, whoever runs it.
pub(super) struct Seats {
    /// Readers of one run; 0 is no limit.
    most: u32,
    taken: Mutex<HashMap<RunId, u32>>,
}

impl Seats {
    pub(super) fn new(most: u32) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default() })
    }

    /// A seat at `run`, if there is one left.
    pub(super) fn take(self: &Arc<Self>, run: RunId) -> Option<Seat> {
        let mut taken = self.lock();
        let count = taken.entry(run).or_default();
        if self.most != 0 && *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Seat { seats: self.clone(), run })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, u32>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reader's seat at a run, given back when dropped.
pub(super) struct Seat {
    seats: Arc<Seats>,
    run: RunId,
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Entry::Occupied(mut count) = self.seats.lock().entry(self.run) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// Keeps a run of this process alive while it has a reader.
pub(super) struct Hold(Arc<Live>);

impl Hold {
    /// A hold on `live`.
    pub(super) fn new(live: Arc<Live>) -> Self {
        live.interest.came();
        Self(live)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // With a grace it is the keeper who sees that it is over.
        if self.0.interest.went() {
            self.0.stop.stop(StopReason::Cancelled);
        }
    }
}
