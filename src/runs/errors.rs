//! Why a run does not start, or cannot be read.

use super::log::LogError;
use super::starts::Rate;
use crate::agent::offer::menu::NotOffered;
use crate::agent::ports::data::NotLoaded;
use crate::agent::ports::store::BeginError;
use crate::agent::ports::store_error::StoreError;
use crate::chat::ids::RunId;

/// Why a run did not start; then nothing was stored, unless the store failed in the middle of it.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The request's `context_type` selects no profile.
    #[error("must be one of: {0}")]
    UnknownContextType(String),
    /// The caller's token lists none of the roles that the profile asks for.
    #[error("this screen's assistant is not for this user")]
    Forbidden,
    /// Another user with this role has to let the call through before its user can go on with it.
    #[error("somebody with the role {0} has to approve this call first")]
    RoleRequired(String),
    /// The request chooses a model or an option that the profile does not offer.
    #[error("the request chooses what its context_type does not offer")]
    NotOffered(Vec<NotOffered>),
    /// Data without which its profile cannot answer were not loaded.
    #[error("what this place is about was not loaded")]
    NotLoaded(NotLoaded),
    /// The server is about to stop.
    #[error("the server is shutting down")]
    Draining,
    /// The run to continue is none of the caller's.
    #[error("there is no such run")]
    NoSuchRun,
    /// Its user begins runs too fast.
    #[error("too many runs were begun in a short time")]
    TooFast(Rate),
    /// This process runs as many as it may.
    #[error("the server is busy; please try again in a moment")]
    Full,
    /// Its user or their tenant has used what they may.
    #[error("the budget of this user or their tenant is used up")]
    OverBudget {
        /// When there is a new one, in seconds.
        retry_after_s: u32,
    },
    /// The store refused it.
    #[error(transparent)]
    Begin(#[from] BeginError),
    /// Its events could not be kept.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The run that the same request began before cannot be read any more.
    #[error("this request was made before")]
    Joined {
        /// That run.
        run: RunId,
        /// Why not.
        #[source]
        why: AttachError,
    },
    /// Its task ended before it began.
    #[error("the run could not be started")]
    Failed,
}

/// Why a run cannot be read from there on.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// No such run of this owner.
    #[error("there is no such run")]
    NoSuchRun,
    /// No event has the id that the reader says it has seen.
    #[error("the run has no event with this id")]
    BeyondEnd,
    /// The events after the cursor are not kept any more.
    #[error("the events after this one are not kept any more; read the run and its conversation instead")]
    Evicted,
    /// As many read it as may.
    #[error("too many connections read this run")]
    TooManyReaders,
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
