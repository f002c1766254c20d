//! The users' port: what is kept of one goes when they do.

use async_trait::async_trait;

use super::store_error::StoreError;
use crate::chat::caller::{Caller, Owner};
use crate::chat::ids::ConversationId;

/// Deletes what is kept of users.
#[async_trait]
pub trait UserStore: Send + Sync {
    /// Conversations of the owner's, in any order, so many at most; those that no list shows too.
    ///
    /// # Errors
    /// When they could not be read.
    async fn conversations_of(&self, owner: &Owner, most: u32) -> Result<Vec<ConversationId>, StoreError>;

    /// Deletes a part of what is kept of `owner` beside their conversations: so much of it as takes seconds. `by` cancels the
    /// directives that wait. Signals and the audit record stay, and what was used stays in the sums of the tenant, of no user. Of
    /// somebody of whom nothing is kept it deletes nothing.
    ///
    /// # Errors
    /// When it could not be committed. What was deleted until then is gone.
    async fn delete_rest(&self, by: &Caller, owner: &Owner) -> Result<DeletedRest, StoreError>;
}

/// What one part of a deletion has deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeletedRest {
    /// How many files.
    pub files: u64,
    /// How many directives.
    pub directives: u64,
    /// How many directives are under way. They stay until they have ended.
    pub running_directives: u64,
    /// Whether there is more to delete, those directives among it.
    pub has_more: bool,
}
