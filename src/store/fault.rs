//! What can go wrong inside a store, and the words of the ports for it.

use std::time::{Duration, Instant};

use sqlx::error::DatabaseError;
use sqlx::sqlite::SqliteError;
use tokio::time::error::Elapsed;

use super::record_error::RecordError;
use crate::agent::ports::store_error::StoreError;
use crate::chat::ids::RunId;
use crate::chat::run::RunState;
use crate::observe::metrics::StoreFault;
use crate::observe::{ambient, metrics};

/// How long a call may take: five seconds for a connection and ten for the work, after which the database itself gives
/// up. A server that stopped answering gives up nothing, so the time is kept here.
const CALL_WAIT: Duration = Duration::from_secs(15);

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// The database did not do it.
    #[error("the database failed")]
    Database(#[from] sqlx::Error),
    /// The database did not answer; whether it did what it was asked is unknown.
    #[error("the database did not answer")]
    Silent(#[from] Elapsed),
    /// A row does not read back.
    #[error("a record cannot be used")]
    Record(#[from] RecordError),
    /// A draft's body does not read back, or never would.
    #[error("the json of a draft cannot be used")]
    Draft(#[source] serde_json::Error),
    /// A run that has ended, or is gone, takes nothing more.
    #[error("the run has ended")]
    RunEnded,
    /// A write is sent at most once.
    #[error("call {call} of run {run} was dispatched before")]
    DispatchedBefore {
        /// The run.
        run: RunId,
        /// The digest of the call's id.
        call: String,
    },
    /// Somebody ends a run with a state of one that lives.
    #[error("a run does not end as {}", _0.name())]
    NoEnd(RunState),
}

/// A fault, and what was being done.
#[derive(Debug, thiserror::Error)]
#[error("could not {action}")]
struct Failed {
    action: &'static str,
    #[source]
    fault: Fault,
}

/// What `call` comes to, in bounded time; `action` completes the sentence "could not …".
///
/// # Errors
/// The port's: only what the database did not do may work later; anything else will be the same next time.
pub(super) fn attempt<'a, T>(
    action: &'static str,
    call: impl Future<Output = Result<T, Fault>> + Send + 'a,
) -> impl Future<Output = Result<T, StoreError>> + Send + 'a {
    // In a place of its own: some have kilobytes, and would be moved several times on their way.
    let call = Box::pin(call);
    async move {
        let since = Instant::now();
        let called = tokio::time::timeout(CALL_WAIT, call).await;
        let took = since.elapsed();
        ambient::add_db(took);
        metrics::store_called(took);
        let fault = match called {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(fault)) => fault,
            Err(elapsed) => Fault::Silent(elapsed),
        };
        Err(fault.while_trying(action))
    }
}

impl Fault {
    /// As what it is counted; not where the caller only came too late.
    fn measured(&self) -> Option<StoreFault> {
        match self {
            Self::Database(error) => Some(if is_busy(error) { StoreFault::Busy } else { StoreFault::Database }),
            Self::Silent(_) => Some(StoreFault::Silent),
            Self::Record(_) | Self::Draft(_) => Some(StoreFault::Damaged),
            Self::RunEnded | Self::DispatchedBefore { .. } | Self::NoEnd(_) => None,
        }
    }

    /// The port's error.
    pub(super) fn while_trying(self, action: &'static str) -> StoreError {
        use sqlx::Error::{ColumnDecode, Decode};
        if let Some(fault) = self.measured() {
            metrics::store_failed(fault);
        }
        let is_temporary = match &self {
            Self::Database(error) => !matches!(error, ColumnDecode { .. } | Decode(_)),
            Self::Silent(_) => true,
            Self::RunEnded => return StoreError::RunEnded,
            Self::Record(_) | Self::Draft(_) | Self::DispatchedBefore { .. } | Self::NoEnd(_) => false,
        };
        let failed = Box::new(Failed { action, fault: self });
        if is_temporary { StoreError::Unavailable(failed) } else { StoreError::Damaged(failed) }
    }
}

/// What PostgreSQL says of a lock that was waited for in vain.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// Whether somebody else was waited for in vain. SQLite's extended codes have the plain one, 5, in their lowest byte.
fn is_busy(error: &sqlx::Error) -> bool {
    let Some(error) = error.as_database_error() else { return false };
    if error.code().as_deref() == Some(LOCK_NOT_AVAILABLE) {
        return true;
    }
    let error = error.try_downcast_ref::<SqliteError>();
    let code = error.and_then(DatabaseError::code).and_then(|code| code.parse::<u32>().ok());
    code.is_some_and(|code| code & 0xff == 5)
}
