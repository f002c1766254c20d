//! The JSON of a request for a response, written from the history by reference and with nothing optional in it. Nothing is
//! stored at the server: each request has the whole history, and nothing in it is found by an id.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::call_ids::{CallIds, known};
use super::super::habits::{Bind, Habits};
use super::reasoning::{Asks, Kept};
use crate::agent::ports::llm::{ChatRequest, MustCall, SentFiles};
use crate::chat::answer_format::AnswerFormat;
use crate::chat::file::FileRef;
use crate::chat::message::{AssistantPart, ModelOrigin};
use crate::chat::model::Effort;
use crate::chat::tool::ToolDef;
use crate::llm::files::{DataUrl, Piece, pieces};
use crate::llm::history::{self, Arguments, AssistantTurn, Entry};
use crate::llm::{form, schema};

/// Fewer are refused.
const MIN_OUTPUT_TOKENS: u32 = 16;

/// Reasoning that nobody but its model can read.
const ENCRYPTED: &str = "reasoning.encrypted_content";

/// The body of `POST …/responses`.
#[derive(Debug, Serialize)]
pub(super) struct Request<'a> {
    model: &'a str,
    input: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<[&'static str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    store: bool,
    stream: bool,
    #[serde(flatten)]
    extra: &'a Map<String, Value>,
}

/// An item of the input.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: &'static str,
        content: Content<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a RawValue>,
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: &'a str,
        #[serde(serialize_with = "history::as_text")]
        arguments: Arguments<'a>,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: Content<'a>,
    },
    /// A reasoning item, as it came.
    #[serde(untagged)]
    Raw(&'a RawValue),
}

/// A text; or parts, where there are files.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type")]
enum Part<'a> {
    #[serde(rename = "input_text")]
    Text { text: Cow<'a, str> },
    #[serde(rename = "input_image")]
    Image { image_url: DataUrl<'a> },
    #[serde(rename = "input_file")]
    File { filename: &'a str, file_data: DataUrl<'a> },
}

impl<'a> Content<'a> {
    /// The text with these files before it.
    fn with_files(text: Cow<'a, str>, files: impl IntoIterator<Item = &'a FileRef>, sent: SentFiles<'a>) -> Self {
        let part = |piece| match piece {
            Piece::Image(data) => Part::Image { image_url: DataUrl(data) },
            Piece::Pdf(filename, data) => Part::File { filename, file_data: DataUrl(data) },
            Piece::Text(text) => Part::Text { text },
        };
        let mut parts: Vec<Part<'a>> = pieces(files, sent).into_iter().map(part).collect();
        if parts.is_empty() {
            return Self::Text(text);
        }
        if !text.trim().is_empty() {
            parts.push(Part::Text { text });
        }
        Self::Parts(parts)
    }
}

/// Which tool has to be called; without a word about it the model decides.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ToolChoice<'a> {
    Any(&'static str),
    This(NamedTool<'a>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "function")]
struct NamedTool<'a> {
    name: &'a str,
}

#[derive(Debug, Serialize)]
struct Text<'a> {
    format: Format<'a>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format<'a> {
    JsonObject,
    JsonSchema {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        schema: &'a Value,
        strict: bool,
    },
}

#[derive(Debug, Serialize)]
struct Reasoning {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "function")]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Cow<'a, Value>,
    /// Always said: without it a schema counts as strict here.
    strict: bool,
}

impl<'a> Request<'a> {
    /// The request of `chat` to the model of `origin`, which is asked for what `asks` says besides.
    pub(super) fn new(chat: &ChatRequest<'a>, origin: &'a ModelOrigin, habits: &'a Habits, asks: Asks) -> Self {
        let (text, words) = format(chat, habits);
        let (tool_choice, call_words) = match habits.forces_calls {
            true => (tool_choice(chat.must_call), None),
            false => (None, form::of_call(chat.must_call)),
        };
        let system = form::system(chat, words.or(call_words).as_deref());
        let effort = chat.model.effort;
        // A model that does not reason now takes a temperature.
        let takes_temperature = asks.temperature || effort == Some(Effort::None);
        Self {
            model: &origin.model,
            input: input(chat, origin, habits, system, asks),
            tools: chat.tools.iter().filter(|_| chat.may_call).map(|def| tool(def)).collect(),
            tool_choice,
            text,
            reasoning: effort.map(|effort| Reasoning {
                effort: asks.effort.map(|effort| habits.effort(effort)),
                summary: (asks.summary && effort != Effort::None).then_some("auto"),
            }),
            include: (asks.encrypted && habits.echo_reasoning).then_some([ENCRYPTED]),
            max_output_tokens: chat.model.max_tokens.map(|most| most.max(MIN_OUTPUT_TOKENS)),
            temperature: chat.model.temperature.filter(|_| takes_temperature),
            store: false,
            stream: true,
            extra: &habits.extra_body,
        }
    }

    /// Whether a temperature was wanted that cannot be sent.
    pub(super) fn lacks_temperature(&self, chat: &ChatRequest<'_>) -> bool {
        self.temperature.is_none() && chat.model.temperature.is_some()
    }
}

