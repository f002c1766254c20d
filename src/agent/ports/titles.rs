//! The titles' port: what conversations are called by those who speak in them.

use async_trait::async_trait;

use super::store_error::StoreError;
use crate::chat::caller::Owner;
use crate::chat::ids::ConversationId;

/// Titles of conversations that have a run. The labels of a helper are none: they stand beside the title.
#[async_trait]
pub trait TitleStore: Send + Sync {
    /// Whether the owner's conversation was given a title.
    ///
    /// # Errors
    /// When it could not be read.
    async fn is_titled(&self, owner: &Owner, conversation: &ConversationId) -> Result<bool, StoreError>;

    /// Gives it a title where it has none; whether it has this one now. A title that somebody gave stays.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn entitle(&self, owner: &Owner, conversation: &ConversationId, title: &str) -> Result<bool, StoreError>;
}
