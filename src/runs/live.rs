//! The runs that live in this process: how each is stopped, who reads it, what it has said since its last commit.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::interest::Interest;
use super::log::Writer;
use crate::agent::ports::events::EventSink;
use crate::agent::ports::leases::{Piece, Progress};
use crate::agent::stop::{Stop, StopReason};
use crate::chat::event::AgentEvent;
use crate::chat::ids::RunId;
use crate::observe::ambient;
use crate::observe::metrics::{Ending, RunMeter};

/// A run of this process.
pub(super) struct Live {
    pub(super) id: RunId,
    /// Ends it early.
    pub(super) stop: Stop,
    /// Cancelled when nothing of it is left to commit.
    pub(super) settled: CancellationToken,
    /// Whether the store knows it.
    begun: AtomicBool,
    /// Whether it goes on when nobody reads.
    pub(super) background: bool,
    /// Who reads it.
    pub(super) interest: Interest,
    writer: Arc<dyn Writer>,
    said: Mutex<Said>,
    lease: Lease,
    /// What is measured of it.
    pub(super) meter: RunMeter,
}

/// What the turn that streams has said and is not kept yet.
#[derive(Default)]
struct Said {
    turn: u32,
    /// How much of the turn's text was kept, in bytes.
    kept: u64,
    /// The text after that.
    rest: String,
}

/// How long the run is certainly this process's: a lease that may be over is not used.
struct Lease {
    life: Duration,
    began: Instant,
    /// When it was last renewed, in milliseconds after `began`.
    renewed_ms: AtomicU64,
}

impl Live {
    pub(super) fn new(
        id: RunId,
        background: bool,
        grace: Duration,
        writer: Arc<dyn Writer>,
        lease: Duration,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            stop: Stop::default(),
            settled: CancellationToken::new(),
            begun: AtomicBool::new(false),
            background,
            interest: Interest::new(background, grace),
            writer,
            said: Mutex::default(),
            lease: Lease { life: lease, began: Instant::now(), renewed_ms: AtomicU64::new(0) },
            meter: RunMeter::asked(ambient::dialect()),
        })
    }

    /// The run's log.
    pub(super) fn log(&self) -> &Arc<dyn Writer> {
        &self.writer
    }

    /// What it has said since the last beat that was kept.
    pub(super) fn progress(&self) -> Progress {
        let said = self.said();
        let piece = (!said.rest.is_empty()).then(|| Piece { at: said.kept, text: said.rest.clone() });
        let last_event_id = self.writer.ring().kept_next().checked_sub(1);
        Progress { run: self.id, turn: said.turn, said: piece, last_event_id }
    }

    /// Notes that `progress`, which [`Self::progress`] gave, was kept.
    pub(super) fn has_kept(&self, progress: &Progress) {
        let mut said = self.said();
        let Some(piece) = progress.said.as_ref().filter(|piece| said.turn == progress.turn && said.kept == piece.at)
        else {
            return;
        };
        said.rest.drain(..piece.text.len());
        said.kept += piece.text.len() as u64;
    }

    /// Notes that the store knows it, with a lease since before `since`.
    pub(super) fn has_begun(&self, since: Instant) {
        self.renewed(since);
        self.begun.store(true, Ordering::SeqCst);
    }

    /// Notes that the lease was renewed by a beat that began at `since`.
    pub(super) fn renewed(&self, since: Instant) {
        let ms = u64::try_from(since.saturating_duration_since(self.lease.began).as_millis()).unwrap_or(u64::MAX);
        self.lease.renewed_ms.fetch_max(ms, Ordering::Relaxed);
    }

    fn speaks(&self) {
        if self.meter.speaks() {
            ambient::first_token();
        }
    }

    fn lease_is_over(&self) -> bool {
        let renewed = Duration::from_millis(self.lease.renewed_ms.load(Ordering::Relaxed));
        self.lease.began.elapsed().saturating_sub(renewed) > self.lease.life
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSink for Live {
    /// Passes the event on to the log. A process that was paused finds its lease over, and that somebody else may have
    /// ended the run: it says nothing more, but that.
    fn emit(&self, event: AgentEvent) {
        if let AgentEvent::TurnStarted { turn } = &event {
            *self.said() = Said { turn: *turn, ..Said::default() };
        } else if let AgentEvent::TextDelta { text } = &event {
            self.said().rest.push_str(text);
            self.speaks();
        } else if let AgentEvent::ToolCallStarted { .. } = &event {
            self.speaks();
        } else if let Some(ending) = ending(&event) {
            self.meter.ended(ending);
        }
        if !event.is_terminal() && self.lease_is_over() {
            self.stop.stop(StopReason::Interrupted);
            return;
        }
        self.writer.emit(event);
    }

    fn next_id(&self) -> u64 {
        self.writer.next_id()
    }
}

/// How a run ends with this event.
fn ending(event: &AgentEvent) -> Option<Ending> {
    match event {
        AgentEvent::Finished { .. } => Some(Ending::Completed),
        AgentEvent::AwaitingApproval { .. } => Some(Ending::AwaitingApproval),
        AgentEvent::AwaitingClient { .. } => Some(Ending::AwaitingClient),
        AgentEvent::Failed(_) => Some(Ending::Failed),
        AgentEvent::Cancelled => Some(Ending::Cancelled),
        AgentEvent::Interrupted => Some(Ending::Interrupted),
        AgentEvent::TurnStarted { .. }
        | AgentEvent::TurnEnded { .. }
        | AgentEvent::TextDelta { .. }
        | AgentEvent::ThinkingDelta { .. }
        | AgentEvent::ToolCallStarted { .. }
        | AgentEvent::ToolCallReady { .. }
        | AgentEvent::ToolProgress { .. }
        | AgentEvent::ToolCallHeld { .. }
        | AgentEvent::CallDecided { .. }
        | AgentEvent::ToolCallFinished { .. }
        | AgentEvent::Artifact(_)
        | AgentEvent::Payload(_)
        | AgentEvent::RoundEnded
        | AgentEvent::Suggested(_)
        | AgentEvent::Diagnosed(_) => None,
    }
}

/// All runs of this process.
#[derive(Default)]
pub(super) struct LiveRuns {
    runs: Mutex<HashMap<RunId, Arc<Live>>>,
    /// Told when a run has given its place back.
    left: Notify,
}

/// A run's place among them, given back when nothing of it is left to commit.
pub(super) struct Place {
    runs: Arc<LiveRuns>,
    live: Arc<Live>,
}

impl LiveRuns {
    /// Takes a run in.
    pub(super) fn enter(self: &Arc<Self>, live: Arc<Live>) -> Place {
        self.lock().insert(live.id, live.clone());
        Place { runs: self.clone(), live }
    }

    /// The run of that id, if it lives here.
    pub(super) fn get(&self, run: RunId) -> Option<Arc<Live>> {
        self.lock().get(&run).cloned()
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Arc<Live>> {
        self.lock().values().cloned().collect()
    }

    /// Those that the store knows: of one that is just beginning it would say that it is gone.
    pub(super) fn all_begun(&self) -> Vec<Arc<Live>> {
        self.lock().values().filter(|live| live.begun.load(Ordering::SeqCst)).cloned().collect()
    }

    /// Returns when there is none.
    pub(super) async fn emptied(&self) {
        let mut left = pin!(self.left.notified());
        while !self.lock().is_empty() {
            left.as_mut().await;
            left.set(self.left.notified());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, Arc<Live>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.runs.lock().remove(&self.live.id);
        self.live.settled.cancel();
        self.runs.left.notify_one();
    }
}
