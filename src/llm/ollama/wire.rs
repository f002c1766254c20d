//! Ollama's JSON: the request, written from the history by reference, and the lines of its stream.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::agent::ports::llm::{ChatRequest, MustCall, SentFiles};
use crate::chat::answer_format::AnswerFormat;
use crate::chat::file::FileRef;
use crate::chat::ids::ToolCallId;
use crate::chat::message::ModelOrigin;
use crate::chat::model::Effort;
use crate::chat::tool::{ToolCall, ToolDef};
use crate::llm::failure::ErrorField;
use crate::llm::few::Few;
use crate::llm::files::{Data, Piece, pieces, returned_by};
use crate::llm::form;
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
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'a>>,
    stream: bool,
    /// Off: a conversation that is too long must be an error, not an answer that has forgotten its tool results.
    truncate: bool,
    /// Left out unless it is set: `true` is refused by models that cannot think, and those that can do it anyway.
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Think>,
    options: Options,
}

/// The form of the answer. It holds back calls too.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Format<'a> {
    Json(&'static str),
    Schema(Cow<'a, Value>),
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
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<Data<'a>>,
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
    /// The request of `chat` to the model of `origin`, with a context window of `num_ctx` tokens, and that much thinking.
    pub(super) fn new(
        chat: &ChatRequest<'a>,
        origin: &'a ModelOrigin,
        num_ctx: Option<u32>,
        effort: Option<Effort>,
    ) -> Self {
        let mut messages = Vec::new();
        // The server holds the model to a form and tells it nothing of it; and to call a tool it forces none.
        let words = chat.format.map(form::of_answer).or_else(|| form::of_call(chat.must_call));
        let system = form::system(chat, words.as_deref());
        if !system.trim().is_empty() {
            messages.push(Message::System { content: system });
        }
        for entry in history::entries(chat.messages, origin) {
            match entry {
                Entry::User(said) => {
                    let (mut texts, images) = apart(said.files, chat.files);
                    if texts.is_empty() || !said.text.trim().is_empty() {
                        texts.push(said.text);
                    }
                    messages.push(Message::User { content: joined(texts), images });
                }
                Entry::Assistant(turn) => {
                    messages.push(assistant(&turn));
                    messages.extend(turn.answers.iter().map(result));
                    // Most templates leave out what stands at a tool's message.
                    let (mut all, mut made) = (Vec::new(), Vec::new());
                    for answer in turn.answers.iter().filter(|answer| !answer.files.is_empty()) {
                        let (texts, images) = apart(answer.files, chat.files);
                        all.push(returned_by(&answer.call.name, answer.call.id.as_str()).into());
                        all.extend(texts);
                        made.extend(images);
                    }
                    if !all.is_empty() {
                        messages.push(Message::User { content: joined(all), images: made });
                    }
                }
            }
        }
        Self {
            model: &origin.model,
            messages,
            tools: tools(chat),
            format: chat.format.filter(|_| !form::has_tools(chat)).map(format),
            stream: true,
            truncate: false,
            think: effort.map(|effort| think(effort, &origin.model)),
            options: Options { num_ctx, num_predict: chat.model.max_tokens, temperature: chat.model.temperature },
        }
    }
}

/// Files as texts and as pictures, which have places of their own here.
fn apart<'a>(files: impl IntoIterator<Item = &'a FileRef>, sent: SentFiles<'a>) -> (Vec<Cow<'a, str>>, Vec<Data<'a>>) {
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for piece in pieces(files, sent) {
        match piece {
            Piece::Image(data) => images.push(data),
            Piece::Text(text) => texts.push(text),
            // No model takes one here.
            Piece::Pdf(name, _) => texts.push(format!("[file {name}: not shown]").into()),
        }
    }
    (texts, images)
}

/// Texts as one, borrowed where there is one alone.
fn joined(mut texts: Vec<Cow<'_, str>>) -> Cow<'_, str> {
    match texts.len() {
        1 => texts.remove(0),
        _ => texts.join("\n\n").into(),
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

/// The tools that may be called: the one that has to be, where it is named.
fn tools<'a>(chat: &ChatRequest<'a>) -> Vec<Tool<'a>> {
    let is_wanted = |def: &ToolDef| match chat.must_call {
        MustCall::This(name) => def.name == name,
        MustCall::No | MustCall::Any => true,
    };
    chat.tools.iter().filter(|def| chat.may_call && is_wanted(def)).map(|def| tool(def)).collect()
}

fn format(format: &AnswerFormat) -> Format<'_> {
    match format {
        AnswerFormat::Object => Format::Json("json"),
        AnswerFormat::Schema(answer) => Format::Schema(schema::without_references("", &answer.schema).1),
    }
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
