//! Why a run did not begin.

use crate::agent::ports::store::BeginError;
use crate::store::fault::Fault;

/// Why a run did not begin: the port's reasons, or a fault.
pub(super) enum NotBegun {
    Refused(BeginError),
    Failed(Fault),
}

impl<E: Into<Fault>> From<E> for NotBegun {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// The port's reason apart from a fault.
pub(super) fn split_fault<T>(outcome: Result<T, NotBegun>) -> Result<Result<T, BeginError>, Fault> {
    match outcome {
        Ok(done) => Ok(Ok(done)),
        Err(NotBegun::Refused(reason)) => Ok(Err(reason)),
        Err(NotBegun::Failed(fault)) => Err(fault),
    }
}
