//! The leases' port: who runs what, who is still there, and what became of the runs of those who are not.
//!
//! A run belongs to the process that was asked for it, for good: nobody else has its user's token. What can be taken
//! away is its life. A process says again and again that it lives ([`Leases::beat`]); runs of one that does not are
//! ended by any other.

use async_trait::async_trait;

use super::store_error::StoreError;
use crate::chat::event::AgentEvent;
use crate::chat::ids::RunId;

/// Keeps the leases of live runs. Times are the database's own, so that replicas need not agree about the clock.
#[async_trait]
pub trait Leases: Send + Sync {
    /// Renews the leases of the live runs that `progress` names, by `lease_ms` from now, keeps what they said since
    /// their last commit, and tells of each how it stands. A run that its process does not name is not renewed: nobody
    /// drives it, and its lease ends it.
    ///
    /// # Errors
    /// When it could not be committed; then the leases of some, or of all, run on.
    async fn beat(&self, replica: &str, lease_ms: i64, progress: &[Progress]) -> Result<Vec<Notice>, StoreError>;

    /// Ends all runs whose lease is over as interrupted: their unfinished turns are settled into messages, what they
    /// had said is kept, the trail tells it.
    ///
    /// # Errors
    /// When it could not be committed; each run is ended by itself.
    async fn reap(&self) -> Result<Vec<RunId>, StoreError>;

    /// Notes that somebody reads these runs here, for five seconds, so that their owners do not take them for forsaken;
    /// and tells which of them ended three seconds ago or longer, or are gone: by then their owners have said so, if
    /// they could.
    ///
    /// # Errors
    /// When it could not be done.
    async fn watch(&self, runs: &[RunId]) -> Result<Vec<EndedRun>, StoreError>;

    /// Removes what is older than it has to be: what `old` says, and idempotency keys older than a day. A bounded part at a
    /// time; returns whether more is left.
    ///
    /// # Errors
    /// When it could not be done.
    async fn tidy(&self, old: Old) -> Result<bool, StoreError>;
}

/// What is kept no longer, by its time in milliseconds since the Unix epoch; `None` keeps all.
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

/// What a live run has said since its last commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The run.
    pub run: RunId,
    /// The turn that streams, counted from 0: text of an earlier one has been committed and is not kept twice.
    pub turn: u32,
    /// What its text has grown by since the last beat that was kept.
    pub said: Option<Piece>,
    /// The id of the run's newest event.
    pub last_event_id: Option<u64>,
}

/// A piece of a turn's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Where in the turn's text it begins, in bytes. A piece that begins where another one did takes its place: that
    /// one was kept, and nobody heard of it.
    pub at: u64,
    /// The words.
    pub text: String,
}

/// What the store has to say about a run that its process believes to be live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice {
    /// The run.
    pub run: RunId,
    /// What about it.
    pub standing: Standing,
}

/// How a run stands that its owner believes to be live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// All is well.
    Live {
        /// Whether somebody reads it through another replica.
        watched: bool,
    },
    /// Somebody asked to cancel it.
    CancelRequested,
    /// It has been ended by somebody else.
    Ended,
    /// It was deleted with its conversation.
    Gone,
}
