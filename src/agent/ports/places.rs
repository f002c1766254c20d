//! The port of what conversations have apart from their runs: their place and title, also before the first run.

use async_trait::async_trait;

use super::conversations::ConversationHead;
use super::store_error::StoreError;
use crate::chat::caller::Owner;
use crate::chat::ids::ConversationId;
use crate::chat::labels::Labels;
use crate::chat::place::{Place, PlaceUpdate};

/// Opens conversations, and changes what they have apart from their runs.
#[async_trait]
pub trait PlaceStore: Send + Sync {
    /// Makes a conversation that has no run yet. No list shows it, and after a day without a run it is gone; of its
    /// owner's such conversations the newest hundred are kept.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn open(
        &self,
        owner: &Owner,
        id: &ConversationId,
        place: &Place,
        title: Option<&str>,
    ) -> Result<ConversationHead, StoreError>;

    /// The conversation as a list shows it, used or not; `None` when there is none.
    ///
    /// # Errors
    /// When it could not be read.
    async fn head(&self, owner: &Owner, id: &ConversationId) -> Result<Option<ConversationHead>, StoreError>;

    /// Changes a conversation; what it is then, `None` when there is none.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn change(
        &self,
        owner: &Owner,
        id: &ConversationId,
        changes: &Changes,
    ) -> Result<Option<ConversationHead>, StoreError>;

    /// Labels a conversation that has a run; another one stays as it is.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn label(&self, owner: &Owner, id: &ConversationId, labels: &Labels) -> Result<(), StoreError>;
}

/// What is changed of a conversation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Changes {
    /// Its title.
    pub title: Option<String>,
    /// The kind of screen.
    pub context_type: Option<String>,
    /// The rest of its place.
    pub place: PlaceUpdate,
}
