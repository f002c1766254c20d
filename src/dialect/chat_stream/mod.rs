//! The `chat-stream` dialect: `POST /api/chat/stream` of page assistants whose conversations have whole numbers
//! (`docs/protocol/chat-stream.md`). Every frame is called `message`, and its JSON says what it is.
//!
//! Its clients see the inputs and results of tools, and learn the whole answer once more with the last frame.

mod answer;
mod diagnostics;
mod encoder;
mod note;
mod request;
#[cfg(test)]
mod tests;
mod wire;
mod words;

use super::DecodeError;

pub use answer::{Answer, Extras, ToolUse, input};
pub use request::{Body as RequestBody, Read, What};

/// The protocol, with the limits of its request fields.
#[derive(Debug, Clone, Copy)]
pub struct ChatStream {
    /// The longest `message`, in bytes; 0 means no limit.
    pub max_message_bytes: usize,
    /// The largest `context`, and the largest `action_metadata`, in bytes of JSON; 0 means no limit.
    pub max_context_bytes: usize,
    /// How much of a conversation a model is sent, in bytes; 0 means no limit.
    pub history_bytes: usize,
}

impl ChatStream {
    /// The request in a body.
    ///
    /// # Errors
    /// The body's mistakes, in words for its sender.
    pub fn parse(&self, body: &[u8]) -> Result<Read, DecodeError> {
        request::read(self, body)
    }
}
