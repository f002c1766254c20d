//! Anthropic's Messages as a dialect: `POST /v1/messages` (`docs/protocol/messages.md`). A profile is a model to these clients, a
//! run a message, and what it says and does are the content blocks of that. Each request tells the whole conversation.
//!
//! **Invariant:** what is sent depends on the run's events and ids alone: who reads a run again reads the same bytes.
//! **Invariant:** no event and no block has a type that the official clients do not know; the positions of blocks have no gaps, and
//! one block ends before the next begins.
//! **Invariant:** a call of a tool that this server runs is an `mcp_tool_use`, never one that a client would try to run.

mod answer;
mod block;
mod blocks;
mod encoder;
mod files;
mod history;
mod message;
mod models;
mod request;
#[cfg(test)]
mod tests;
mod tools;
mod wire;

pub use files::{FileBody, FileDeletedBody, FileListBody};
pub use message::{ErrorBody, MessageBody};
pub use models::{Gives, ModelBody, ModelListBody};
pub use request::Body;

use super::DecodeError;
use super::told::Limits;

/// The protocol, with the limits of its request fields.
#[derive(Debug, Clone, Copy)]
pub struct Messages(pub Limits);

impl Messages {
    /// About how many tokens a request has, one for four bytes of its texts.
    ///
    /// # Errors
    /// The body's mistakes, in words for its sender.
    pub fn estimate(body: &[u8]) -> Result<usize, DecodeError> {
        request::estimate(body)
    }
}
