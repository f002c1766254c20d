//! What the model sees when a turn begins: the user's message, what this run has done so far, what the screen shows, and what
//! the messages before left behind. All of it is read from the typed history and from JSON, never from sentences.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::say;
use crate::agent::ports::llm::ChatRequest;
use crate::chat::message::{Author, Message, UserMessage};
use crate::chat::tool::{ToolCall, ToolDef, ToolInput, ToolResult};

/// The moment a turn begins.
pub(super) struct Scene<'a> {
    /// The request.
    pub request: &'a ChatRequest<'a>,
    /// The user's last message.
    pub message: &'a UserMessage,
    /// The messages before it.
    pub before: &'a [Message],
    /// The state of the user's screen; empty when the request brought none.
    pub screen: Map<String, Value>,
    /// The calls this run has made.
    pub done: Vec<Done<'a>>,
}

/// A call with its result.
pub(super) struct Done<'a> {
    /// The call.
    pub call: &'a ToolCall,
    /// What came back.
    pub value: Value,
    /// Whether that is an error.
    pub is_error: bool,
}

/// A call to make.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Planned {
    /// The tool.
    pub tool: Cow<'static, str>,
    /// Its arguments.
    pub input: Map<String, Value>,
}

/// One turn's answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Answer {
    /// Text for the user; may be empty when there are calls.
    pub text: String,
    /// Calls to make.
    pub calls: Vec<Planned>,
}

/// Why a script stopped before its end.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Pause {
    /// It needs this call's result.
    Call(Planned),
    /// There is nothing more to do but say this.
    Say(String),
    /// It is not for this message.
    Other,
}

/// What a script comes to: words for the user, or a pause.
pub(super) type Script<T = String> = Result<T, Pause>;

impl<'a> Scene<'a> {
    /// The scene of `request`; `None` without a message of the user.
    pub(super) fn read(request: &'a ChatRequest<'a>) -> Option<Self> {
        let at = request.messages.iter().rposition(|message| match message {
            Message::User(user) => is_question(user.author),
            Message::Assistant(_) | Message::ToolResults(_) => false,
        })?;
        let (before, run) = request.messages.split_at(at);
        let [Message::User(message), run @ ..] = run else { return None };
        Some(Self { request, message, before, screen: screen(&request.system.context), done: calls(run) })
    }

    /// The tool of this name, where it is offered and may be called.
    pub(super) fn tool(&self, name: &str) -> Option<&'a ToolDef> {
        self.request.tools.iter().find(|tool| tool.name == name && self.request.may_call).map(|tool| &**tool)
    }

    /// The text at `key` of the screen's state, where it is not empty.
    pub(super) fn screen_text(&self, key: &str) -> Option<&str> {
        self.screen.get(key)?.as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    /// The result of a call. A failed one ends the script.
    pub(super) fn ask(&self, tool: &'static str, input: Value) -> Script<&Value> {
        let Value::Object(input) = input else { return Err(Pause::Other) };
        let is_made = |done: &&Done<'_>| {
            done.call.name == tool && matches!(&done.call.input, ToolInput::Object(made) if *made == input)
        };
        match self.done.iter().find(is_made) {
            Some(Done { value, is_error: false, .. }) => Ok(value),
            Some(Done { value, is_error: true, .. }) => Err(Pause::Say(failed(tool, value))),
            None if self.tool(tool).is_some() => Err(Pause::Call(Planned { tool: tool.into(), input })),
            None => Err(Pause::Say(format!("That needs the tool {}, which I may not use here.", say::code(tool)))),
        }
    }
}

/// Whether a message of this author asks for something new; all others let the model go on with the request before.
fn is_question(author: Author) -> bool {
    match author {
        Author::User | Author::Summary | Author::Decision => true,
        Author::ClientResults | Author::Continuation | Author::Correction | Author::LastAnswer | Author::Move => false,
    }
}

/// What to say of a call that failed: the text of `{"error": "…"}` or of `{"error": {"message": "…"}}`, or whatever else came.
pub(super) fn failed(tool: &str, value: &Value) -> String {
    let inside = || say::text(value.get("error")?, &["message"]);
    let error = say::text(value, &["error"]).or_else(inside).map_or_else(|| say::brief(value), str::to_owned);
    format!("That did not work. {} reported: {}", say::code(tool), say::sentence(&error))
}

/// The screen's state: the last fenced JSON of the system prompt's context.
fn screen(context: &str) -> Map<String, Value> {
    let Some((_, block)) = context.rsplit_once("```json\n") else { return Map::new() };
    let json = block.rsplit_once("\n```").map_or(block, |(json, _)| json);
    serde_json::from_str(json).unwrap_or_default()
}

/// The calls in `messages`, each with its result; calls without one are left out.
fn calls(messages: &[Message]) -> Vec<Done<'_>> {
    let mut found = Vec::new();
    for pair in messages.windows(2) {
        let [Message::Assistant(answer), Message::ToolResults(results)] = pair else { continue };
        for call in answer.calls() {
            let result = results.iter().find(|result| result.id == call.id);
            found.extend(result.map(|ToolResult { content, fate, .. }| {
                let value = serde_json::from_str(content).unwrap_or_else(|_| Value::String(content.clone()));
                Done { call, value, is_error: fate.is_error() }
            }));
        }
    }
    found
}

impl Done<'_> {
    /// The text of an argument.
    fn given(&self, key: &str) -> Option<&str> {
        match &self.call.input {
            ToolInput::Object(input) => input.get(key)?.as_str(),
            ToolInput::Invalid(_) => None,
        }
    }

    fn is(&self, tool: &str) -> bool {
        self.call.name == tool && !self.is_error
    }
}

/// A table configuration that is worked on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Table {
    /// Its id, where it is saved.
    pub id: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// Its document.
    pub config: Value,
    /// Whether it has changes in a preview without a decision.
    pub is_pending: bool,
}

/// The table in the newest preview with changes, when the user has not decided on it.
pub(super) fn pending_table(scene: &Scene<'_>) -> Option<Table> {
    let previewed = calls(scene.before).into_iter().rfind(|done| done.is("preview_table_config"))?;
    let preview = say::text(&previewed.value, &["preview_id"])?;
    let before = scene.before.iter().filter_map(|message| match message {
        Message::User(user) => Some(user),
        Message::Assistant(_) | Message::ToolResults(_) => None,
    });
    let mut decisions = before.chain([scene.message]).flat_map(|user| &user.decisions);
    let ToolInput::Object(input) = &previewed.call.input else { return None };
    let is_open = !decisions.any(|decided| decided.preview.to_string() == preview);
    let text = |key: &str| previewed.given(key).map(str::to_owned);
    let config = input.get("config").filter(|_| is_open)?.clone();
    Some(Table { id: text("id"), name: text("name"), config, is_pending: true })
}

/// The id of the saved table configuration that was read last.
pub(super) fn last_table(messages: &[Message]) -> Option<Value> {
    let read = calls(messages).into_iter().rfind(|done| done.is("get_table_config"))?;
    say::text(&read.value, &["id"]).map(|id| json!(id))
}
