//! The JSON of chat completions: the request, written from the history by reference and with nothing optional in it, and
//! the chunks of the stream, of which any field may be missing, null or empty.

use std::borrow::Cow;

use serde::ser::{Error as _, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::agent::ports::llm::ChatRequest;
use crate::chat::message::{AssistantPart, ModelOrigin, Replay};
use crate::chat::tool::{ToolCall, ToolDef};
use crate::llm::failure::ErrorField;
use crate::llm::history::{self, Answer, Arguments, Entry, Said};
use crate::llm::schema;

/// Stands between tool results and the user's next message when a run failed in between: some servers and many chat
/// templates refuse a user right after a tool.
const NO_ANSWER: &str = "[No answer was given.]";

/// What is different from server to server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Habits {
    pub(super) max_completion_tokens: bool,
    pub(super) stream_options: bool,
    pub(super) echo_reasoning: bool,
}

/// The body of `POST …/chat/completions`.
#[derive(Debug, Serialize)]
pub(super) struct Request<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
}

#[derive(Debug, Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Message<'a> {
    System {
        content: String,
    },
    User {
        content: Cow<'a, str>,
    },
    Assistant {
        /// Null, never empty, beside calls.
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: Cow<'a, str>,
    },
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "function")]
struct Call<'a> {
    id: &'a str,
    function: Function<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a RawValue>,
}

#[derive(Debug, Serialize)]
struct Function<'a> {
    name: &'a str,
    #[serde(serialize_with = "as_text")]
    arguments: Arguments<'a>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "function")]
struct Tool<'a> {
    function: ToolFunction<'a>,
}

#[derive(Debug, Serialize)]
struct ToolFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Cow<'a, Value>,
}

fn as_text<S: Serializer>(arguments: &Arguments<'_>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&serde_json::to_string(arguments).map_err(S::Error::custom)?)
}

impl<'a> Request<'a> {
    /// The request of `chat` to the model of `origin`.
    pub(super) fn new(chat: &ChatRequest<'a>, origin: &'a ModelOrigin, habits: Habits) -> Self {
        let entries = history::entries(chat.messages, origin);
        // A server that wants its reasoning back wants the field in every message of the assistant.
        let echo = habits.echo_reasoning
            && entries.iter().any(|entry| match entry {
                Entry::Assistant(said) => reasoning(said).is_some(),
                Entry::User(_) => false,
            });
        let mut messages = Vec::with_capacity(entries.len() + 1);
        let system = chat.system.text();
        if !system.trim().is_empty() {
            messages.push(Message::System { content: system });
        }
        for entry in entries {
            match entry {
                Entry::User(content) => {
                    if matches!(messages.last(), Some(Message::Tool { .. })) {
                        let (content, reasoning_content) = (Some(NO_ANSWER.into()), echo.then(Cow::default));
                        messages.push(Message::Assistant { content, reasoning_content, tool_calls: Vec::new() });
                    }
                    messages.push(Message::User { content });
                }
                Entry::Assistant(said) => {
                    messages.push(assistant(&said, echo));
                    messages.extend(said.answers.iter().map(result));
                }
            }
        }
        let limit = Some(chat.model.max_tokens);
        Self {
            model: &origin.model,
            messages,
            tools: chat.tools.iter().map(tool).collect(),
            stream: true,
            stream_options: habits.stream_options.then_some(StreamOptions { include_usage: true }),
            max_tokens: limit.filter(|_| !habits.max_completion_tokens),
            max_completion_tokens: limit.filter(|_| habits.max_completion_tokens),
        }
    }
}

fn assistant<'a>(said: &Said<'a>, echo: bool) -> Message<'a> {
    let text = said.text();
    let calls = said.parts.iter().filter_map(|part| match part {
        AssistantPart::ToolCall { call: called, replay } => {
            Some(call(called, replay.as_ref().filter(|_| said.is_ours)))
        }
        AssistantPart::Text { .. } | AssistantPart::Thinking { .. } | AssistantPart::Opaque(_) => None,
    });
    Message::Assistant {
        content: (!text.is_empty()).then_some(text),
        reasoning_content: echo.then(|| reasoning(said).unwrap_or_default()),
        tool_calls: calls.collect(),
    }
}

/// The reasoning that this server sent as `reasoning_content`: the fold marks it with replay data.
fn reasoning<'a>(said: &Said<'a>) -> Option<Cow<'a, str>> {
    let is_marked = |part: &AssistantPart| matches!(part, AssistantPart::Thinking { replay: Some(_), .. });
    (said.is_ours && said.parts.iter().any(is_marked)).then(|| said.thinking())
}

fn call<'a>(call: &'a ToolCall, replay: Option<&'a Replay>) -> Call<'a> {
    let function = Function { name: &call.name, arguments: Arguments(&call.input) };
    Call { id: call.id.as_str(), function, extra_content: replay.map(Replay::raw) }
}

fn result<'a>(answer: &Answer<'a>) -> Message<'a> {
    Message::Tool { tool_call_id: answer.call.id.as_str(), content: answer.text() }
}

fn tool(tool: &ToolDef) -> Tool<'_> {
    let parameters = schema::for_openai(&tool.input_schema);
    Tool { function: ToolFunction { name: &tool.name, description: &tool.description, parameters } }
}

/// One chunk of the stream.
#[derive(Debug, Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    pub(super) usage: Option<Usage>,
    pub(super) error: Option<ErrorField>,
    /// `error` when the chunk itself is an error object.
    pub(super) object: Option<String>,
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

/// Counters; the last value wins.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Usage {
    pub(super) prompt_tokens: Option<u64>,
    pub(super) completion_tokens: Option<u64>,
    pub(super) prompt_tokens_details: Option<PromptDetails>,
    pub(super) completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct PromptDetails {
    pub(super) cached_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct CompletionDetails {
    pub(super) reasoning_tokens: Option<u64>,
}
