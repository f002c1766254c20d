//! The writing end of a run's stream: what the run says goes to its readers here at once, and to Redis in batches.
//!
//! **Invariant:** a run never waits for Redis. At most one command per [`PACE`] goes out for it; the first one goes at
//! once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{RedisError, RedisResult};
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::outbox::Outbox;
use super::stream::{Appended, Batch, Streams};
use crate::agent::ports::events::EventSink;
use crate::chat::causes::Causes;
use crate::chat::event::AgentEvent;
use crate::chat::ids::RunId;
use crate::observe::metrics;
use crate::runs::log::Writer;
use crate::runs::log::local::LocalLog;
use crate::runs::log::ring::Ring;

/// The time from one command of a run to its next.
pub const PACE: Duration = Duration::from_millis(25);

/// After so long without success nothing waits for Redis.
const PATIENCE: Duration = Duration::from_secs(1);

/// The time from one look at Redis to the next, whatever runs there are.
const LOOK: Duration = Duration::from_secs(2);

/// The time from a command that failed to the next try, before and after patience has ended.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(250));

/// The state that the writers of one log share.
pub struct Shared {
    streams: Arc<Streams>,
    /// Where their rings are held.
    pub near: Arc<LocalLog>,
    /// How long a stream lives after its last batch.
    pub life: Duration,
    /// How long a stream lives after its end.
    pub retention: Duration,
    /// Whether Redis takes nothing, so that an outage is logged once.
    away: AtomicBool,
    closing: CancellationToken,
}

impl Shared {
    /// For writers of `streams`. When `closing` is cancelled, what waits goes out, and nothing is tried twice.
    pub fn new(
        streams: Arc<Streams>,
        near: Arc<LocalLog>,
        life: Duration,
        retention: Duration,
        closing: CancellationToken,
    ) -> Self {
        metrics::redis_up(true);
        Self { streams, near, life, retention, away: AtomicBool::new(false), closing }
    }

    /// Whether Redis takes nothing.
    pub fn is_away(&self) -> bool {
        self.away.load(Ordering::Relaxed)
    }

    /// Looks whether it takes anything, also while no run here has anything for it, until it has to stop.
    pub async fn watch(&self) {
        while self.closing.run_until_cancelled(sleep(LOOK)).await.is_some() {
            match self.closing.run_until_cancelled(self.streams.is_writable(PATIENCE)).await {
                Some(Ok(())) => self.note_back(),
                Some(Err(error)) => self.note_away(&error),
                None => return,
            }
        }
    }

    fn note_away(&self, error: &RedisError) {
        if !self.away.swap(true, Ordering::Relaxed) {
            metrics::redis_up(false);
            tracing::warn!(error = %Causes(error), "redis takes no events; runs go on unseen by other replicas");
        }
    }

    fn note_back(&self) {
        if self.away.swap(false, Ordering::Relaxed) {
            metrics::redis_up(true);
            tracing::info!("redis takes events again");
        }
    }
}

/// A run of this process.
pub struct Own {
    run: RunId,
    ring: Arc<Ring>,
    shared: Arc<Shared>,
    outbox: Mutex<Outbox>,
    filled: Notify,
    forgotten: AtomicBool,
}

impl EventSink for Own {
    fn next_id(&self) -> u64 {
        let mut outbox = self.outbox();
        outbox.number_loose();
        drop(outbox);
        self.ring.next_id()
    }

    fn emit(&self, event: AgentEvent) {
        if self.outbox().push(event) {
            self.shared.near.note_end(self.run);
        }
        self.filled.notify_one();
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.ring.stop_writing();
    }
}

impl Writer for Own {
    fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }
}

impl Own {
    /// A run that begins. A task must drive [`Self::flush`].
    pub fn begin(run: RunId, shared: Arc<Shared>) -> Arc<Self> {
        let ring = shared.near.hold(run);
        let outbox = Mutex::new(Outbox::new(ring.clone()));
        Arc::new(Self { run, ring, shared, outbox, filled: Notify::new(), forgotten: AtomicBool::new(false) })
    }

