//! The JSON of chat completions' stream: chunks, of which any field may be missing, null or empty.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::usage::Usage;
use crate::llm::failure::ErrorField;

/// One chunk of the stream. Legacy `function_call` beside or instead of `tool_calls` is not read: functions are never
/// offered, only tools.
#[derive(Debug, Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    x_groq: Option<Groq<'a>>,
    error: Option<ErrorField>,
    /// `error` when the chunk itself is an error object.
    pub(super) object: Option<String>,
}

/// What Groq adds to a chunk.
#[derive(Debug, Deserialize)]
struct Groq<'a> {
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    error: Option<ErrorField>,
}

impl<'a> Chunk<'a> {
    /// The token counts in it, the last one being the best.
    pub(super) fn usages(&self) -> impl Iterator<Item = Usage> {
        let groq = self.x_groq.as_ref().and_then(|groq| groq.usage);
        // Counts that cannot be read are no reason to lose an answer.
        [groq, self.usage].into_iter().flatten().filter_map(|raw| serde_json::from_str(raw.get()).ok())
    }

    /// The error in it.
    pub(super) fn take_error(&mut self) -> Option<ErrorField> {
        self.error.take().or_else(|| self.x_groq.as_mut()?.error.take())
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    pub(super) finish_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    pub(super) content: Option<Content>,
    pub(super) refusal: Option<String>,
    pub(super) reasoning_content: Option<String>,
    pub(super) reasoning: Option<String>,
    #[serde(borrow)]
    pub(super) reasoning_details: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<CallDelta<'a>>>,
}

/// Text, or typed parts.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ContentPart {
    Text {
        text: Option<String>,
    },
    Thinking {
        thinking: Option<Content>,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
pub(super) struct CallDelta<'a> {
    pub(super) index: Option<i64>,
    pub(super) id: Option<String>,
    #[serde(borrow)]
    pub(super) function: Option<FunctionDelta<'a>>,
    #[serde(borrow)]
    pub(super) extra_content: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct FunctionDelta<'a> {
    pub(super) name: Option<String>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}
