//! The JSON of a request for chat completions, written from the history by reference and with nothing optional in it.

use std::borrow::Cow;

use serde::Serialize;
use serde::ser::{Error as _, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::call_ids::{CallIds, Known};
use super::habits::Habits;
use super::reasoning::{Echo, Mark};
use crate::agent::ports::llm::ChatRequest;
use crate::chat::message::{self, AssistantPart, ModelOrigin, Replay};
use crate::chat::tool::{ToolCall, ToolDef};
use crate::llm::history::{self, Arguments, AssistantTurn, CallResult, Entry};
use crate::llm::schema;

/// Stands between tool results and the user's next message when a run failed in between: some servers and many chat
/// templates refuse a user right after a tool.
const NO_ANSWER: &str = "[No answer was given.]";

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
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(flatten)]
    extra: &'a Map<String, Value>,
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
        #[serde(flatten)]
        echo: Echo<'a>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: Cow<'a, str>,
    },
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "function")]
struct Call<'a> {
    id: Cow<'a, str>,
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
    pub(super) fn new(chat: &ChatRequest<'a>, origin: &'a ModelOrigin, habits: &'a Habits) -> Self {
        let entries = history::entries(chat.messages, origin);
        let wants_content = |entry: &Entry<'a>| match entry {
            Entry::Assistant(turn) => matches!(Mark::from_turn(turn), Some(Mark::ReasoningContent)),
            Entry::User(_) => false,
        };
        let echoing = match habits.echo_reasoning {
            false => Echoing::Nothing,
            true if entries.iter().any(wants_content) => Echoing::Everywhere,
            true => Echoing::WhereItWas,
        };
        let ids = CallIds::new(habits.call_ids, &calls(chat.messages, origin).collect::<Vec<_>>());
        let mut messages = Vec::with_capacity(entries.len() + 1);
        let system = chat.system.text();
        if !system.trim().is_empty() {
            messages.push(Message::System { content: system });
        }
        for entry in entries {
            match entry {
                Entry::User(content) => {
                    if matches!(messages.last(), Some(Message::Tool { .. })) {
                        let (content, echo) = (Some(NO_ANSWER.into()), echoing.without_origin());
                        messages.push(Message::Assistant { content, echo, tool_calls: Vec::new() });
                    }
                    messages.push(Message::User { content });
                }
                Entry::Assistant(turn) => {
                    messages.push(assistant(&turn, &ids, echoing));
                    messages.extend(turn.answers.iter().map(|answer| result(answer, &ids)));
                }
            }
        }
        let limit = chat.model.max_tokens;
        Self {
            model: &origin.model,
            messages,
            tools: chat.tools.iter().filter(|_| chat.may_call).map(|def| tool(def)).collect(),
            stream: true,
            stream_options: habits.stream_options.then_some(StreamOptions { include_usage: true }),
            max_tokens: limit.filter(|_| !habits.max_completion_tokens),
            max_completion_tokens: limit.filter(|_| habits.max_completion_tokens),
            temperature: chat.model.temperature,
            reasoning_effort: chat.model.effort.map(|effort| habits.effort(effort)),
            extra: &habits.extra_body,
        }
    }
}

/// The ids of all calls, in order.
fn calls<'a>(messages: &'a [message::Message], origin: &'a ModelOrigin) -> impl Iterator<Item = Known<'a>> {
    let answers = messages.iter().filter_map(|message| match message {
        message::Message::Assistant(answer) => Some(answer),
        message::Message::User(_) | message::Message::ToolResults(_) => None,
    });
    answers.flat_map(move |answer| {
        let is_ours = *answer.origin == *origin;
        answer.calls().map(move |call| Known { id: call.id.as_str(), is_ours })
    })
}

/// Which messages of the assistant say their reasoning again.
#[derive(Debug, Clone, Copy)]
enum Echoing {
    Nothing,
    WhereItWas,
    /// As `reasoning_content`: who sends that wants it in every message.
    Everywhere,
}

impl Echoing {
    fn echo<'a>(self, turn: &AssistantTurn<'a>) -> Echo<'a> {
        match self {
            Self::Nothing => Echo::default(),
            Self::WhereItWas => Echo::from_turn(turn),
            Self::Everywhere => Echo::from_turn(turn).with_content(),
        }
    }

    fn without_origin<'a>(self) -> Echo<'a> {
        match self {
            Self::Nothing | Self::WhereItWas => Echo::default(),
            Self::Everywhere => Echo::default().with_content(),
        }
    }
}

fn assistant<'a>(turn: &AssistantTurn<'a>, ids: &CallIds<'a>, echoing: Echoing) -> Message<'a> {
    let text = turn.text();
    let calls = turn.parts.iter().filter_map(|part| match part {
        AssistantPart::ToolCall { call: called, replay } => {
            Some(call(called, ids, replay.as_ref().filter(|_| turn.is_ours)))
        }
        AssistantPart::Text { .. } | AssistantPart::Thinking { .. } | AssistantPart::Opaque(_) => None,
    });
    Message::Assistant {
        content: (!text.is_empty()).then_some(text),
        echo: echoing.echo(turn),
        tool_calls: calls.collect(),
    }
}

fn call<'a>(call: &'a ToolCall, ids: &CallIds<'a>, replay: Option<&'a Replay>) -> Call<'a> {
    let function = Function { name: &call.name, arguments: Arguments(&call.input) };
    Call { id: ids.id_for(call.id.as_str()), function, extra_content: replay.map(Replay::raw) }
}

fn result<'a>(answer: &CallResult<'a>, ids: &CallIds<'a>) -> Message<'a> {
    Message::Tool { tool_call_id: ids.id_for(answer.call.id.as_str()), content: answer.text() }
}

fn tool(tool: &ToolDef) -> Tool<'_> {
    let parameters = schema::with_object_top_and_items(&tool.input_schema);
    Tool { function: ToolFunction { name: &tool.name, description: &tool.description, parameters } }
}
