//! The pieces of messages, as a request has them.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::llm::files::Data;
use crate::llm::history::Arguments;

#[derive(Debug, Serialize)]
pub(super) struct Message<'a> {
    pub(super) role: &'static str,
    pub(super) content: Vec<Block<'a>>,
}

/// A piece of a message, of the system prompt or of a tool's result.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Block<'a> {
    Text(Cow<'a, str>),
    Image {
        format: &'static str,
        source: Source<'a>,
    },
    Document(Document<'a>),
    /// A text in the place of a document that is not sent.
    #[serde(rename = "text")]
    LeftOut(LeftOut<'a>),
    #[serde(rename_all = "camelCase")]
    ToolUse {
        tool_use_id: Cow<'a, str>,
        name: &'a str,
        input: Arguments<'a>,
    },
    #[serde(rename_all = "camelCase")]
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Vec<Self>,
        status: &'static str,
    },
    ReasoningContent(Reasoning<'a>),
    CachePoint(CachePoint),
    /// Redacted reasoning, as it came.
    #[serde(untagged)]
    Raw(&'a RawValue),
}

/// A PDF document; its name is any until `documents` gives it one that is allowed.
#[derive(Debug, Serialize)]
pub(super) struct Document<'a> {
    pub(super) format: &'static str,
    pub(super) name: Cow<'a, str>,
    pub(super) source: Source<'a>,
}

/// What is said of a document that is not sent. Its name stays taken, so that those of the others do not change.
#[derive(Debug)]
pub(super) struct LeftOut<'a> {
    pub(super) name: &'a str,
    pub(super) said: Cow<'a, str>,
}

impl Serialize for LeftOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.said)
    }
}

/// The bytes of a picture or a document.
#[derive(Debug, Serialize)]
pub(super) struct Source<'a> {
    pub(super) bytes: Data<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Reasoning<'a> {
    ReasoningText { text: &'a str, signature: &'a RawValue },
}

/// Ends a part of the prompt that is the same next time. At most four are allowed.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(super) enum CachePoint {
    Default,
}

/// Redacted reasoning, in the shape that goes back.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Redacted {
    reasoning_content: RedactedContent,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RedactedContent {
    redacted_content: String,
}

impl Redacted {
    pub(super) fn new(redacted_content: String) -> Self {
        Self { reasoning_content: RedactedContent { redacted_content } }
    }
}