/// The system prompt and the conversation. The prompt is a message: what has to be said of JSON is looked for in messages only.
fn input<'a>(
    chat: &ChatRequest<'a>,
    origin: &'a ModelOrigin,
    habits: &'a Habits,
    system: String,
    asks: Asks,
) -> Vec<Item<'a>> {
    let entries = history::entries(chat.messages, origin);
    let run_begins = entries.iter().rposition(|entry| matches!(entry, Entry::User(_)));
    let ids = CallIds::new(habits.call_ids, &known(chat.messages, origin));
    let mut items = Vec::with_capacity(2 * entries.len() + 1);
    if !system.trim().is_empty() {
        items.push(Item::Message { role: "system", content: Content::Text(system.into()), phase: None });
    }
    for (at, entry) in entries.into_iter().enumerate() {
        match entry {
            Entry::User(said) => {
                let content = Content::with_files(said.text, said.files, chat.files);
                items.push(Item::Message { role: "user", content, phase: None });
            }
            Entry::Assistant(turn) => {
                let is_of_this_run = run_begins.is_none_or(|begin| at > begin);
                let reasons = turn.is_ours && is_of_this_run && habits.echo_reasoning && asks.replays;
                answer(&turn, &ids, reasons, &mut items);
                items.extend(turn.answers.iter().map(|answer| Item::FunctionCallOutput {
                    call_id: ids.id_for(answer.call.id.as_str()),
                    output: Content::with_files(answer.text(), answer.files, chat.files),
                }));
            }
        }
    }
    items
}

/// The items of an assistant's turn, in the order in which they came. Where it `reasons`, its reasoning stands before what it
/// led to; alone it would be refused.
fn answer<'a>(turn: &AssistantTurn<'a>, ids: &CallIds<'a>, reasons: bool, items: &mut Vec<Item<'a>>) {
    let mut reasoning = Vec::new();
    let mut text = Cow::Borrowed("");
    for part in turn.parts {
        match part {
            AssistantPart::Text { text: piece, replay } => {
                match text.is_empty() {
                    true => text = Cow::Borrowed(piece),
                    false => text.to_mut().push_str(piece),
                }
                // A message ends with its phase, where it has one.
                if let Some(Kept::Phase(phase)) = replay.as_ref().filter(|_| turn.is_ours).and_then(Kept::from_replay) {
                    say(&mut text, Some(phase), &mut reasoning, items);
                }
            }
            AssistantPart::Thinking { replay: Some(replay), .. } if reasons => {
                say(&mut text, None, &mut reasoning, items);
                if let Some(Kept::ReasoningItem(item)) = Kept::from_replay(replay) {
                    reasoning.push(Item::Raw(item));
                }
            }
            AssistantPart::ToolCall { call, .. } => {
                say(&mut text, None, &mut reasoning, items);
                items.append(&mut reasoning);
                items.push(Item::FunctionCall {
                    call_id: ids.id_for(call.id.as_str()),
                    name: &call.name,
                    arguments: Arguments(&call.input),
                });
            }
            AssistantPart::Thinking { .. } | AssistantPart::Opaque(_) => {}
        }
    }
    say(&mut text, None, &mut reasoning, items);
}

/// Adds the message that `text` is, behind its reasoning; nothing where it is blank.
fn say<'a>(
    text: &mut Cow<'a, str>,
    phase: Option<&'a RawValue>,
    reasoning: &mut Vec<Item<'a>>,
    items: &mut Vec<Item<'a>>,
) {
    let content = std::mem::take(text);
    if !content.trim().is_empty() {
        items.append(reasoning);
        items.push(Item::Message { role: "assistant", content: Content::Text(content), phase });
    }
}

/// The form of the answer as the server is told, and what its model has to be told besides.
fn format<'a>(chat: &ChatRequest<'a>, habits: &Habits) -> (Option<Text<'a>>, Option<String>) {
    let Some(format) = chat.format else { return (None, None) };
    let words = || Some(form::of_answer(format));
    match (habits.bind(form::has_tools(chat)), format) {
        (Bind::Nothing, _) => (None, words()),
        // It must be said in words too, or is refused.
        (Bind::Object, _) | (Bind::Schema, AnswerFormat::Object) => {
            (Some(Text { format: Format::JsonObject }), words())
        }
        (Bind::Schema, AnswerFormat::Schema(answer)) => {
            let (name, description) = (answer.name.as_str(), answer.description.as_deref());
            let strict = form::is_strict(format);
            (Some(Text { format: Format::JsonSchema { name, description, schema: &answer.schema, strict } }), None)
        }
    }
}

fn tool_choice(must_call: MustCall<'_>) -> Option<ToolChoice<'_>> {
    match must_call {
        MustCall::No => None,
        MustCall::Any => Some(ToolChoice::Any("required")),
        MustCall::This(name) => Some(ToolChoice::This(NamedTool { name })),
    }
}

fn tool(tool: &ToolDef) -> Tool<'_> {
    let parameters = schema::with_object_top_and_items(&tool.input_schema);
    let strict = schema::is_strict(&parameters);
    Tool { name: &tool.name, description: &tool.description, parameters, strict }
}
