//! Typed payloads: structured data that a tool returned or a model wrote, kept with its conversation. The client gets
//! the data, the model a line about it, and all of it when it asks.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::ids::PayloadId;
use crate::bounded::json;

/// JSON that is passed on, as its text. Clones are the same text.
#[derive(Debug, Clone)]
pub struct PayloadData(Arc<RawValue>);

impl PayloadData {
    /// The text of `value`.
    pub fn of(value: &Value) -> Self {
        // A value always serialises.
        to_raw_value(value).map_or_else(|_| Self::null(), Self::from)
    }

    /// What there is where nothing is.
    pub fn null() -> Self {
        Self(RawValue::NULL.to_owned().into())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Its text as JSON, for whoever writes it into another.
    pub fn raw(&self) -> &RawValue {
        &self.0
    }

    /// Its value, read anew; `null` where that would take too much memory.
    pub fn value(&self) -> Value {
        json::value(self.as_str()).unwrap_or_default()
    }
}

impl From<Box<RawValue>> for PayloadData {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw.into())
    }
}

impl Serialize for PayloadData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw().serialize(serializer)
    }
}

impl PartialEq for PayloadData {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

/// A payload as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    /// Its id, unique in its conversation.
    pub id: PayloadId,
    /// The name of its type.
    pub kind: String,
    /// The data.
    pub data: PayloadData,
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
    pub data: PayloadData,
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
