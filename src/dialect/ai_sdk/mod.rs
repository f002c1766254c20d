//! The UI message stream of the AI SDK (`docs/protocol/ai-sdk.md`), which `useChat` reads: nameless frames of JSON chunks,
//! `[DONE]` at the end.
//!
//! **Invariant:** no chunk outside of the version's own set: a client refuses the whole answer for one type that it does not
//! know, and older ones for a single field.

mod chunks;
mod encoder;
mod history;
mod plain;
mod request;
#[cfg(test)]
mod tests;
mod tools;
mod ui_message;
mod wire;

use serde::Deserialize;

use super::{DecodeError, RunIds};
use crate::chat::cost::Cost;
use crate::chat::stream::Usage;

pub use history::Chat;
pub use request::{Body as RequestBody, Read, What};
pub use wire::UiMessages;

/// The protocol, with the limits of its request fields.
#[derive(Debug, Clone, Copy)]
pub struct AiSdk {
    /// The chunks that clients know who do not say.
    pub version: Version,
    /// The longest message, in bytes; 0 means no limit.
    pub max_message_bytes: usize,
    /// The largest `context`, and the largest result of a client's own tool, in bytes; 0 means no limit.
    pub max_context_bytes: usize,
}

/// The major version of a client's `ai` package, on which it depends what it can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "u8")]
pub enum Version {
    /// No approvals.
    V5,
    /// Approvals.
    V6,
    /// Nothing more that is needed here.
    V7,
}

impl Version {
    /// The version of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::try_from(name.parse::<u8>().ok()?).ok()
    }
}

impl TryFrom<u8> for Version {
    type Error = &'static str;

    fn try_from(major: u8) -> Result<Self, Self::Error> {
        match major {
            5 => Ok(Self::V5),
            6 => Ok(Self::V6),
            7 => Ok(Self::V7),
            _ => Err("must be 5, 6 or 7"),
        }
    }
}

/// The query of a request's URL; each goes before the same key of the body.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Query {
    /// The client's version.
    pub sdk: Option<String>,
    /// Which assistant answers.
    pub context_type: Option<String>,
    /// The same, in shorter words.
    pub profile: Option<String>,
}

/// The answer for a client.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The run's ids.
    pub of: RunIds,
    /// The chunks that its client knows.
    pub version: Version,
    /// The message of the client that goes on with this run; `None` begins a new one.
    pub continues: Option<String>,
    /// The tools that the client runs itself.
    pub client_tools: Own,
    /// Whether another run follows in the same stream when this one ends well.
    pub more_follows: bool,
    /// The use of the runs before it in the same stream: the message's metadata has the total.
    pub spent: Spent,
}

/// The tools that a client runs itself, by their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Own {
    /// These.
    These(Vec<String>),
    /// Any but these, which are the server's: what a client that has come back brought is not known.
    NoneOf(Vec<String>),
}

impl Own {
    /// Whether the tool may be one of the client's.
    fn may_have(&self, name: &str) -> bool {
        match self {
            Self::These(names) => names.iter().any(|own| own == name),
            Self::NoneOf(names) => !names.iter().any(|servers| servers == name),
        }
    }
}

/// The use of runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Their tokens.
    pub usage: Usage,
    /// Their cost, where their models have prices.
    pub cost: Option<Cost>,
}

impl AiSdk {
    /// The request.
    ///
    /// # Errors
    /// Its mistakes, in words for its sender.
    pub fn parse(&self, query: &Query, body: &[u8]) -> Result<Read, DecodeError> {
        request::read(self, query, body, false)
    }

    /// The client's version as the URL tells it, else the usual one.
    ///
    /// # Errors
    /// When it is none.
    pub fn version(&self, query: &Query) -> Result<Version, DecodeError> {
        request::version(self, query, None)
    }
}
