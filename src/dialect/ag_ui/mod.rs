//! The AG-UI dialect: `POST /v1/ag-ui/{agent}` and what CopilotKit's browser client asks of a runtime
//! (`docs/protocol/ag-ui.md`). Frames have no names: the JSON says its `type`.
//!
//! A client says which protocol it speaks, once per request; one that says nothing gets what 0.0.59 knows.
//! **Invariant:** the client's history is never taken, only its newest words; what it sends beside them is data.

mod calls;
mod encoder;
mod events;
mod request;
mod resume;
mod stream;
#[cfg(test)]
mod tests;
mod usage;
mod wire;

use serde::Deserialize;

use super::{DecodeError, FieldError};
use crate::chat::ids::ConversationId;

pub use request::{Body as RequestBody, Read};
pub use resume::{Answered, Entry};
pub use stream::Stream;
pub use wire::is_for;

/// The protocol, with the limits of its request fields.
#[derive(Debug, Clone, Copy)]
pub struct AgUi {
    /// The longest message of a user, in bytes; 0 means no limit.
    pub max_message_bytes: usize,
    /// The largest `state`, `context` and `forwardedProps` together, and the largest results of tools of a client
    /// together, in bytes of JSON; 0 means no limit.
    pub max_context_bytes: usize,
    /// What becomes of an input that leaves an interrupt of its thread open.
    pub open_interrupts: OpenInterrupts,
}

/// What becomes of an input that leaves an interrupt of its thread open. Nothing is done either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OpenInterrupts {
    /// `RUN_ERROR`, as the protocol says.
    Error,
    /// A text that says so, and a good end that names them, for clients that were not built for interrupts.
    Text,
}

/// Which events a client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// 0.0.59 and before: whatever came later is left out.
    Before1,
    /// 1.0.
    V1,
}

/// The client and its thread, before its question is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asker {
    /// The thread: our conversation.
    pub thread: ConversationId,
    /// The client's own name for the run.
    pub run: String,
    /// The version that it knows.
    pub version: Version,
}

impl AgUi {
    /// The request in a `RunAgentInput`.
    ///
    /// # Errors
    /// Its mistakes, in words for its sender.
    pub fn parse(&self, body: &[u8]) -> Result<Read, DecodeError> {
        request::read(self, body, false)
    }

    /// The client, from a `RunAgentInput` with nothing new.
    ///
    /// # Errors
    /// Its mistakes, in words for its sender.
    pub fn decode_asker(&self, body: &[u8]) -> Result<Asker, DecodeError> {
        request::decode_asker(body)
    }
}

/// The mistakes of a request.
type Errors = Vec<FieldError>;

fn refuse(errors: &mut Errors, field: &'static str, reason: impl Into<String>) {
    errors.push(FieldError { field, reason: reason.into() });
}
