//! The drafts' port: documents that are built step by step over several messages of one conversation.

use async_trait::async_trait;
use serde_json::Value;

use super::store_error::StoreError;
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, DraftId};

/// Keeps drafts: 10 minutes after their last use, 20 per user. Other users and conversations do not see them.
#[async_trait]
pub trait DraftStore: Send + Sync {
    /// Keeps a new draft and returns its id.
    ///
    /// # Errors
    /// [`DraftError::TooMany`] when the owner has 20 live ones.
    async fn create_draft(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        body: &Value,
    ) -> Result<DraftId, DraftError>;

    /// The draft, its life renewed.
    ///
    /// # Errors
    /// [`DraftError::NotFound`] when it never was, has expired or belongs to another user or conversation.
    async fn draft(&self, owner: &Owner, conversation: &ConversationId, id: DraftId) -> Result<Draft, DraftError>;

    /// Replaces the draft's body and renews its life.
    ///
    /// # Errors
    /// [`DraftError::Changed`] when another run saved it since it was read.
    async fn save_draft(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        id: DraftId,
        draft: &Draft,
    ) -> Result<(), DraftError>;
}

/// A draft as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The document; the tool that made it knows its shape.
    pub body: Value,
    /// Which version was read; saving checks it.
    pub revision: i64,
}

/// Why a draft could not be had or saved.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// No such draft for this owner and conversation.
    #[error("draft not found or expired")]
    NotFound,
    /// The owner has too many.
    #[error("too many drafts are open; each ends ten minutes after its last use")]
    TooMany,
    /// Another run saved it meanwhile.
    #[error("the draft was changed meanwhile; try again")]
    Changed,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
