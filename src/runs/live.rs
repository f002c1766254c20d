//! The runs that live in this process: how each is stopped, its readers, its text since the last commit.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::config::{RunBounds, Settings};
use super::interest::Interest;
use super::log::Writer;
use super::log::ring::size;
use crate::agent::ports::events::EventSink;
use crate::agent::ports::leases::{Piece, Progress};
use crate::agent::turn::stop::{Stop, StopReason};
use crate::chat::event::AgentEvent;
use crate::chat::ids::RunId;
use crate::chat::run::RunState;
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
    /// Whether it goes on without readers.
    pub(super) background: bool,
    /// Its readers.
    pub(super) interest: Interest,
    writer: Arc<dyn Writer>,
    draft: Mutex<Draft>,
    lease: Lease,
    /// Its measurements.
    pub(super) meter: RunMeter,
    length: Length,
}

/// How much the run has emitted, and may emit.
struct Length {
    most_events: u64,
    most_bytes: u64,
    bytes: AtomicU64,
}

impl Length {
    fn from_bounds(bounds: &RunBounds) -> Self {
        let most = |bound: u64| if bound == 0 { u64::MAX } else { bound };
        Self { most_events: most(bounds.run_events), most_bytes: most(bounds.run_bytes), bytes: AtomicU64::new(0) }
    }

    /// Whether `event`, the number `id`, may still be emitted. An end always may, and has its number in reserve.
    fn allows(&self, id: u64, event: &AgentEvent) -> bool {
        let fits = self.takes(size(event));
        event.is_terminal() || (id.saturating_add(1) < self.most_events && fits)
    }

    /// Counts so many bytes; whether there may be as many as there are now.
    fn takes(&self, bytes: usize) -> bool {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= self.most_bytes
    }
}

/// The text of the turn that streams which is not kept yet.
#[derive(Default)]
struct Draft {
    turn: u32,
    /// How much of the turn's text was kept, in bytes.
    kept: u64,
    /// The text after that.
    rest: String,
    /// Whether there was more of it than is kept between two beats.
    is_cut: bool,
}

/// 2 MiB between two beats, which are a second apart: far more than a model writes. The text behind them is in the
/// answer when its turn ends; it is lost when the process dies before.
const MOST_BETWEEN_BEATS: usize = 2 << 20;

impl Draft {
    fn add(&mut self, text: &str) {
        self.is_cut |= self.rest.len() + text.len() > MOST_BETWEEN_BEATS;
        if !self.is_cut {
            self.rest.push_str(text);
        }
    }
}

/// How long the run is certainly this process's: a lease that may be over is not used.
struct Lease {
    life: Duration,
    began: Instant,
    /// When it was last renewed, in milliseconds after `began`.
    renewed_ms: AtomicU64,
}

impl Live {
    pub(super) fn new(id: RunId, background: bool, writer: Arc<dyn Writer>, settings: &Settings) -> Arc<Self> {
        let Settings { grace, lease, bounds, .. } = settings;
        Arc::new(Self {
            id,
            stop: Stop::default(),
            settled: CancellationToken::new(),
            begun: AtomicBool::new(false),
            background,
            interest: Interest::new(background, *grace),
            writer,
            draft: Mutex::default(),
            lease: Lease { life: *lease, began: Instant::now(), renewed_ms: AtomicU64::new(0) },
            meter: RunMeter::requested(ambient::dialect()),
            length: Length::from_bounds(bounds),
        })
    }

    /// The run's log.
    pub(super) fn log(&self) -> &Arc<dyn Writer> {
        &self.writer
    }

    /// Its text since the last beat that was kept.
    pub(super) fn progress(&self) -> Progress {
        let draft = self.draft();
        let piece = (!draft.rest.is_empty()).then(|| Piece { at: draft.kept, text: draft.rest.clone() });
        let last_event_id = self.writer.ring().kept_next().checked_sub(1);
        Progress { run: self.id, turn: draft.turn, piece, last_event_id }
    }

    /// Notes that `progress`, which [`Self::progress`] gave, was kept.
    pub(super) fn has_kept(&self, progress: &Progress) {
        let mut draft = self.draft();
        let Some(piece) = progress.piece.as_ref().filter(|piece| draft.turn == progress.turn && draft.kept == piece.at)
        else {
            return;
        };
        draft.rest.drain(..piece.text.len());
        draft.kept += piece.text.len() as u64;
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

    fn draft(&self) -> MutexGuard<'_, Draft> {
        self.draft.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSink for Live {
    /// Passes the event on to the log. A process that was paused finds its lease over, and another one may have ended
    /// the run: it emits nothing more, but that.
    fn emit(&self, event: AgentEvent) {
        if let AgentEvent::TurnStarted { turn } = &event {
            *self.draft() = Draft { turn: *turn, ..Draft::default() };
        } else if let AgentEvent::TextDelta { text } = &event {
            self.draft().add(text);
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
        if !self.length.allows(self.writer.next_id(), &event) {
            self.stop.stop(StopReason::OverLength);
            return;
        }
        self.writer.emit(event);
    }

    fn holds(&self, bytes: usize) -> bool {
        let fits = bytes == 0 || self.length.takes(bytes);
        if !fits {
            self.stop.stop(StopReason::OverLength);
        }
        fits
    }

    fn next_id(&self) -> u64 {
        self.writer.next_id()
    }

    fn has_lease(&self) -> bool {
        !self.lease_is_over()
    }
}

/// How a run ends with this event, for its meter.
fn ending(event: &AgentEvent) -> Option<Ending> {
    if matches!(event, AgentEvent::AwaitingClient { .. }) {
        return Some(Ending::AwaitingClient);
    }
    match event.ends_as()? {
        RunState::Completed => Some(Ending::Completed),
        RunState::AwaitingApproval => Some(Ending::AwaitingApproval),
        RunState::Failed => Some(Ending::Failed),
        RunState::Cancelled => Some(Ending::Cancelled),
        RunState::Interrupted => Some(Ending::Interrupted),
        RunState::Queued | RunState::Running => None,
    }
}

/// All runs of this process.
#[derive(Default)]
pub(super) struct LiveRuns {
    runs: Mutex<HashMap<RunId, Arc<Live>>>,
    /// Notified when a run has given its permit back.
    left: Notify,
}

/// A run's permit, given back when nothing of it is left to commit.
pub(super) struct LivePermit {
    runs: Arc<LiveRuns>,
    live: Arc<Live>,
}

impl LiveRuns {
    /// Takes a run in, unless there are as many as `most`; 0 is no limit.
    pub(super) fn enter(self: &Arc<Self>, live: Arc<Live>, most: usize) -> Option<LivePermit> {
        let mut runs = self.lock();
        if most != 0 && runs.len() >= most {
            return None;
        }
        runs.insert(live.id, live.clone());
        Some(LivePermit { runs: self.clone(), live })
    }

    /// Whether there are as many as `most`; 0 is no limit.
    pub(super) fn is_full(&self, most: usize) -> bool {
        most != 0 && self.lock().len() >= most
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

impl Drop for LivePermit {
    fn drop(&mut self) {
        self.runs.lock().remove(&self.live.id);
        self.live.settled.cancel();
        self.runs.left.notify_one();
    }
}
