//! What a request asks for, after a dialect has read it and before anything has happened.

use serde_json::{Map, Value};

use super::ids::ConversationId;
use super::model::ModelWish;

/// One chat turn as the client asked for it, already validated.
#[derive(Debug, Clone, PartialEq)]
pub struct RunInput {
    /// The user's message, not empty.
    pub message: String,
    /// Which profile answers (`context_type` of the native protocol).
    pub context_type: String,
    /// The state of the user's screen; untrusted.
    pub context: Option<Map<String, Value>>,
    /// The conversation to continue; `None` begins a new one.
    pub conversation: Option<ConversationId>,
    /// How the client wants the model asked, where it does not leave that to the profile.
    pub model: ModelWish,
}
