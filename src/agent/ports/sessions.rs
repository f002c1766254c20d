//! The sessions' port: conversations for clients that keep a session.

use async_trait::async_trait;

use super::chats::ChatRun;
use super::store_error::StoreError;
use crate::chat::caller::Owner;
use crate::chat::ids::ConversationId;
use crate::chat::labels::Labels;
use crate::chat::session::Session;

/// Reads conversations as sessions, and labels them.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// The owner's conversations that have a run and are in lists, newest change first.
    ///
    /// # Errors
    /// When they could not be read.
    async fn sessions(&self, owner: &Owner, limit: u32) -> Result<Vec<Session>, StoreError>;

    /// The owner's conversations that were opened by name and wait for their first run, newest first.
    ///
    /// # Errors
    /// When they could not be read.
    async fn unused(&self, owner: &Owner) -> Result<Vec<Session>, StoreError>;

    /// One of them, also before its first run; `None` when there is none.
    ///
    /// # Errors
    /// When it could not be read.
    async fn session(&self, owner: &Owner, id: &ConversationId) -> Result<Option<Session>, StoreError>;

    /// The same with the newest runs of its newest branch, oldest first, as many as can be read at once; with `before`
    /// those whose numbers are below it.
    ///
    /// # Errors
    /// When it could not be read.
    async fn session_runs(
        &self,
        owner: &Owner,
        id: &ConversationId,
        before: Option<i64>,
    ) -> Result<Option<(Session, Vec<ChatRun>)>, StoreError>;

    /// Labels a conversation that has a run; another one stays as it is.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn label(&self, owner: &Owner, id: &ConversationId, labels: &Labels) -> Result<(), StoreError>;
}
