//! The log of a server that stands alone: the rings of its runs, in memory.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use super::ring::Ring;
use super::{EventLog, LogError, Writer};
use crate::agent::ports::events::EventSink;
use crate::chat::event::AgentEvent;
use crate::chat::ids::RunId;

/// Rings of this process's runs.
///
/// **Invariant:** a run that has not ended is never forgotten by itself; one that has is forgotten after its retention, or
/// before that, oldest end first, where all rings together take more than their bound.
pub struct LocalLog {
    run_bytes: usize,
    total_bytes: usize,
    retention: Duration,
    held_bytes: Arc<AtomicUsize>,
    runs: Arc<Mutex<Runs>>,
}

#[derive(Default)]
struct Runs {
    rings: HashMap<RunId, Arc<Ring>>,
    /// In the order in which they ended. A run may have been forgotten since.
    ended: VecDeque<(Instant, RunId)>,
}

impl LocalLog {
    /// An empty log. One run's ring takes `run_bytes` at most, all together `total_bytes` as far as ended runs can be
    /// forgotten for it; 0 is no bound. A run that has ended is kept for `retention`; none is for those who read it already.
    pub fn new(run_bytes: usize, total_bytes: usize, retention: Duration) -> Arc<Self> {
        Arc::new(Self { run_bytes, total_bytes, retention, held_bytes: Arc::default(), runs: Arc::default() })
    }

    /// Forgets ended runs whose time is over at `now`, and more of them where memory is short. Every use of the log does so;
    /// call it now and then for when there is none.
    pub fn sweep(&self, now: Instant) {
        let mut runs = lock(&self.runs);
        while let Some(&(ended, run)) = runs.ended.front() {
            let full = self.total_bytes > 0 && self.held_bytes.load(Ordering::Relaxed) > self.total_bytes;
            if !full && now.saturating_duration_since(ended) < self.retention {
                break;
            }
            runs.ended.pop_front();
            runs.rings.remove(&run);
        }
    }

    /// About how many bytes the events of all runs take.
    pub fn bytes(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl EventLog for LocalLog {
    async fn open(&self, run: RunId) -> Result<Arc<dyn Writer>, LogError> {
        self.sweep(Instant::now());
        let ring = Ring::starting_at(0, self.run_bytes, self.held_bytes.clone());
        lock(&self.runs).rings.insert(run, ring.clone());
        Ok(Arc::new(LocalWriter { run, ring, runs: Arc::downgrade(&self.runs) }))
    }

    async fn find(&self, run: RunId) -> Result<Option<Arc<Ring>>, LogError> {
        self.sweep(Instant::now());
        Ok(lock(&self.runs).rings.get(&run).cloned())
    }

    async fn seal(&self, run: RunId, end: AgentEvent) -> Result<(), LogError> {
        let ring = lock(&self.runs).rings.get(&run).cloned();
        if let Some(ring) = ring {
            append(&ring, end, run, &self.runs);
        }
        Ok(())
    }

    async fn followed(&self) -> Vec<RunId> {
        Vec::new()
    }

    async fn sweep(&self) {
        Self::sweep(self, Instant::now());
    }

    async fn close(&self) {}

    async fn forget(&self, run: RunId) {
        let ring = lock(&self.runs).rings.remove(&run);
        if let Some(ring) = ring {
            ring.lose();
        }
    }
}

struct LocalWriter {
    run: RunId,
    ring: Arc<Ring>,
    /// A writer that outlives its log has nowhere to note the end.
    runs: Weak<Mutex<Runs>>,
}

impl EventSink for LocalWriter {
    fn emit(&self, event: AgentEvent) {
        if event.is_terminal()
            && let Some(runs) = self.runs.upgrade()
        {
            append(&self.ring, event, self.run, &runs);
        } else {
            self.ring.append_kept(event);
        }
    }

    fn next_id(&self) -> u64 {
        self.ring.next_id()
    }
}

impl Writer for LocalWriter {
    fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }
}

/// Appends an event that ends the run, and notes when that was.
fn append(ring: &Ring, end: AgentEvent, run: RunId, runs: &Mutex<Runs>) {
    if ring.append_kept(end).is_some() {
        lock(runs).ended.push_back((Instant::now(), run));
    }
}

fn lock(runs: &Mutex<Runs>) -> MutexGuard<'_, Runs> {
    // Nothing that could panic happens while it is held.
    runs.lock().unwrap_or_else(PoisonError::into_inner)
}
