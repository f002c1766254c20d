//! The log that replicas share: every run's events go to Redis too, where each replica finds the runs of all others.
//!
//! **Invariant:** Redis is a cache. Without it a run goes on, its readers here see everything, and readers elsewhere
//! are lost; a run that has not begun does not begin. When Redis answers again, so does everything here.
//! **Invariant:** an event has the same number on every replica.
//! **Invariant:** a stream that is there may begin late, but its events are right. Where it vanished in mid-run, since
//! Redis was emptied or another replica gave it up, its owner begins it anew with its next events under their own
//! numbers. Only a run that was forgotten does not come back: for a minute its stream is an end, which refuses its
//! owner.

mod link;
mod mirror;
mod outbox;
mod script;
pub mod starts;
mod stream;
mod writer;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::local::LocalLog;
use super::ring::Ring;
use super::{EventLog, LogError, LogUpkeep, Writer};
use crate::chat::causes::Causes;
use crate::chat::event::AgentEvent;
use crate::chat::ids::RunId;
use mirror::Mirrors;
use stream::{Sealed, Streams};
use writer::{Own, Shared};

/// How long a run that begins waits for Redis to answer.
const OPEN: Duration = Duration::from_millis(500);

/// The least time that a stream outlives its end, so that whoever follows it on another replica sees how it ended, even
/// when Redis has just been away for as long as followers wait.
const LEAST_RETENTION: Duration = Duration::from_secs(5);

/// The bounds of a shared log.
#[derive(Debug, Clone)]
pub struct MirrorBounds {
    /// Bytes of one run, here and, roughly, in Redis; 0 is no bound.
    pub run_bytes: usize,
    /// Bytes of all runs in this process, as far as ended ones can be forgotten for it; 0 is no bound.
    pub total_bytes: usize,
    /// How long a run that has ended is kept: five seconds at least in Redis.
    pub retention: Duration,
    /// How long a run that says nothing is kept; longer than any run is silent.
    pub life: Duration,
}

/// The log of one of several replicas.
pub struct RedisLog {
    shared: Arc<Shared>,
    streams: Arc<Streams>,
    mirrors: Arc<Mirrors>,
    own: Arc<Mutex<HashMap<RunId, Arc<Own>>>>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl RedisLog {
    /// A log in the Redis at `url` (`redis://`, `rediss://`, `redis+unix://`), under keys that begin with `prefix`.
    /// Redis is dialled when it is needed. Must be called in a runtime; [`Self::close`] waits for what it starts.
    ///
    /// # Errors
    /// When the URL is not understood.
    pub fn connect(url: &str, prefix: &str, bounds: &MirrorBounds) -> Result<Arc<Self>, LogError> {
        let streams = Arc::new(Streams::new(url, prefix).map_err(unavailable)?);
        let near = LocalLog::new(bounds.run_bytes, bounds.total_bytes, bounds.retention);
        let mirrors = Mirrors::new(streams.clone(), near.clone());
        let (tasks, closing) = (TaskTracker::new(), CancellationToken::new());
        let retention = bounds.retention.max(LEAST_RETENTION);
        let life = bounds.life.max(LEAST_RETENTION);
        let shared = Shared::new(streams.clone(), near, life, retention, closing.clone());
        let (followed, until) = (mirrors.clone(), closing.clone());
        tasks.spawn(async move { followed.follow(&until).await }.in_current_span());
        let shared = Arc::new(shared);
        let watched = shared.clone();
        tasks.spawn(async move { watched.watch().await }.in_current_span());
        Ok(Arc::new(Self { shared, streams, mirrors, own: Arc::default(), tasks, closing }))
    }
}

#[async_trait]
impl LogUpkeep for RedisLog {
    async fn followed(&self) -> Vec<RunId> {
        self.mirrors.followed()
    }

    async fn sweep(&self) {
        self.shared.near.sweep(Instant::now());
    }

    fn is_away(&self) -> bool {
        self.shared.is_away()
    }

    fn bytes(&self) -> usize {
        self.shared.near.bytes()
    }

    /// Sends what waits, as far as Redis takes it now, and ends all tasks. Readers of other replicas' runs are lost,
    /// and no run begins any more.
    async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

#[async_trait]
impl EventLog for RedisLog {
    async fn open(&self, run: RunId) -> Result<Arc<dyn Writer>, LogError> {
        if self.closing.is_cancelled() {
            return Err(LogError("the event log is closed".into()));
        }
        self.streams.open(run, self.shared.life, OPEN).await.map_err(unavailable)?;
        let writer = Own::begin(run, self.shared.clone());
        lock(&self.own).insert(run, writer.clone());
        let (flushed, own) = (writer.clone(), self.own.clone());
        let flush = async move {
            flushed.flush().await;
            lock(&own).remove(&run);
        };
        self.tasks.spawn(flush.in_current_span());
        Ok(writer)
    }

    async fn find(&self, run: RunId) -> Result<Option<Arc<Ring>>, LogError> {
        match self.shared.near.held(run) {
            Some(ring) => Ok(Some(ring)),
            None => self.mirrors.find(run).await.map_err(unavailable),
        }
    }

    async fn seal(&self, run: RunId, end: AgentEvent, at: Option<u64>) -> Result<(), LogError> {
        let own = lock(&self.own).get(&run).cloned();
        if let Some(own) = own {
            if own.seal(end.clone(), at) {
                return Ok(());
            }
            own.forget();
            self.shared.near.lose(run);
        }
        if self.streams.seal(run, &end, at, self.shared.retention).await.map_err(unavailable)? == Sealed::GivenUp {
            self.mirrors.lose(run);
        }
        Ok(())
    }

    async fn forget(&self, runs: &[RunId]) {
        for run in runs {
            let own = lock(&self.own).get(run).cloned();
            if let Some(own) = own {
                own.forget();
            }
            self.shared.near.forget(*run);
            self.mirrors.forget(*run);
        }
        if let Err(error) = self.streams.forget(runs).await {
            tracing::warn!(error = %Causes(&error), runs = runs.len(), "forgotten runs not removed; their time to live will do so");
            // Redis will not tell how they end.
            runs.iter().for_each(|run| self.mirrors.lose(*run));
        }
    }
}

fn unavailable(error: redis::RedisError) -> LogError {
    LogError(Box::new(error))
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that could panic happens while it is held.
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
