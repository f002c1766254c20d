//! The `smithy` dialect: `POST /api/chat` of coding agents whose client is an editor (`docs/protocol/smithy.md`). Frames have
//! no name; their JSON says what each is. There is one dialog for each conversation.
//!
//! **Invariant:** a stream begins with `user`, ends with one `done`, and no segment is open when anything else is told.
//! **Invariant:** a dialog's history is what its streams have told, in their order ([`history`]).

mod encoder;
mod frames;
pub mod history;
mod request;
#[cfg(test)]
mod tests;
mod wire;
mod words;

use std::sync::Arc;

pub use request::dialog_id;

/// The protocol, with the limits of its request fields.
#[derive(Debug, Clone)]
pub struct Smithy {
    /// The `context_type` of the profile that answers; empty where there is no workspace.
    pub context_type: Arc<str>,
    /// The role that its users need; empty: none.
    pub role: Arc<str>,
    /// The longest message, in bytes; 0 means no limit.
    pub max_message_bytes: usize,
}
