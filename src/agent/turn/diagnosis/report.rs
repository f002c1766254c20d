//! A diagnosis as JSON. The order of the fields is that of the document.

use serde::Serialize;
use serde_json::Value;

use super::budget::Fitted;
use crate::chat::message::{AssistantPart, Message};
use crate::chat::payload::Payload;
use crate::chat::stream::Usage;
use crate::chat::tool::ToolInput;

/// How a run was carried out.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    pub(super) shape: &'static str,
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
    pub(super) max_tokens: Option<u32>,
    pub(super) max_turns: u32,
    pub(super) temperature: Option<f64>,
    pub(super) tools: Vec<OfferedTool>,
    pub(super) system_prompt: String,
    pub(super) messages: Vec<Fitted<SentMessage>>,
    pub(super) context: Option<Fitted<Value>>,
    pub(super) question: String,
    pub(super) ended: String,
    pub(super) error: Option<String>,
    pub(super) raw_text: String,
    pub(super) notes: Vec<String>,
    pub(super) outcome: &'static str,
    /// Of a trace only.
    #[serde(flatten)]
    pub(super) trace: Option<Trace>,
}

/// The fields of a trace alone.
#[derive(Debug, Default, Serialize)]
pub(super) struct Trace {
    pub(super) turns: Vec<TracedTurn>,
    pub(super) usage: Tokens,
}

/// A tool as it was offered.
#[derive(Debug, Serialize)]
pub(super) struct OfferedTool {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) input_schema: Fitted<Value>,
}

/// A call of a model, with the calls that it made.
#[derive(Debug, Default, Serialize)]
pub(super) struct TracedTurn {
    pub(super) turn: u32,
    /// How many of the messages the model was sent.
    pub(super) sent: usize,
    pub(super) text: String,
    pub(super) finish: Option<String>,
    pub(super) usage: Option<Tokens>,
    pub(super) duration_ms: u64,
    pub(super) tool_calls: Vec<TracedCall>,
}

/// A call and its result.
#[derive(Debug, Serialize)]
pub(super) struct TracedCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: Fitted<Value>,
    pub(super) output: String,
    pub(super) is_error: bool,
    pub(super) duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) payload: Option<TracedPayload>,
}

/// The payload of a call.
#[derive(Debug, Serialize)]
pub(super) struct TracedPayload {
    payload_id: String,
    r#type: String,
    data: Fitted<Value>,
    summary: String,
}

impl TracedPayload {
    /// `payload`, with as much of its data as fits.
    pub(super) fn new(payload: &Payload, data: Fitted<Value>) -> Self {
        let Payload { id, kind, summary, .. } = payload;
        Self { payload_id: id.to_string(), r#type: kind.clone(), data, summary: summary.clone() }
    }
}

/// Tokens of one model call or of several.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Tokens {
    input_tokens: u64,
    output_tokens: u64,
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        Self { input_tokens: usage.input_tokens, output_tokens: usage.output_tokens }
    }
}

/// A message: a text, or blocks where there are calls.
#[derive(Debug, Serialize)]
pub(super) struct SentMessage {
    pub(super) role: &'static str,
    pub(super) content: Content,
}

/// The content of a message.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

/// A part of a message.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block {
    Text { text: String },
    ToolUse { id: String, name: String, input: Value },
    ToolResult { tool_use_id: String, content: String, is_error: bool },
}

impl SentMessage {
    /// `message` as the model was sent it.
    pub(super) fn new(message: &Message) -> Self {
        match message {
            Message::User(user) => Self { role: "user", content: Content::Text(user.model_text()) },
            Message::Assistant(answer) if answer.calls().next().is_none() => {
                Self { role: "assistant", content: Content::Text(answer.text()) }
            }
            Message::Assistant(answer) => {
                let text = Some(answer.text()).filter(|text| !text.is_empty()).map(|text| Block::Text { text });
                let calls = answer.calls().map(|call| Block::ToolUse {
                    id: call.id.as_str().to_owned(),
                    name: call.name.clone(),
                    input: input(&call.input),
                });
                Self { role: "assistant", content: Content::Blocks(text.into_iter().chain(calls).collect()) }
            }
            Message::ToolResults(results) => {
                let results = results.iter().map(|result| Block::ToolResult {
                    tool_use_id: result.id.as_str().to_owned(),
                    content: result.content.clone(),
                    is_error: result.fate.is_error(),
                });
                Self { role: "user", content: Content::Blocks(results.collect()) }
            }
        }
    }

    /// The role and the text of `message`; `None` without text.
    pub(super) fn words(message: &Message) -> Option<(&'static str, String)> {
        let (role, words) = match message {
            Message::User(user) => ("user", user.text.clone()),
            Message::Assistant(assistant) => ("assistant", assistant.parts.iter().filter_map(text).collect()),
            Message::ToolResults(_) => return None,
        };
        (!words.is_empty()).then_some((role, words))
    }
}

/// Arguments as they came: an object, or the text that is none.
pub(super) fn input(input: &ToolInput) -> Value {
    match input {
        ToolInput::Object(arguments) => Value::Object(arguments.clone()),
        ToolInput::Invalid(text) => Value::String(text.clone()),
    }
}

fn text(part: &AssistantPart) -> Option<&str> {
    match part {
        AssistantPart::Text { text, .. } => Some(text),
        AssistantPart::Thinking { .. } | AssistantPart::ToolCall { .. } | AssistantPart::Opaque(_) => None,
    }
}
