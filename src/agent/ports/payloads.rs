//! The payloads' port: what was kept of a conversation's structured data. It is written with the run's commits
//! ([`super::store::Commit`]).

use async_trait::async_trait;

use super::store_error::StoreError;
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, PayloadId};
use crate::chat::payload::{Payload, PayloadHead};

/// Reads payloads.
#[async_trait]
pub trait PayloadStore: Send + Sync {
    /// The newest `most` payloads of the owner's conversation, oldest first.
    ///
    /// # Errors
    /// When they could not be read.
    async fn payloads(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        most: u32,
    ) -> Result<Vec<PayloadHead>, StoreError>;

    /// The payload of that id; `None` when the owner's conversation has none.
    ///
    /// # Errors
    /// When it could not be read.
    async fn payload(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        id: &PayloadId,
    ) -> Result<Option<Payload>, StoreError>;
}
