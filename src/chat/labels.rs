//! The labels that a helper gives a conversation.

use serde::{Deserialize, Serialize};

/// What a conversation is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels {
    /// A few words.
    pub title: String,
    /// One or two words each.
    pub topics: Vec<String>,
    /// A sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// When they were made, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}
