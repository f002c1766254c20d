//! Typed payloads: structured data that a tool returned or a model wrote, kept with its conversation. The client gets
//! the data, the model a line about it, and all of it when it asks.

use super::ids::PayloadId;
use crate::bounded::json::JsonText;

/// A payload as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    /// Its id, unique in its conversation.
    pub id: PayloadId,
    /// The name of its type.
    pub kind: String,
    /// The data.
    pub data: JsonText,
    /// One line about it.
    pub summary: String,
    /// Who made it.
    pub source: PayloadSource,
}

/// Who made a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadSource {
    /// A tool.
    Tool,
    /// The model, behind a marker in its text.
    Model,
}

impl PayloadSource {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Tool, Self::Model];

    /// Its name in the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Model => "model",
        }
    }

    /// The source of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.name() == name)
    }
}

/// A payload that has just been made: it gets an id and a summary when it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPayload {
    /// The name of its type.
    pub kind: String,
    /// The data.
    pub data: JsonText,
}

/// A payload without its data, for lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadHead {
    /// Its id.
    pub id: PayloadId,
    /// The name of its type.
    pub kind: String,
    /// One line about it.
    pub summary: String,
}
