//! The log of a server that stands alone: the rings of its runs, in memory.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use super::ring::Ring;
use super::{EventLog, LogError, LogUpkeep, Writer};
use crate::agent::ports::events::EventSink;
use crate::chat::event::AgentEvent;
use crate::chat::ids::RunId;

/// Rings of this process's runs.
///
/// **Invariant:** a run that has not ended is never forgotten by itself; one that has is forgotten after its retention,
/// or before that, oldest end first, where all rings together take more than their bound.
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
    /// forgotten for it; 0 is no bound. A run that has ended is kept for `retention`; none is for those who read it
    /// already.
    pub fn new(run_bytes: usize, total_bytes: usize, retention: Duration) -> Arc<Self> {
        Arc::new(Self { run_bytes, total_bytes, retention, held_bytes: Arc::default(), runs: Arc::default() })
    }

    /// Forgets ended runs whose time is over at `now`, and more of them where memory is short. Every use of the log
    /// does so; call it now and then for when there is none.
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

    /// An empty ring that counts among this log's, without being held by it.
    pub(super) fn ring_from(&self, first: u64) -> Arc<Ring> {
        Ring::starting_at(first, self.run_bytes, self.held_bytes.clone())
    }

    /// Holds a new run's ring.
    pub(super) fn hold(&self, run: RunId) -> Arc<Ring> {
        self.sweep(Instant::now());
        let ring = self.ring_from(0);
        let other = lock(&self.runs).rings.insert(run, ring.clone());
        if let Some(other) = other {
            // There is one writer; whoever reads another's ring would wait for ever.
            other.lose();
        }
        ring.begin_writing();
        ring
    }

    /// The ring of a run, as long as it is held.
    pub(super) fn held(&self, run: RunId) -> Option<Arc<Ring>> {
        self.sweep(Instant::now());
        lock(&self.runs).rings.get(&run).cloned()
    }

    /// Begins the retention of a run that has ended.
    pub(super) fn note_end(&self, run: RunId) {
        note_end(&self.runs, run);
    }

    /// Forgets a run at once, its readers lose their position.
    pub(super) fn lose(&self, run: RunId) {
        let ring = lock(&self.runs).rings.remove(&run);
        if let Some(ring) = ring {
            ring.lose();
        }
    }

    /// Forgets a run at once; who reads it already may read on.
    pub(super) fn forget(&self, run: RunId) {
        let ring = lock(&self.runs).rings.remove(&run);
        if let Some(ring) = ring {
            ring.forget();
        }
    }
}

#[async_trait]
impl LogUpkeep for LocalLog {
    async fn followed(&self) -> Vec<RunId> {
        Vec::new()
    }

    async fn sweep(&self) {
        Self::sweep(self, Instant::now());
    }

    fn bytes(&self) -> usize {
        Self::bytes(self)
    }

    async fn close(&self) {}
}

#[async_trait]
impl EventLog for LocalLog {
    async fn open(&self, run: RunId) -> Result<Arc<dyn Writer>, LogError> {
        Ok(Arc::new(LocalWriter { run, ring: self.hold(run), runs: Arc::downgrade(&self.runs) }))
    }

    async fn find(&self, run: RunId) -> Result<Option<Arc<Ring>>, LogError> {
        Ok(self.held(run))
    }

    async fn seal(&self, run: RunId, end: AgentEvent, at: Option<u64>) -> Result<(), LogError> {
        let ring = lock(&self.runs).rings.get(&run).cloned();
        let Some(ring) = ring else { return Ok(()) };
        if ring.seal(end, at) {
            self.note_end(run);
        } else if ring.is_lost() {
            self.lose(run);
        }
        Ok(())
    }

    async fn forget(&self, runs: &[RunId]) {
        runs.iter().for_each(|run| Self::forget(self, *run));
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
        let terminal = event.is_terminal();
        if self.ring.append_kept(event).is_some()
            && terminal
            && let Some(runs) = self.runs.upgrade()
        {
            note_end(&runs, self.run);
        }
    }

    fn next_id(&self) -> u64 {
        self.ring.next_id()
    }
}

impl Drop for LocalWriter {
    fn drop(&mut self) {
        self.ring.stop_writing();
    }
}

impl Writer for LocalWriter {
    fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }
}

fn note_end(runs: &Mutex<Runs>, run: RunId) {
    lock(runs).ended.push_back((Instant::now(), run));
}

fn lock(runs: &Mutex<Runs>) -> MutexGuard<'_, Runs> {
    // Nothing that could panic happens while it is held.
    runs.lock().unwrap_or_else(PoisonError::into_inner)
}
