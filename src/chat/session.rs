//! A conversation as clients know it that keep a session: where it is, what it is called, how much there is of it.

use super::clarification::Clarification;
use super::ids::ConversationId;
use super::labels::Labels;
use super::place::Place;
use super::state::ContextUsage;

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its conversation.
    pub id: ConversationId,
    /// Its user.
    pub user: String,
    /// The kind of screen of its place; without one, of its newest run.
    pub context_type: String,
    /// Where it is; not every one has a place.
    pub place: Option<Place>,
    /// The title it was given.
    pub title: Option<String>,
    /// Messages of its user, and answers.
    pub message_count: u64,
    /// Calls of tools.
    pub tool_calls: u64,
    /// Tokens of all model calls.
    pub tokens: u64,
    /// How much of it its model has read in its newest run.
    pub context_usage: Option<ContextUsage>,
    /// What was said and asked before an answer.
    pub clarification: Option<Clarification>,
    /// What a helper calls it.
    pub labels: Option<Labels>,
    /// When its older part was last summarised, in milliseconds since the Unix epoch.
    pub summarised_at_ms: Option<i64>,
    /// When it began, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// When its newest run began, or it was renamed.
    pub updated_at_ms: i64,
    /// When its newest run began; `None` before the first.
    pub last_message_at_ms: Option<i64>,
}