    /// Sends nothing more: later events are for those who read it here already.
    pub fn forget(&self) {
        self.forgotten.store(true, Ordering::Relaxed);
        self.outbox().stay_local();
        self.filled.notify_one();
    }

    /// Ends it for an owner that did not. Tells whether it has an end now; not where that is not number `at`.
    pub fn seal(&self, end: AgentEvent, at: Option<u64>) -> bool {
        let mut outbox = self.outbox();
        if !outbox.ends_at(at) {
            return false;
        }
        if outbox.push(end) {
            self.shared.near.note_end(self.run);
        }
        drop(outbox);
        self.filled.notify_one();
        true
    }

    /// Sends the run's events, until it has ended and Redis knows, or it has to stop.
    pub async fn flush(&self) {
        let mut failing = None;
        while let Some(batch) = self.next_batch().await {
            let sent = Instant::now();
            if !self.share(&batch, &mut failing).await || batch.end.is_some() {
                break;
            }
            tokio::select! {
                () = sleep_until(sent + PACE) => {}
                () = self.shared.closing.cancelled() => {}
            }
        }
        self.outbox().stay_local();
    }

    fn is_forgotten(&self) -> bool {
        self.forgotten.load(Ordering::Relaxed)
    }

    async fn next_batch(&self) -> Option<Batch> {
        loop {
            let filled = self.filled.notified();
            {
                let mut outbox = self.outbox();
                if let Some(batch) = outbox.take() {
                    return Some(batch);
                }
                if outbox.is_over() {
                    return None;
                }
            }
            tokio::select! {
                () = filled => {}
                () = self.shared.closing.cancelled() => return self.outbox().take(),
            }
        }
    }

    /// Brings a batch to Redis. One that Redis does not take in time is given up, unless it ends the run; tells whether
    /// there is a log to go on with.
    async fn share(&self, batch: &Batch, failing: &mut Option<Instant>) -> bool {
        let Shared { streams, near, life, retention, closing, .. } = &*self.shared;
        let began = Instant::now();
        let life = if batch.end.is_some() { *retention } else { *life };
        let keep_from = self.outbox().keep_from(batch);
        let command = streams.append_command(self.run, batch, keep_from, life);
        loop {
            let sent = match &command {
                Ok(command) => self.while_numbering(streams.append(command)).await,
                Err(error) => Err(error.clone()),
            };
            let error = match sent {
                Ok(Appended::Kept) => {
                    *failing = None;
                    self.shared.note_back();
                    self.outbox().shared(batch.next_id());
                    return true;
                }
                Ok(Appended::Sealed(sealed)) => {
                    self.shared.note_back();
                    // Who forgot it here lets it end by itself.
                    if !self.is_forgotten() {
                        self.outbox().end_elsewhere(sealed.number, sealed.end);
                        near.note_end(self.run);
                    }
                    if sealed.forgotten {
                        near.forget(self.run);
                    }
                    return false;
                }
                Err(error) => error,
            };
            let alone = failing.get_or_insert(began).elapsed() >= PATIENCE;
            if alone {
                self.shared.note_away(&error);
                self.outbox().go_on_alone();
            }
            if self.is_forgotten() || closing.is_cancelled() || began.elapsed() > life {
                return false;
            }
            tokio::select! {
                () = sleep(if alone { RETRY.1 } else { RETRY.0 }) => {}
                () = closing.cancelled() => {}
            }
            if alone && batch.end.is_none() {
                return true;
            }
        }
    }

    /// Drives `sending`, while pieces of text that could grow are numbered at the usual pace.
    async fn while_numbering<T>(&self, sending: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
        let mut sending = std::pin::pin!(sending);
        let mut paces = interval(PACE);
        paces.set_missed_tick_behavior(MissedTickBehavior::Delay);
        paces.reset();
        loop {
            tokio::select! {
                answer = &mut sending => return answer,
                _ = paces.tick() => self.outbox().number_loose(),
            }
        }
    }

    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        // Nothing that could panic happens while it is held.
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
