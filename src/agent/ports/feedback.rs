//! The feedback's port: what users think of answers, once for each of their runs.

use async_trait::async_trait;

use super::store_error::StoreError;
use crate::chat::caller::Owner;
use crate::chat::feedback::Feedback;
use crate::chat::ids::RunId;

/// Keeps feedback. It goes with its conversation.
#[async_trait]
pub trait FeedbackStore: Send + Sync {
    /// Keeps the owner's feedback on a run of theirs, instead of what was there; `None` when there is no such run.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn give(&self, owner: &Owner, run: RunId, feedback: &Feedback) -> Result<Option<KeptFeedback>, StoreError>;

    /// Takes it back; whether there is such a run, with feedback or not.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn take_back(&self, owner: &Owner, run: RunId) -> Result<bool, StoreError>;
}

/// Feedback as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFeedback {
    /// The run whose answer it is on.
    pub run: RunId,
    /// What it says.
    pub feedback: Feedback,
    /// When it was given, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}
