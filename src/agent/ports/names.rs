//! The names' port: what things of a conversation are called, as earlier runs heard it. They are written with the end of
//! a run ([`super::store::StateLeft`]).

use async_trait::async_trait;

use super::store_error::StoreError;
use crate::chat::caller::Owner;
use crate::chat::ids::ConversationId;

/// The newest 2,000 names of a conversation are kept.
pub const MOST_NAMES: usize = 2000;

/// Reads names.
#[async_trait]
pub trait NameStore: Send + Sync {
    /// The name of the thing of that id in the owner's conversation; `None` where nobody has said it.
    ///
    /// # Errors
    /// When it could not be read.
    async fn name_of(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        id: &str,
    ) -> Result<Option<String>, StoreError>;
}

/// A name that a run has heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The id of what is called so.
    pub id: String,
    /// What it is called.
    pub name: String,
}
