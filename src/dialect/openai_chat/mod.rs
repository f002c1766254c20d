//! OpenAI's Chat Completions as a dialect: `POST /v1/chat/completions` (`docs/protocol/openai.md`). A profile is a model
//! to these clients, and its `context_type` the model's id.
//!
//! **Invariant:** a call of a tool that this server runs is never sent: a client would try to run it. Only calls that a
//! run leaves to its client are `tool_calls`.

mod answer;
mod chunks;
mod encoder;
mod files;
mod format;
mod request;
mod tasks;
#[cfg(test)]
mod tests;
mod tools;
mod transcript;
mod wire;

pub use answer::{Answer, failed};
pub use chunks::{Completion, ErrorBody, ModelBody, ModelListBody};
pub use files::{FileBody, FileDeletedBody, FileListBody};
pub use request::{Body as RequestBody, Read};
pub use wire::no_such_model;

use std::sync::Arc;

use super::DecodeError;
use super::ignored::Ignored;
use super::sentences::Sentences;
use super::told::{Limits, Unawaited};
use crate::chat::ids::{ConversationId, RunId};

/// The protocol, with the limits of its request fields.
#[derive(Debug, Clone, Copy)]
pub struct OpenAiChat(pub Limits);

/// Which conversation a request's headers name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// None.
    None,
    /// This one.
    Conversation(ConversationId),
    /// This one of a front end that sends it with its own small tasks too, a title for instance.
    Chat(ConversationId),
}

impl OpenAiChat {
    /// The request in a body, to a profile that believes nothing of what its clients tell of their tools.
    ///
    /// # Errors
    /// The body's mistakes, in words for its sender.
    pub fn parse(&self, body: &[u8], key: Key) -> Result<Read, DecodeError> {
        request::read(&self.0, body, key, Unawaited { all: false, believes: &|_| false })
    }
}

/// How a run is sent to the client that requested it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telling {
    /// The model's id, as the client gave it.
    pub model: String,
    /// Whether the client names the conversation with each request. One that does not gets it with each call's id.
    pub is_keyed: bool,
    /// Whether a stream tells the tokens at its end.
    pub include_usage: bool,
    /// What it asks for in vain.
    pub ignored: Ignored,
    /// Whether the answer has a form.
    pub in_form: bool,
    /// Where people reach this server; empty where that is not known.
    pub public_url: Arc<str>,
}

impl Telling {
    fn sentences(&self) -> Sentences {
        Sentences::new(self.public_url.clone(), self.in_form)
    }
}

/// The beginning of both shapes of an answer: its id, and when it began, in seconds since the Unix epoch. Both are of
/// the run, so that who reads it a second time reads the same.
fn name_of(run: RunId) -> (String, u64) {
    (format!("chatcmpl-{run}"), u64::try_from(run.made_ms() / 1000).unwrap_or_default())
}
