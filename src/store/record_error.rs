//! Errors of a stored record.

use crate::chat::ids::InvalidId;

/// A record that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    /// The JSON is not that of its kind.
    #[error("the json of a {what} cannot be used")]
    Json {
        /// The kind of record.
        what: &'static str,
        /// Where it went wrong. Serde's texts may quote a scalar of the record, so they go to the log only.
        #[source]
        source: serde_json::Error,
    },
    /// No messages are of this kind.
    #[error("no messages are of the stored kind")]
    Kind,
    /// Files have no such media type or purpose.
    #[error("no files are of the stored kind or purpose")]
    File,
    /// No author has this name.
    #[error("nobody is the stored author")]
    Author,
    /// Runs have no such state.
    #[error("no run is in the stored state")]
    State,
    /// Calls have no such fate.
    #[error("no call has the stored fate")]
    Fate,
    /// Approvals have no such state.
    #[error("no approval is in the stored state")]
    Approval,
    /// The call that was let through is not the stored one.
    #[error("a stored call is not the one that was shown to whoever approved it")]
    Digest,
    /// A screen state is an object.
    #[error("a stored screen state is none")]
    Context,
    /// A plan, a step or the work of a sub-agent does not read back.
    #[error("a stored plan is none")]
    Plan,
    /// A directive or a signal does not read back.
    #[error("a stored directive or signal is none")]
    Directive,
    /// A signal gets its number in a transaction that holds those of its tenant.
    #[error("the numbers of the tenant's signals are not held")]
    Numbers,
    /// An id inside is none.
    #[error("a stored id is none")]
    Id(#[from] InvalidId),
}

impl RecordError {
    /// Names the kind of record that a JSON error is about.
    pub(super) fn json(what: &'static str) -> impl Fn(serde_json::Error) -> Self {
        move |source| Self::Json { what, source }
    }
}
