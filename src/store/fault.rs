//! Faults inside a store, and the ports' errors for them.

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

/// A fault.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// The database did not do it.
    #[error("the database failed")]
    Database(#[source] SqlxError<sqlx::Error>),
    /// The database did not answer; whether it ran the statement is unknown.
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
    /// A caller ends a run with a state of one that lives.
    #[error("a run does not end as {}", _0.name())]
    NoEnd(RunState),
}

/// An error of sqlx. Those write their causes into their text, so this is the end of a chain.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SqlxError<E>(pub E);

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(SqlxError(error))
    }
}

/// Why a call has done nothing: a reason of its port's, or a fault.
pub(super) enum Undone<R> {
    Refused(R),
    Failed(Fault),
}

impl<R, E: Into<Fault>> From<E> for Undone<R> {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// A fault, and what was being done.
#[derive(Debug, thiserror::Error)]
#[error("could not {action}")]
struct Failed {
    action: &'static str,
    #[source]
    fault: Fault,
}

/// The result of `call`, in bounded time; `action` completes the sentence "could not …".
///
/// # Errors
/// The port's: its reason, or its failure. Only a call that the database did not carry out may work later; any other
/// will fail again.
pub(super) fn attempt<'a, T, U: Into<Undone<R>>, R: From<StoreError>>(
    action: &'static str,
    call: impl Future<Output = Result<T, U>> + Send + 'a,
) -> impl Future<Output = Result<T, R>> + Send + 'a {
    // On the heap: some have kilobytes, and would be moved several times on their way.
    let call = Box::pin(call);
    async move {
        let since = Instant::now();
        let called = tokio::time::timeout(CALL_WAIT, call).await;
        let took = since.elapsed();
        ambient::add_db(took);
        metrics::store_called(took);
        let undone = match called {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(undone)) => undone.into(),
            Err(elapsed) => Undone::Failed(Fault::Silent(elapsed)),
        };
        Err(match undone {
            Undone::Refused(reason) => reason,
            Undone::Failed(fault) => fault.while_trying(action).into(),
        })
    }
}

impl Fault {
    /// As what it is counted; not where the caller only came too late.
    fn measured(&self) -> Option<StoreFault> {
        match self {
            Self::Database(SqlxError(error)) => {
                Some(if is_busy(error) { StoreFault::Busy } else { StoreFault::Database })
            }
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
            Self::Database(SqlxError(error)) => !matches!(error, ColumnDecode { .. } | Decode(_)),
            Self::Silent(_) => true,
            Self::RunEnded => return StoreError::RunEnded,
            Self::Record(_) | Self::Draft(_) | Self::DispatchedBefore { .. } | Self::NoEnd(_) => false,
        };
        let failed = Box::new(Failed { action, fault: self });
        if is_temporary { StoreError::Unavailable(failed) } else { StoreError::Damaged(failed) }
    }
}

/// PostgreSQL's code of a lock that was waited for in vain.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// Whether a wait for another transaction was in vain. SQLite's extended codes have the plain one, 5, in their lowest
/// byte.
fn is_busy(error: &sqlx::Error) -> bool {
    let Some(error) = error.as_database_error() else { return false };
    if error.code().as_deref() == Some(LOCK_NOT_AVAILABLE) {
        return true;
    }
    let error = error.try_downcast_ref::<SqliteError>();
    let code = error.and_then(DatabaseError::code).and_then(|code| code.parse::<u32>().ok());
    code.is_some_and(|code| code & 0xff == 5)
}
