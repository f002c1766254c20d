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
        opening: Opening<'_>,
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

    /// The owner's conversation that waits for its first message at that place, since a minute at most: the newest.
    ///
    /// # Errors
    /// When it could not be read.
    async fn ahead(&self, owner: &Owner, place: &Place) -> Result<Option<ConversationId>, StoreError>;

    /// Takes a conversation for its first message; whether it waited for that. No other one finds it then.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn take_ahead(&self, owner: &Owner, id: &ConversationId) -> Result<bool, StoreError>;
}

/// How a conversation is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening<'a> {
    /// Its client names it.
    Named {
        /// Its title.
        title: Option<&'a str>,
    },
    /// It waits for a first message that does not name it.
    Ahead,
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
    /// Whether lists have it first. One that no list has yet stays as it is.
    pub pinned: Option<bool>,
    /// Whether only the list of those has it; the same.
    pub archived: Option<bool>,
}
