//! OpenAI's Responses as a dialect: `POST /v1/responses` (`docs/protocol/responses.md`). A profile is a model to these
//! clients, a run a response, and what it says and does are the items of that.
//!
//! **Invariant:** what is sent depends on the run's events and ids and the settings alone: who reads a run again reads the
//! same bytes, but for sentences about files that an answer in a form has only then.
//! **Invariant:** no event and no item has a type that the official clients do not know: one of them throws at such.
//! **Invariant:** a call of a tool that this server runs is an `mcp_call`, never one that a client would try to run.

mod answer;
mod encoder;
mod ids;
mod input;
mod item;
mod items;
mod request;
mod response;
#[cfg(test)]
mod tests;
mod tools;
mod wire;

pub use answer::Answer;
pub use ids::{conversation_id, conversation_of, of_question, response_id, run_of};
pub use item::{Item, Part};
pub use request::Body;
pub use response::{About, ConversationRefBody, ResponseBody};
pub use wire::Telling;

use std::sync::Arc;

use super::DecodeError;
use super::told::Limits;

/// The protocol.
#[derive(Debug, Clone)]
pub struct Responses {
    /// The limits of its request fields.
    pub limits: Limits,
    /// Where people reach this server, by its settings: a request may come by another name than the one that reads again.
    pub public_url: Arc<str>,
}

impl Responses {
    /// About how many tokens a request has, one for four bytes of its texts.
    ///
    /// # Errors
    /// The body's mistakes, in words for its sender.
    pub fn estimate(body: &[u8]) -> Result<usize, DecodeError> {
        request::estimate(body)
    }
}
