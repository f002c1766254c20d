//! The search's port: conversations by the words of their titles and messages.

use async_trait::async_trait;

use super::conversations::{ConversationHead, Page, PageError, Paged, Role};
use crate::bounded::memory::Reservation;
use crate::chat::caller::Owner;
use crate::chat::ids::MessageId;

/// Finds conversations.
#[async_trait]
pub trait SearchStore: Send + Sync {
    /// The owner's conversations that have a message, or a title, with all words of `query`; that with the newest such
    /// message first, from `page.cursor` on. Any text is a query; one without a word finds nothing. `held` grows to what
    /// the messages take that are shown.
    ///
    /// # Errors
    /// When they could not be read, or there is no memory for it.
    async fn search(&self, owner: &Owner, query: &str, page: Page, held: &mut Reservation) -> Result<Found, PageError>;
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The conversations.
    pub page: Paged<Hit>,
    /// Whether all was looked at; else there is much that is new to the index, and the next search knows more of it.
    pub is_complete: bool,
}

/// A conversation that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// As lists show it.
    pub conversation: ConversationHead,
    /// Its title, with what was looked for.
    pub title: Vec<Piece>,
    /// Its messages with all of the words, and its title where that has them.
    pub matches: u64,
    /// When the newest of them was said, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// The newest of its messages; `None` where only its title has the words.
    pub message: Option<HitMessage>,
}

/// A message that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct HitMessage {
    /// Its id.
    pub id: MessageId,
    /// Its author's role.
    pub role: Role,
    /// The part of its text around the first word that was looked for, on one line.
    pub snippet: Vec<Piece>,
}

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The piece; all of them are the text.
    pub text: String,
    /// Whether it is what was looked for.
    pub is_hit: bool,
}
