//! The events of one run, numbered and bounded, and the readers that follow them.
//!
//! A ring has two marks. Everything before its head was appended; everything before `kept` could also be had from
//! another replica. In the local log both are the same; in a shared one `kept` follows.
//!
//! **Invariant:** an event's number never changes, and a reader is given numbers without a gap, or is lost.
//! **Invariant:** there is one terminal event at most; it is the last, and every reader that is not lost gets it once.
//! **Invariant:** a reader of kept events never gets an event whose number the log does not know, except while the log
//! has been out of reach for so long that its writer goes on without it.

mod reader;
mod size;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::chat::event::AgentEvent;
use crate::observe::metrics;

pub use reader::{Next, Reader, Sees};
pub(in crate::runs) use size::size;

/// The events of one run that are in memory, oldest out first.
///
/// **Invariant:** it never holds more than its bound, except that the newest event always stays, however large.
pub struct Ring {
    max_bytes: usize,
    /// The bytes of all rings of one log.
    shared_bytes: Arc<AtomicUsize>,
    state: Mutex<State>,
    changed: Arc<Notify>,
}

struct State {
    /// The number of `events[0]`, or the next one's where nothing is held.
    first: u64,
    events: VecDeque<Arc<AgentEvent>>,
    /// Events with lower numbers can be had elsewhere too.
    kept: u64,
    bytes: usize,
    /// The terminal event's number.
    end: Option<u64>,
    /// Whether it has a writer, which will give it an end.
    written: bool,
    /// Whether its log holds it no longer.
    forgotten: bool,
    lost: bool,
}

impl State {
    /// Wakes readers when the ring will never get an end.
    fn lose_if_orphaned(&mut self) {
        self.lost |= self.forgotten && !self.written && self.end.is_none();
    }

    fn next_id(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    fn get(&self, id: u64) -> Option<&Arc<AgentEvent>> {
        self.events.get(usize::try_from(id.checked_sub(self.first)?).ok()?)
    }
}

impl Ring {
    /// An empty ring for about `max_bytes` of events, numbered from 0; 0 is no bound.
    pub fn new(max_bytes: usize) -> Arc<Self> {
        Self::starting_at(0, max_bytes, Arc::default())
    }

    /// An empty ring whose first event will have the number `first`; `shared_bytes` counts what it holds with all
    /// others.
    pub(super) fn starting_at(first: u64, max_bytes: usize, shared_bytes: Arc<AtomicUsize>) -> Arc<Self> {
        let state = State {
            first,
            events: VecDeque::new(),
            kept: first,
            bytes: 0,
            end: None,
            written: false,
            forgotten: false,
            lost: false,
        };
        Arc::new(Self { max_bytes, shared_bytes, state: Mutex::new(state), changed: Arc::default() })
    }

    /// The number that the next event will get, which is how many there have been.
    pub fn next_id(&self) -> u64 {
        self.lock().next_id()
    }

    /// The number after the last event that other replicas have too: the newest that a client may know, since it may
    /// ask any of them. Where they have been out of reach for long, it is the next one's.
    pub fn kept_next(&self) -> u64 {
        self.lock().kept
    }

    /// The number of the oldest event that is still held; the next one's where none is.
    pub fn first_kept(&self) -> u64 {
        self.lock().first
    }

    /// The terminal event, when there is one.
    pub fn end(&self) -> Option<Arc<AgentEvent>> {
        let state = self.lock();
        state.get(state.end?).cloned()
    }

    /// About how many bytes its events take.
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Whether its readers have to look elsewhere.
    pub fn is_lost(&self) -> bool {
        self.lock().lost
    }

    /// Waits until every event numbered less than `next_id` was appended, or until the ring has ended or is lost, after
    /// which nothing comes.
    pub async fn reaches(&self, next_id: u64) {
        loop {
            let changed = self.changed.notified();
            {
                let state = self.lock();
                if state.next_id() >= next_id || state.end.is_some() || state.lost {
                    return;
                }
            }
            changed.await;
        }
    }

    /// Appends the next event, which is kept elsewhere later; gives its number. `None`, and nothing happens, after the
    /// end.
    pub(super) fn append(&self, event: AgentEvent) -> Option<(u64, Arc<AgentEvent>)> {
        self.push(event, false)
    }

