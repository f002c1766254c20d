//! The chats' port: conversations under whole numbers, for protocols whose clients know them by such.

use async_trait::async_trait;

use super::store_error::StoreError;
use crate::chat::answer::Answer;
use crate::chat::artifact::CallArtifact;
use crate::chat::caller::Owner;
use crate::chat::failure::Failure;
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::message::Message;
use crate::chat::payload::Payload;
use crate::chat::run::RunState;
use crate::chat::screen::ScreenState;
use crate::chat::stream::Usage;

/// Numbers conversations and reads them by number.
#[async_trait]
pub trait ChatStore: Send + Sync {
    /// Gives the owner's conversation a number within `app`; the same one when it has one. What front ends call the
    /// owner by is kept with it.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn number(
        &self,
        owner: &Owner,
        known_as: Option<&str>,
        conversation: &ConversationId,
        app: &str,
    ) -> Result<i64, StoreError>;

    /// The owner's conversation of that number.
    ///
    /// # Errors
    /// When it could not be read.
    async fn numbered(&self, owner: &Owner, number: i64) -> Result<Option<ConversationId>, StoreError>;

    /// Chats, newest change first, with how many there are in all.
    ///
    /// # Errors
    /// When they could not be read.
    async fn chats(&self, of: Chats<'_>, limit: u32, offset: u32) -> Result<(Vec<ChatHead>, u64), StoreError>;

    /// One chat with its newest messages, as many as can be read at once.
    ///
    /// # Errors
    /// When it could not be read.
    async fn chat(&self, of: Chats<'_>, number: i64) -> Result<Option<ChatView>, StoreError>;
}

/// The owners of chats.
#[derive(Debug, Clone, Copy)]
pub enum Chats<'a> {
    /// An owner's, of one application where it is named.
    Own {
        /// The owner.
        owner: &'a Owner,
        /// The application.
        app: Option<&'a str>,
    },
    /// Those of all users of a tenant, or of one of them: for administrators.
    Tenant {
        /// The tenant.
        tenant: &'a str,
        /// The user: what front ends call them by, or their name in tokens.
        user: Option<&'a str>,
    },
}

/// A chat in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatHead {
    /// Its number.
    pub number: i64,
    /// The owner.
    pub owner: Owner,
    /// The owner's name in front ends, where that is not their name in tokens.
    pub known_as: Option<String>,
    /// The title it was given, or its first message, whole.
    pub title: String,
    /// When it began, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// When the last message of either side was kept, or it was renamed.
    pub updated_at_ms: i64,
    /// Messages that a user sees.
    pub message_count: u64,
}

/// A chat with its messages, oldest first.
#[derive(Debug, Clone)]
pub struct ChatView {
    /// Its head.
    pub head: ChatHead,
    /// The newest runs of its newest branch.
    pub runs: Vec<ChatRun>,
}

/// A run of a chat.
#[derive(Debug, Clone)]
pub struct ChatRun {
    /// Its id.
    pub id: RunId,
    /// Its position in the conversation.
    pub run_seq: i64,
    /// Where it stands.
    pub state: RunState,
    /// Why it failed.
    pub error: Option<Failure>,
    /// Whether the next message of its conversation was what cancelled it.
    pub is_superseded: bool,
    /// Its messages as the model saw them; the first is the user's, or the server's instead.
    pub messages: Vec<Message>,
    /// Whether the server wrote the first message, to go on with another run or to tell of a decision: users do not see
    /// it.
    pub by_server: bool,
    /// Its answer as the user saw it; `None` where its messages tell it, and of a run that did not come to its
    /// end here.
    pub answer: Option<Answer>,
    /// Its payloads, in order.
    pub payloads: Vec<Payload>,
    /// What its calls have made for the screen, in order.
    pub artifacts: Vec<CallArtifact>,
    /// The screen state that its request brought.
    pub context: Option<ScreenState>,
    /// Its tokens.
    pub usage: Usage,
    /// When it was requested, in milliseconds since the Unix epoch.
    pub started_at_ms: i64,
    /// When it ended.
    pub finished_at_ms: Option<i64>,
}
