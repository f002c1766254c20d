//! The `chat-message` dialect: `POST /chat/message` of applications whose chat keeps no conversation
//! (`docs/protocol/chat-message.md`). Frames have no name; their JSON says what each is.
//!
//! Its clients take the words of the last frame for the answer, and stop reading behind it.
//! **Invariant:** a stream has one `start` and one `complete`, and nothing behind that, however its run ends.

mod encoder;
mod frames;
mod request;
#[cfg(test)]
mod tests;
mod wire;
mod words;

use std::sync::Arc;

/// The protocol, with the limits of its request fields.
#[derive(Debug, Clone)]
pub struct ChatMessage {
    /// The `context_type` of the profile that answers; empty where nobody does.
    pub context_type: Arc<str>,
    /// The longest `message`, in bytes; 0 means no limit.
    pub max_message_bytes: usize,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: fn() -> i64,
}