    /// Appends the next event, which is as safe as it gets; gives its number. `None`, and nothing happens, after the
    /// end.
    pub(super) fn append_kept(&self, event: AgentEvent) -> Option<(u64, Arc<AgentEvent>)> {
        self.push(event, true)
    }

    fn push(&self, event: AgentEvent, kept: bool) -> Option<(u64, Arc<AgentEvent>)> {
        let pushed = {
            let mut state = self.lock();
            self.push_into(&mut state, event, kept)?
        };
        self.changed.notify_waiters();
        Some(pushed)
    }

    fn push_into(&self, state: &mut State, event: AgentEvent, kept: bool) -> Option<(u64, Arc<AgentEvent>)> {
        if state.end.is_some() || state.lost {
            return None;
        }
        let (id, bytes) = (state.next_id(), size(&event));
        let event = Arc::new(event);
        state.events.push_back(event.clone());
        state.bytes += bytes;
        self.shared_bytes.fetch_add(bytes, Ordering::Relaxed);
        if event.is_terminal() {
            state.end = Some(id);
        }
        if kept {
            state.kept = id + 1;
        }
        self.evict(state);
        Some((id, event))
    }

    fn evict(&self, state: &mut State) {
        let first = state.first;
        while self.max_bytes > 0 && state.bytes > self.max_bytes && state.events.len() > 1 {
            let Some(oldest) = state.events.pop_front() else { break };
            state.first += 1;
            self.forget_bytes(state, &oldest);
        }
        metrics::events_evicted(state.first - first);
    }

    fn forget_bytes(&self, state: &mut State, event: &AgentEvent) {
        let bytes = size(event);
        state.bytes -= bytes;
        self.shared_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Every event numbered less than `next_id` can be had elsewhere now.
    pub(super) fn keep(&self, next_id: u64) {
        {
            let mut state = self.lock();
            state.kept = state.kept.max(next_id.min(state.next_id()));
        }
        self.changed.notify_waiters();
    }

    /// Ends the ring with the event that another replica has put at `id`: own events from there on, also an end, which
    /// no other reader will ever see, are taken back as far as no reader can have their numbers. It does nothing after
    /// an end that is kept.
    pub(super) fn end_elsewhere(&self, id: u64, end: AgentEvent) {
        {
            let mut state = self.lock();
            if state.end.is_some_and(|end| end < state.kept) || state.lost {
                return;
            }
            state.end = None;
            let stays = id.max(state.kept).max(state.first);
            while state.next_id() > stays {
                let Some(newest) = state.events.pop_back() else { break };
                self.forget_bytes(&mut state, &newest);
            }
            self.push_into(&mut state, end, true);
        }
        self.changed.notify_waiters();
    }

    /// Ends the ring for a writer that is gone. Where the end is not number `at`, the ring is not whole, and its
    /// readers are lost. Nothing happens after an end. Tells whether this is its end.
    pub(super) fn seal(&self, end: AgentEvent, at: Option<u64>) -> bool {
        let sealed = {
            let mut state = self.lock();
            if state.end.is_none() && at.is_some_and(|at| at != state.next_id()) {
                state.lost = true;
            }
            self.push_into(&mut state, end, true).is_some()
        };
        self.changed.notify_waiters();
        sealed
    }

    /// It has a writer from now on.
    pub(super) fn begin_writing(&self) {
        self.lock().written = true;
    }

    /// It has no writer any more. It may still be sealed, unless it is forgotten.
    pub(super) fn stop_writing(&self) {
        {
            let mut state = self.lock();
            state.written = false;
            state.lose_if_orphaned();
        }
        self.changed.notify_waiters();
    }

    /// No reader comes any more. Those who are there read on to its end, where a writer will give it one.
    pub(super) fn forget(&self) {
        {
            let mut state = self.lock();
            state.forgotten = true;
            state.lose_if_orphaned();
        }
        self.changed.notify_waiters();
    }

    /// All readers, now and later, are lost. Events that were appended before are given up.
    pub(in crate::runs) fn lose(&self) {
        self.lock().lost = true;
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that could panic happens while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let bytes = self.lock().bytes;
        self.shared_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}
