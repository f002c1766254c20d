//! The leases' port: which process has which runs, which one lives, and the end of runs whose process is gone.
//!
//! A run belongs to the process that got its request, for good: no other one has its user's token. A process renews its
//! leases again and again ([`Leases::beat`]); runs of one that does not are ended by any other.

use async_trait::async_trait;

use super::store_error::StoreError;
use crate::chat::event::AgentEvent;
use crate::chat::ids::RunId;

/// Keeps the leases of live runs. Times are the database's own, so that replicas need not agree about the clock.
#[async_trait]
pub trait Leases: Send + Sync {
    /// Renews the leases of the live runs that `progress` names, by `lease_ms` from now, keeps their text since their
    /// last commit, and returns the standing of each. A run that its process does not name is not renewed: nothing
    /// drives it, and its lease ends it.
    ///
    /// # Errors
    /// When it could not be committed; then the leases of some, or of all, run on.
    async fn beat(&self, replica: &str, lease_ms: i64, progress: &[Progress]) -> Result<Vec<Notice>, StoreError>;

    /// Ends all runs whose lease is over as interrupted: their unfinished turns are settled into messages, their text
    /// is kept, the trail gets an entry.
    ///
    /// # Errors
    /// When it could not be committed; each run is ended by itself.
    async fn reap(&self) -> Result<Vec<RunId>, StoreError>;

    /// Notes that these runs have readers here, for five seconds, so that their owners do not take them for forsaken;
    /// and returns those that ended three seconds ago or longer, or are gone: by then their owners have ended their
    /// logs, if they could.
    ///
    /// # Errors
    /// When it could not be done.
    async fn watch(&self, runs: &[RunId]) -> Result<Vec<EndedRun>, StoreError>;

    /// Removes rows that are too old: those of `old`, and idempotency keys older than a day. A bounded part at a time;
    /// returns whether more is left.
    ///
    /// # Errors
    /// When it could not be done.
    async fn tidy(&self, old: Old) -> Result<bool, StoreError>;
}

/// The times, in milliseconds since the Unix epoch, before which rows are removed; `None` keeps all.
#[derive(Debug, Clone, Copy, Default)]
pub struct Old {
    /// Trail entries of before.
    pub trail_before_ms: Option<i64>,
    /// Conversations that no list shows, with all of theirs, whose newest run began before and in which nothing lives.
    pub unlisted_before_ms: Option<i64>,
}

/// A run that has ended, as its log has to say it.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedRun {
    /// The run.
    pub run: RunId,
    /// Its terminal event; of a run that is gone, [`AgentEvent::Cancelled`].
    pub end: AgentEvent,
    /// That event's id, where its owner has recorded it.
    pub last_event_id: Option<u64>,
}

/// The text of a live run since its last commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The run.
    pub run: RunId,
    /// The turn that streams, counted from 0: text of an earlier one has been committed and is not kept twice.
    pub turn: u32,
    /// Its text since the last beat that was kept.
    pub piece: Option<Piece>,
    /// The id of the run's newest event.
    pub last_event_id: Option<u64>,
}

/// A piece of a turn's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Where in the turn's text it begins, in bytes. A piece that begins where another one did replaces it: that one
    /// was kept, and its acknowledgement was lost.
    pub at: u64,
    /// The words.
    pub text: String,
}

/// The store's notice about a run that its process believes to be live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice {
    /// The run.
    pub run: RunId,
    /// Its standing.
    pub standing: Standing,
}

/// How a run stands that its owner believes to be live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// All is well.
    Live {
        /// Whether it has readers at another replica.
        watched: bool,
    },
    /// A cancel was requested.
    CancelRequested,
    /// Another process or its user has ended it.
    Ended,
    /// It was deleted with its conversation.
    Gone,
}
