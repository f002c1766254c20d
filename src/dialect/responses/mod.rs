//! OpenAI's Responses as a dialect: `POST /v1/responses` (`docs/protocol/responses.md`). A profile is a model to these
//! clients, a run a response, and what it says and does are the items of that.
//!
//! **Invariant:** what is sent depends on the run's events and ids alone: who reads a run again reads the same bytes.
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

use super::DecodeError;
use super::told::Limits;

/// The protocol, with the limits of its request fields.
#[derive(Debug, Clone, Copy)]
pub struct Responses(pub Limits);

impl Responses {
    /// About how many tokens a request has, one for four bytes of its texts.
    ///
    /// # Errors
    /// The body's mistakes, in words for its sender.
    pub fn estimate(body: &[u8]) -> Result<usize, DecodeError> {
        request::estimate(body)
    }
}
