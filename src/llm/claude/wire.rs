//! The Messages API's JSON: the request, written from the history by reference, and the events of its stream. Every field
//! of an event is optional, since gateways leave out what they like.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::agent::ports::llm::ChatRequest;
use crate::chat::ids::ToolCallId;
use crate::chat::message::{AssistantPart, ModelOrigin};
use crate::llm::failure::ErrorField;
use crate::llm::history::{self, Arguments, Entry, Said};
use crate::llm::schema;

/// The body of `POST /v1/messages`. It never has sampling parameters: newer versions refuse them.
#[derive(Debug, Serialize)]
pub(super) struct Request<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
}

#[derive(Debug, Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Debug, Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: Cow<'a, Value>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a RawValue,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Arguments<'a>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: &'a str,
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    /// Redacted thinking, as it came.
    #[serde(untagged)]
    Raw(&'a RawValue),
}

/// Ends a part of the prompt that is the same next time. At most four marks are allowed.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

impl<'a> Request<'a> {
    /// The request of `chat` to the model of `origin`.
    pub(super) fn new(chat: &ChatRequest<'a>, origin: &'a ModelOrigin) -> Self {
        let mut messages: Vec<Message<'a>> = Vec::new();
        for entry in history::entries(chat.messages, origin) {
            match entry {
                Entry::User(text) => {
                    let block = Block::Text { text, cache_control: None };
                    match messages.last_mut() {
                        // Results and what the user says next are one message, the results first.
                        Some(Message { role: "user", content }) => content.push(block),
                        _ => messages.push(Message { role: "user", content: vec![block] }),
                    }
                }
                Entry::Assistant(said) => {
                    messages.push(Message { role: "assistant", content: assistant(&said) });
                    if !said.answers.is_empty() {
                        messages.push(Message { role: "user", content: results(&said) });
                    }
                }
            }
        }
        if let Some(last) = messages.last_mut().and_then(|message| message.content.last_mut()) {
            // The next turn of the loop sends all of this again.
            last.mark();
        }
        let tools = chat.tools.iter();
        Self {
            model: &origin.model,
            max_tokens: chat.model.max_tokens,
            stream: true,
            system: system(chat),
            messages,
            tools: tools
                .map(|tool| Tool {
                    name: &tool.name,
                    description: &tool.description,
                    input_schema: schema::for_claude(&tool.input_schema),
                })
                .collect(),
        }
    }
}

/// The instructions end with a cache mark, which covers the tools too; what changes per request stands behind it.
fn system<'a>(chat: &ChatRequest<'a>) -> Vec<Block<'a>> {
    let instructions = (&*chat.system.instructions, Some(CacheControl::Ephemeral));
    let context = (chat.system.context.as_str(), None);
    let parts = [instructions, context].into_iter().filter(|(text, _)| !text.trim().is_empty());
    parts.map(|(text, cache_control)| Block::Text { text: text.into(), cache_control }).collect()
}

/// Text and replayed thinking in stream order, then the calls: after a call only its result may follow.
fn assistant<'a>(said: &Said<'a>) -> Vec<Block<'a>> {
    let pieces = said.parts.iter().filter_map(|part| match part {
        // A blank text block is refused.
        AssistantPart::Text { text, .. } if !text.trim().is_empty() => {
            Some(Block::Text { text: text.into(), cache_control: None })
        }
        AssistantPart::Thinking { text, replay: Some(replay) } if said.is_ours => {
            Some(Block::Thinking { thinking: text, signature: replay.raw() })
        }
        AssistantPart::Opaque(replay) if said.is_ours => Some(Block::Raw(replay.raw())),
        AssistantPart::Text { .. }
        | AssistantPart::Thinking { .. }
        | AssistantPart::ToolCall { .. }
        | AssistantPart::Opaque(_) => None,
    });
    let calls = said.answers.iter().map(|answer| answer.call);
    let calls = calls.map(|call| Block::ToolUse { id: id(&call.id), name: &call.name, input: Arguments(&call.input) });
    pieces.chain(calls).collect()
}

fn results<'a>(said: &Said<'a>) -> Vec<Block<'a>> {
    let result = |answer: &history::Answer<'a>| Block::ToolResult {
        tool_use_id: id(&answer.call.id),
        content: answer.content,
        is_error: answer.is_error,
        cache_control: None,
    };
    said.answers.iter().map(result).collect()
}

/// The id in the alphabet that is allowed here, `A-Za-z0-9_-`; another vendor's id may have other characters.
fn id(id: &ToolCallId) -> Cow<'_, str> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let text = id.as_str();
    if text.bytes().all(allowed) {
        return text.into();
    }
    let escaped = text.bytes().map(|b| if allowed(b) { char::from(b).to_string() } else { format!("-{b:02x}") });
    escaped.collect::<String>().into()
}

impl Block<'_> {
    fn mark(&mut self) {
        match self {
            Self::Text { cache_control, .. } | Self::ToolResult { cache_control, .. } => {
                *cache_control = Some(CacheControl::Ephemeral);
            }
            Self::Thinking { .. } | Self::ToolUse { .. } | Self::Raw(_) => {}
        }
    }
}

/// The kind of an event; the rest of it is read once the kind is known.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<Cow<'a, str>>,
}

/// `message_start`.
#[derive(Debug, Deserialize)]
pub(super) struct MessageStart {
    pub(super) message: Option<MessageHead>,
}

#[derive(Debug, Deserialize)]
pub(super) struct MessageHead {
    pub(super) id: Option<String>,
    pub(super) usage: Option<Usage>,
}

/// `content_block_start`.
#[derive(Debug, Deserialize)]
pub(super) struct BlockStart<'a> {
    #[serde(default)]
    pub(super) index: u64,
    #[serde(borrow)]
    pub(super) content_block: Option<ContentBlock<'a>>,
}

/// A block's beginning: which fields there are depends on `kind`.
#[derive(Debug, Deserialize)]
pub(super) struct ContentBlock<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) signature: Option<String>,
    pub(super) data: Option<String>,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
}

/// `content_block_delta`.
#[derive(Debug, Deserialize)]
pub(super) struct BlockDelta {
    #[serde(default)]
    pub(super) index: u64,
    pub(super) delta: Option<Delta>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(super) enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: Option<String> },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: Option<String> },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: Option<String> },
    #[serde(rename = "signature_delta")]
    Signature { signature: Option<String> },
    #[serde(other)]
    Other,
}

/// `content_block_stop`.
#[derive(Debug, Deserialize)]
pub(super) struct BlockStop {
    #[serde(default)]
    pub(super) index: u64,
}

/// `message_delta`.
#[derive(Debug, Deserialize)]
pub(super) struct MessageDelta {
    pub(super) delta: Option<StopInfo>,
    pub(super) usage: Option<Usage>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StopInfo {
    pub(super) stop_reason: Option<String>,
}

/// `error`.
#[derive(Debug, Deserialize)]
pub(super) struct ErrorEvent {
    pub(super) error: Option<ErrorField>,
}

/// Counters; a later event overrides what it repeats.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Usage {
    pub(super) input_tokens: Option<u64>,
    pub(super) cache_creation_input_tokens: Option<u64>,
    pub(super) cache_read_input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct OutputDetails {
    pub(super) thinking_tokens: Option<u64>,
}

/// A redacted block, in the shape that goes back.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "redacted_thinking")]
pub(super) struct RedactedThinking {
    pub(super) data: String,
}
