//! Ollama's JSON: the request, written from the history by reference, and the lines of its stream.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::agent::ports::llm::ChatRequest;
use crate::chat::ids::ToolCallId;
use crate::chat::message::ModelOrigin;
use crate::chat::model::Effort;
use crate::chat::tool::{ToolCall, ToolDef};
use crate::llm::failure::ErrorField;
use crate::llm::few::Few;
use crate::llm::history::{self, Arguments, AssistantTurn, CallResult, Entry};
use crate::llm::lenient;
use crate::llm::schema;

/// The body of `POST /api/chat`.
#[derive(Debug, Serialize)]
pub(super) struct Request<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    stream: bool,
    /// Off: a conversation that is too long must be an error, not an answer that has forgotten its tool results.
    truncate: bool,
    /// Left out unless it is set: `true` is refused by models that cannot think, and those that can do it anyway.
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Think>,
    options: Options,
}

/// Whether to think, or how much.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Think {
    Switch(bool),
    Level(&'static str),
}

#[derive(Debug, Serialize)]
struct Options {
    #[serde(skip_serializing_if = "Option::is_none")]
    num_ctx: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
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
        content: Cow<'a, str>,
        #[serde(skip_serializing_if = "str::is_empty")]
        thinking: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<&'a str>,
        content: Cow<'a, str>,
    },
}

#[derive(Debug, Serialize)]
struct Call<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    function: Function<'a>,
}

#[derive(Debug, Serialize)]
struct Function<'a> {
    name: &'a str,
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
    description: Cow<'a, str>,
    parameters: Cow<'a, Value>,
}

impl<'a> Request<'a> {
    /// The request of `chat` to the model of `origin`, with a context window of `num_ctx` tokens.
    pub(super) fn new(chat: &ChatRequest<'a>, origin: &'a ModelOrigin, num_ctx: Option<u32>) -> Self {
        let mut messages = Vec::new();
        let system = chat.system.text();
        if !system.trim().is_empty() {
            messages.push(Message::System { content: system });
        }
        for entry in history::entries(chat.messages, origin) {
            match entry {
                Entry::User(content) => messages.push(Message::User { content }),
                Entry::Assistant(turn) => {
                    messages.push(assistant(&turn));
                    messages.extend(turn.answers.iter().map(result));
                }
            }
        }
        Self {
            model: &origin.model,
            messages,
            tools: chat.tools.iter().filter(|_| chat.may_call).map(|def| tool(def)).collect(),
            stream: true,
            truncate: false,
            think: chat.model.effort.map(|effort| think(effort, &origin.model)),
            options: Options { num_ctx, num_predict: chat.model.max_tokens, temperature: chat.model.temperature },
        }
    }
}

/// <https://docs.ollama.com/capabilities/thinking>: gpt-oss knows three levels, cannot be switched off and ignores `true`
/// and `false`; all other models know only those.
fn think(effort: Effort, model: &str) -> Think {
    let has_levels = model.rsplit('/').next().is_some_and(|name| name.starts_with("gpt-oss"));
    match effort {
        Effort::None | Effort::Low if has_levels => Think::Level("low"),
        Effort::Medium if has_levels => Think::Level("medium"),
        Effort::High | Effort::Max if has_levels => Think::Level("high"),
        Effort::None => Think::Switch(false),
        Effort::Low | Effort::Medium | Effort::High | Effort::Max => Think::Switch(true),
    }
}

fn assistant<'a>(turn: &AssistantTurn<'a>) -> Message<'a> {
    let calls = turn.answers.iter().map(|answer| answer.call);
    Message::Assistant {
        content: turn.text(),
        thinking: if turn.is_ours { turn.thinking() } else { Cow::default() },
        tool_calls: calls.map(call).collect(),
    }
}

fn call(call: &ToolCall) -> Call<'_> {
    Call { id: id(&call.id), function: Function { name: &call.name, arguments: Arguments(&call.input) } }
}

fn result<'a>(answer: &CallResult<'a>) -> Message<'a> {
    Message::Tool { tool_name: &answer.call.name, tool_call_id: id(&answer.call.id), content: answer.text() }
}

/// Only the ids that a model gave: older servers give none.
fn id(id: &ToolCallId) -> Option<&str> {
    (!id.is_minted()).then(|| id.as_str())
}

fn tool(tool: &ToolDef) -> Tool<'_> {
    let (description, parameters) = schema::without_references(&tool.description, &tool.input_schema);
    Tool { function: ToolFunction { name: &tool.name, description, parameters } }
}

/// One line of the stream.
#[derive(Debug, Deserialize)]
pub(super) struct Line<'a> {
    #[serde(borrow)]
    pub(super) message: Option<LineMessage<'a>>,
    pub(super) done: Option<bool>,
    pub(super) done_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) prompt_eval_count: Option<u64>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) eval_count: Option<u64>,
    #[serde(default, deserialize_with = "lenient::error")]
    pub(super) error: Option<ErrorField>,
}

#[derive(Debug, Deserialize)]
pub(super) struct LineMessage<'a> {
    pub(super) content: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) thinking: Option<String>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Few<LineCall<'a>>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct LineCall<'a> {
    #[serde(default, deserialize_with = "lenient::name")]
    pub(super) id: Option<String>,
    #[serde(borrow)]
    pub(super) function: Option<LineFunction<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct LineFunction<'a> {
    pub(super) name: Option<String>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}
