//! The JSON of a request for chat completions, written from the history by reference and with nothing optional in it.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::call_ids::{CallIds, known};
use super::habits::{Bind, Habits};
use super::reasoning::{Echo, Mark};
use crate::agent::ports::llm::{ChatRequest, MustCall, SentFiles};
use crate::chat::answer_format::AnswerFormat;
use crate::chat::file::FileRef;
use crate::chat::message::{AssistantPart, ModelOrigin, Replay};
use crate::chat::tool::{ToolCall, ToolDef};
use crate::llm::files::{DataUrl, Piece, pieces, returned_by};
use crate::llm::form;
use crate::llm::history::{self, Arguments, AssistantTurn, Entry, FILES_FOLLOW, NO_ANSWER};
use crate::llm::schema;

/// What Google documents for calls of a history that another model made: Gemini 3 refuses a call without a signature.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

/// The body of `POST …/chat/completions`.
#[derive(Debug, Serialize)]
pub(super) struct Request<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
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
    function: ToolName<'a>,
}

#[derive(Debug, Serialize)]
struct ToolName<'a> {
    name: &'a str,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponseFormat<'a> {
    JsonObject,
    JsonSchema { json_schema: JsonSchema<'a> },
}

#[derive(Debug, Serialize)]
struct JsonSchema<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    schema: &'a Value,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
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
        content: Content<'a>,
    },
    Assistant {
        /// Null, never empty, beside calls; but for who wants a text there.
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

/// A text; or parts, where there are files.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

impl<'a> Content<'a> {
    /// These parts. Where all of them are text they are one: many servers of models that read nothing else take no parts.
    fn of(parts: Vec<Part<'a>>) -> Self {
        if !parts.iter().all(|part| matches!(part, Part::Text { .. })) {
            return Self::Parts(parts);
        }
        let texts = parts.into_iter().filter_map(|part| match part {
            Part::Text { text } => Some(text),
            Part::ImageUrl { .. } | Part::File { .. } => None,
        });
        Self::Text(texts.reduce(|before, text| Cow::Owned(before.into_owned() + "\n\n" + &text)).unwrap_or_default())
    }

    /// Adds these behind what is there.
    fn append(&mut self, more: Vec<Part<'a>>) {
        let mut parts = match std::mem::replace(self, Self::Parts(Vec::new())) {
            Self::Text(text) => vec![Part::Text { text }],
            Self::Parts(parts) => parts,
        };
        parts.extend(more);
        *self = Self::of(parts);
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl<'a> },
    File { file: InputFile<'a> },
}

#[derive(Debug, Serialize)]
struct ImageUrl<'a> {
    url: DataUrl<'a>,
}

#[derive(Debug, Serialize)]
struct InputFile<'a> {
    filename: &'a str,
    file_data: DataUrl<'a>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "function")]
struct Call<'a> {
    id: Cow<'a, str>,
    function: Function<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<ExtraContent<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum ExtraContent<'a> {
    /// For a call that the server did not make.
    Google { thought_signature: &'static str },
    /// As it was sent.
    #[serde(untagged)]
    Theirs(&'a RawValue),
}

#[derive(Debug, Serialize)]
struct Function<'a> {
    name: &'a str,
    #[serde(serialize_with = "history::as_text")]
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
            true if habits.wants_content || entries.iter().any(wants_content) => Echoing::Everywhere,
            true => Echoing::WhereItWas,
        };
        let ids = CallIds::new(habits.call_ids, &known(chat.messages, origin));
        let mut messages = Vec::with_capacity(entries.len() + 1);
        let (response_format, words) = format(chat, habits);
        let (tool_choice, call_words) = match habits.forces_calls {
            true => (tool_choice(chat.must_call), None),
            false => (None, form::of_call(chat.must_call)),
        };
        let system = form::system(chat, words.or(call_words).as_deref());
        if !system.trim().is_empty() {
            messages.push(Message::System { content: system });
        }
        for entry in entries {
            match entry {
                Entry::User(said) => {
                    if matches!(messages.last(), Some(Message::Tool { .. })) {
                        let (content, echo) = (Some(NO_ANSWER.into()), echoing.without_origin());
                        messages.push(Message::Assistant { content, echo, tool_calls: Vec::new() });
                    }
                    let mut parts = parts(said.files, chat.files);
                    if parts.is_empty() || !said.text.trim().is_empty() {
                        parts.push(Part::Text { text: said.text });
                    }
                    match messages.last_mut() {
                        // Behind what tools have returned.
                        Some(Message::User { content }) => content.append(parts),
                        _ => messages.push(Message::User { content: Content::of(parts) }),
                    }
                }
                Entry::Assistant(turn) => {
                    messages.push(assistant(&turn, &ids, echoing, habits));
                    // Results are text alone here, so pictures and documents stand behind them.
                    let mut made = Vec::new();
                    for answer in &turn.answers {
                        let tool_call_id = ids.id_for(answer.call.id.as_str());
                        let mut content = answer.text();
                        match Content::of(parts(answer.files, chat.files)) {
                            Content::Text(text) if text.is_empty() => {}
                            Content::Text(text) => content = format!("{content}\n\n{text}").into(),
                            Content::Parts(parts) => {
                                made.push(Part::Text { text: returned_by(&answer.call.name, &tool_call_id).into() });
                                made.extend(parts);
                            }
                        }
                        messages.push(Message::Tool { tool_call_id, content });
                    }
                    if !made.is_empty() {
                        let (content, echo) = (Some(FILES_FOLLOW.into()), echoing.without_origin());
                        messages.push(Message::Assistant { content, echo, tool_calls: Vec::new() });
                        messages.push(Message::User { content: Content::of(made) });
                    }
                }
            }
        }
        let limit = chat.model.max_tokens;
        Self {
            model: &origin.model,
            messages,
            tools: chat.tools.iter().filter(|_| chat.may_call).map(|def| tool(def)).collect(),
            tool_choice,
            response_format,
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

/// The form of the answer as the server is told, and what its model has to be told besides. A server that holds its model to
/// a form holds back the calls too, if it is not one of the few that tell these apart.
fn format<'a>(chat: &ChatRequest<'a>, habits: &Habits) -> (Option<ResponseFormat<'a>>, Option<String>) {
    let Some(format) = chat.format else { return (None, None) };
    let words = || Some(form::of_answer(format));
    match (habits.bind(form::has_tools(chat)), format) {
        (Bind::Nothing, _) => (None, words()),
        // It must be said in words too, or is refused.
        (Bind::Object, _) | (Bind::Schema, AnswerFormat::Object) => (Some(ResponseFormat::JsonObject), words()),
        (Bind::Schema, AnswerFormat::Schema(answer)) => {
            let (name, description) = (answer.name.as_str(), answer.description.as_deref());
            let json_schema = JsonSchema { name, description, schema: &answer.schema, strict: form::is_strict(format) };
            (Some(ResponseFormat::JsonSchema { json_schema }), None)
        }
    }
}

fn tool_choice(must_call: MustCall<'_>) -> Option<ToolChoice<'_>> {
    match must_call {
        MustCall::No => None,
        MustCall::Any => Some(ToolChoice::Any("required")),
        MustCall::This(name) => Some(ToolChoice::This(NamedTool { function: ToolName { name } })),
    }
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

fn assistant<'a>(turn: &AssistantTurn<'a>, ids: &CallIds<'a>, echoing: Echoing, habits: &Habits) -> Message<'a> {
    let text = turn.text();
    let calls = turn.parts.iter().filter_map(|part| match part {
        AssistantPart::ToolCall { call: called, replay } => {
            Some(call(called, ids, replay.as_ref().filter(|_| turn.is_ours)))
        }
        AssistantPart::Text { .. } | AssistantPart::Thinking { .. } | AssistantPart::Opaque(_) => None,
    });
    let mut calls: Vec<_> = calls.collect();
    if let Some(Call { extra_content: unsigned @ None, .. }) = calls.first_mut().filter(|_| habits.wants_signatures) {
        *unsigned = Some(ExtraContent::Google { thought_signature: FOREIGN_SIGNATURE });
    }
    let content = (habits.wants_text || !text.is_empty()).then_some(text);
    Message::Assistant { content, echo: echoing.echo(turn), tool_calls: calls }
}

fn call<'a>(call: &'a ToolCall, ids: &CallIds<'a>, replay: Option<&'a Replay>) -> Call<'a> {
    let function = Function { name: &call.name, arguments: Arguments(&call.input) };
    let extra_content = replay.map(|replay| ExtraContent::Theirs(replay.raw()));
    Call { id: ids.id_for(call.id.as_str()), function, extra_content }
}

/// Files as parts of a user's message.
fn parts<'a>(files: impl IntoIterator<Item = &'a FileRef>, sent: SentFiles<'a>) -> Vec<Part<'a>> {
    let part = |piece| match piece {
        Piece::Image(data) => Part::ImageUrl { image_url: ImageUrl { url: DataUrl(data) } },
        Piece::Pdf(filename, data) => Part::File { file: InputFile { filename, file_data: DataUrl(data) } },
        Piece::Text(text) => Part::Text { text },
    };
    pieces(files, sent).into_iter().map(part).collect()
}

fn tool(tool: &ToolDef) -> Tool<'_> {
    let parameters = schema::with_object_top_and_items(&tool.input_schema);
    Tool { function: ToolFunction { name: &tool.name, description: &tool.description, parameters } }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::call_ids::Accepts;
    use super::super::config::Config;
    use super::super::habits::Host;
    use super::*;
    use crate::chat::ids::ToolCallId;
    use crate::chat::tool::ToolInput;

    fn calls_of(turn: &[Option<&str>], is_ours: bool, is_signed: bool) -> Value {
        let part = |signature: &Option<&str>| AssistantPart::ToolCall {
            call: ToolCall { id: ToolCallId::from_model("c1"), name: "find".to_owned(), input: ToolInput::parse("{}") },
            replay: signature.map(|text| Replay::new(RawValue::from_string(text.to_owned()).unwrap())),
        };
        let parts: Vec<_> = turn.iter().map(part).collect();
        let turn = AssistantTurn { parts: &parts, is_ours, answers: Vec::new() };
        let host = if is_signed { Host::Google } else { Host::Other };
        let habits = Habits::new("llm.x", &Config::default(), host).unwrap();
        let said = assistant(&turn, &CallIds::new(Accepts::Any, &[]), Echoing::Nothing, &habits);
        let said = serde_json::to_value(said).unwrap();
        said["tool_calls"].as_array().unwrap().iter().map(|call| call["extra_content"].clone()).collect()
    }

    #[test]
    fn a_turn_of_calls_alone_has_no_text_but_where_that_is_a_mistake() {
        let parts = [AssistantPart::ToolCall {
            call: ToolCall { id: ToolCallId::from_model("c1"), name: "find".to_owned(), input: ToolInput::parse("{}") },
            replay: None,
        }];
        let turn = AssistantTurn { parts: &parts, is_ours: true, answers: Vec::new() };
        for (host, content) in [(Host::Other, json!(null)), (Host::Cloudflare, json!(""))] {
            let habits = Habits::new("llm.x", &Config::default(), host).unwrap();
            let said = assistant(&turn, &CallIds::new(Accepts::Any, &[]), Echoing::Nothing, &habits);
            assert_eq!(serde_json::to_value(said).unwrap()["content"], content, "{host:?}");
        }
    }

    #[test]
    fn the_first_call_of_a_turn_is_signed_where_the_server_wants_that() {
        let theirs = r#"{"google":{"thought_signature":"S=="}}"#;
        let (sent, foreign) = (
            json!({"google": {"thought_signature": "S=="}}),
            json!({"google": {"thought_signature": FOREIGN_SIGNATURE}}),
        );
        let rows = [
            (&[Some(theirs), None][..], true, true, json!([sent, null]), "its own, of which the first is signed"),
            (&[None, None], true, true, json!([foreign, null]), "its own without a signature"),
            (&[Some(theirs), None], false, true, json!([foreign, null]), "another model's"),
            (&[Some(theirs), None], false, false, json!([null, null]), "another model's, for other servers"),
            (&[Some(theirs)], true, false, json!([sent]), "what a server has sent goes back to it"),
        ];
        for (turn, is_ours, is_signed, expected, reason) in rows {
            assert_eq!(calls_of(turn, is_ours, is_signed), expected, "{reason}");
        }
    }
}
