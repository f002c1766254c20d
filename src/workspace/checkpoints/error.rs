//! What can go wrong, by what the caller can do about it.

use std::io;

use rustix::io::Errno;

use crate::bounded::memory::Exhausted;

/// Why there is no snapshot, no list of changes, no restored project.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The project's folder is not there any more, or is no folder: nothing helps until it is back.
    #[error("the project's folder is gone")]
    Gone,
    /// No such tree or checkpoint is kept: the id is wrong or was forgotten.
    #[error("no such checkpoint")]
    Unknown,
    /// The content is over 64 MiB and is not kept.
    #[error("the file is too large to be kept")]
    TooLarge,
    /// What was kept is damaged: that checkpoint cannot be read, others may.
    #[error("a kept object is damaged")]
    Corrupt {
        /// The object's id.
        object: String,
    },
    /// No space is left, or a quota is used up: it can be tried again when there is some.
    #[error("no space is left for the checkpoint")]
    Full(#[source] io::Error),
    /// There is no memory for the answer now: it can be tried again in a moment.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// The system refused.
    #[error("{doing} failed")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl CheckpointError {
    /// Makes an error of what the system said while it was doing something.
    pub(super) fn while_doing<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> Self {
        move |error| {
            let source: io::Error = error.into();
            let code = source.raw_os_error().map(Errno::from_raw_os_error);
            match code {
                Some(Errno::NOSPC | Errno::DQUOT) => Self::Full(source),
                _ => Self::Io { doing, source },
            }
        }
    }
}
