//! The numbered events of runs while they may be read: in this process, or in Redis for all replicas.
//!
//! Events of a run are numbered 0, 1, 2 … and kept in a bounded [`Ring`], oldest out first. A run's owner appends
//! through a [`Writer`]; readers of any replica follow a ring with a [`ring::Reader`]. The log is a cache: the answer
//! of a run is in the store, and a reader that loses its position in a log gets a notice.

mod line;
pub mod local;
pub mod redis;
pub mod ring;
mod suggested;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use self::redis::starts::RedisStarts;
use self::redis::{MirrorBounds, RedisLog};
use crate::agent::ports::events::EventSink;
use crate::chat::event::AgentEvent;
use crate::chat::ids::RunId;
use crate::runs::config::Events;
use crate::runs::starts::SharedStarts;
use local::LocalLog;
use ring::Ring;

/// Looks after the logs of a process.
#[async_trait]
pub trait LogUpkeep: Send + Sync {
    /// The runs of other processes that are read here and have no end in their logs yet.
    async fn followed(&self) -> Vec<RunId>;

    /// Removes what is kept longer than it has to be; its owner calls it every second.
    async fn sweep(&self);

    /// Whether other replicas do not see what runs here say, since what they share does not answer.
    fn is_away(&self) -> bool {
        false
    }

    /// About how many bytes of events it holds in memory.
    fn bytes(&self) -> usize;

    /// Ends what it does by itself, when nothing is written or read any more.
    async fn close(&self);
}

/// Keeps the events of runs.
#[async_trait]
pub trait EventLog: LogUpkeep {
    /// Opens the log of a run that begins in this process.
    ///
    /// # Errors
    /// When events could not be shared now; then the run must not begin.
    async fn open(&self, run: RunId) -> Result<Arc<dyn Writer>, LogError>;

    /// The log of a run, wherever it is written, as far as it is kept; `None` when nothing of it is.
    ///
    /// # Errors
    /// When that is unknown now.
    async fn find(&self, run: RunId) -> Result<Option<Arc<Ring>>, LogError>;

    /// Ends the log of a run whose owner is gone, or cannot say so, with `end`, a terminal event; afterwards that
    /// owner's appends are refused. Where `at` is given, it is the number of that event, and a log that does not have
    /// all events before it is given up instead, so that no reader takes a part for the whole. A log that has its end
    /// keeps it; a log that is not kept stays so.
    ///
    /// # Errors
    /// When it could not be done now; it can be repeated.
    async fn seal(&self, run: RunId, end: AgentEvent, at: Option<u64>) -> Result<(), LogError>;

    /// Forgets logs at once: from now on they are not found, and do not come back, whatever their owners still append.
    /// A reader of one without an end yet reads on to the end that its writer gives it here; at other replicas it reads
    /// that the run was cancelled, where it had all events before, or that it lost its position. A log without a writer
    /// gets no more events, and loses its readers.
    async fn forget(&self, runs: &[RunId]);
}

/// A day: no run is silent for so long. A log that gets no end is forgotten then.
const SILENCE: Duration = Duration::from_secs(86_400);

/// Whether `url` names a log that replicas share.
pub fn is_shared(url: &str) -> bool {
    ["redis://", "rediss://", "redis+unix://"].iter().any(|scheme| url.starts_with(scheme))
}

/// Why `url`, which names such a log, cannot be understood. It never repeats it.
pub fn mistake(url: &str) -> Option<String> {
    ::redis::Client::open(url).err().map(|error| error.to_string())
}

/// The log that `events` names; the events of a run are kept for `retention` after its end.
///
/// # Errors
/// When it is shared and cannot be set up.
pub async fn open(events: &Events, retention: Duration) -> Result<Arc<dyn EventLog>, LogError> {
    let Events { url, prefix, run_bytes, total_bytes } = events;
    if !is_shared(url) {
        return Ok(LocalLog::new(*run_bytes, *total_bytes, retention));
    }
    let bounds = MirrorBounds { run_bytes: *run_bytes, total_bytes: *total_bytes, retention, life: SILENCE };
    Ok(RedisLog::connect(url, prefix, &bounds)?)
}

/// The count of users' starts that replicas share; `None` where the log is of this process alone.
///
/// # Errors
/// When it is shared and cannot be set up.
pub fn shared_starts(events: &Events) -> Result<Option<Arc<dyn SharedStarts>>, LogError> {
    match is_shared(&events.url) {
        true => Ok(Some(Arc::new(RedisStarts::connect(&events.url, &events.prefix)?))),
        false => Ok(None),
    }
}

/// The writing end of a run's log; there is one. A terminal event ends the log, and what comes after it is dropped.
pub trait Writer: EventSink {
    /// The events so far.
    fn ring(&self) -> &Arc<Ring>;
}

/// A log that could not be used.
#[derive(Debug, thiserror::Error)]
#[error("the event log is unavailable")]
pub struct LogError(#[source] pub Box<dyn std::error::Error + Send + Sync>);
