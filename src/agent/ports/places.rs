//! The port of what conversations have apart from their runs: their place and title, also before the first run.

use async_trait::async_trait;

use super::conversations::ConversationHead;
use super::store_error::StoreError;
use crate::chat::caller::Owner;
use crate::chat::ids::ConversationId;
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

    /// The owner's conversation that was made for a first message at this place in the last minute, the newest, or else
    /// a new one; and whether it is new. It is like one that [`Self::open`] makes.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn open_ahead(&self, owner: &Owner, place: &Place) -> Result<(ConversationId, bool), StoreError>;

    /// That conversation for the first message, which finds it once; `None` where there is none.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn take_ahead(&self, owner: &Owner, place: &Place) -> Result<Option<ConversationId>, StoreError>;
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
