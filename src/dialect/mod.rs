//! Wire protocols, pure: a request's bytes become a [`RunInput`], [`AgentEvent`]s become frames. One file or folder per
//! protocol.
//!
//! **Invariant:** no I/O, no async, no status codes. Only files of this folder know event names.

pub mod ag_ui;
pub mod agent_chat;
pub mod ai_sdk;
pub mod chat_stream;
mod client_tools;
mod frame;
mod json;
pub mod ndjson;
pub mod openai_chat;
pub mod shown;

use bytes::BytesMut;

use crate::chat::event::AgentEvent;
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::input::{Manner, RunInput};

/// One wire protocol whose requests ask for runs and nothing else. [`chat_stream`]'s also name conversations by numbers
/// that only the store knows, and decide what waits, so it has a reader of its own.
pub trait Dialect: Send + Sync {
    /// The run a request body asks for.
    ///
    /// # Errors
    /// What is wrong with the body, in words for its sender.
    fn decode(&self, body: &[u8]) -> Result<RunInput, DecodeError>;

    /// How a request wants an earlier run to be continued; an empty body leaves everything as usual.
    ///
    /// # Errors
    /// What is wrong with the body, in words for its sender.
    fn decode_manner(&self, body: &[u8]) -> Result<Manner, DecodeError>;

    /// A fresh encoder for one run.
    fn encoder(&self, of: RunIds) -> Box<dyn Encoder>;
}

/// What a run is called, for protocols that tell their clients.
#[derive(Debug, Clone)]
pub struct RunIds {
    /// The run.
    pub run: RunId,
    /// Its conversation.
    pub conversation: ConversationId,
    /// The HTTP request that asked for it.
    pub request: String,
}

/// Turns one run's events into frames. Whatever brackets a protocol needs around segments is the encoder's state.
pub trait Encoder: Send {
    /// Appends what a stream begins with, before there is any event.
    fn opened(&mut self, out: &mut BytesMut);

    /// Appends the frames of `event`, possibly none, to `out`. Where the stream can be continued later, `id` is the
    /// event's number, which the last of the frames carries.
    fn encode(&mut self, id: Option<u64>, event: &AgentEvent, out: &mut BytesMut);

    /// Appends the frames that tell a reader that events are missing here, after which its stream ends.
    fn lost(&mut self, out: &mut BytesMut);

    /// Appends a frame that clients ignore, to keep the connection open while nothing flows.
    fn keep_alive(&mut self, out: &mut BytesMut);

    /// Appends what tells a reader that this server is about to stop; with `come_back_ms`, that its stream ends here
    /// and goes on elsewhere after so many milliseconds.
    fn draining(&mut self, come_back_ms: Option<u32>, out: &mut BytesMut);
}

/// A request body that cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON, not UTF-8, or nested too deeply.
    #[error("the body is not usable JSON: {0}")]
    NotJson(String),
    /// JSON with wrong fields, all of them named.
    #[error("the body has invalid fields")]
    Fields(Vec<FieldError>),
    /// A field is larger than its limit.
    #[error("{field} is larger than {max_bytes} bytes")]
    TooLarge {
        /// The field.
        field: &'static str,
        /// Its limit.
        max_bytes: usize,
    },
}

/// What is wrong with one field of a request body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The field's name.
    pub field: &'static str,
    /// What it must be.
    pub reason: String,
}
