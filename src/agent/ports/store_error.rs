//! How a store fails.

/// A store that failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database did not do it; the cause is for the log.
    #[error("the store is unavailable")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A row does not read back as what was written.
    #[error("a stored record is damaged")]
    Damaged(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The run has ended, or is gone: another process or its user ended it, and nothing of it changes any more.
    #[error("the run has ended")]
    RunEnded,
}
