//! What earlier messages of the conversation left behind: who said what, the draft that is open, the table change that still
//! waits for its user. All of it is read from calls and results, never from the model's own words.

use serde_json::{Map, Value};

use super::words;
use crate::chat::message::Message;
use crate::chat::tool::{ToolCall, ToolInput, ToolResult};

/// A draft as the conversation shows it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Draft {
    /// Its id.
    pub id: String,
    /// The workflow's name, where the history still has it.
    pub name: Option<String>,
    /// What it watches, `schema.table`.
    pub entity: Option<String>,
    /// Its actions so far.
    pub actions: Vec<DraftAction>,
}

/// An action of a draft.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DraftAction {
    /// Its name.
    pub name: String,
    /// Its type.
    pub action_type: String,
}

/// A previewed table configuration whose user has not decided.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PendingConfig {
    /// The configuration's id; `None` for a new one.
    pub id: Option<String>,
    /// Its name, where the preview had one.
    pub name: Option<String>,
    /// The whole configuration.
    pub config: Value,
}

/// The calls in `messages`, each with its result; calls without one are left out.
pub(super) fn calls_with_results(messages: &[Message]) -> impl Iterator<Item = (&ToolCall, &ToolResult)> {
    messages.windows(2).flat_map(|pair| match pair {
        [Message::Assistant(said), Message::ToolResults(results)] => said
            .calls()
            .filter_map(|call| results.iter().find(|result| result.id == call.id).map(|result| (call, result)))
            .collect(),
        _ => Vec::new(),
    })
}

/// What the user said and the last thing the assistant answered to it, newest first.
pub(super) fn exchanges(messages: &[Message]) -> Vec<(&str, String)> {
    let mut found: Vec<(&str, String)> = Vec::new();
    for message in messages {
        match message {
            Message::User(user) => found.push((&user.text, String::new())),
            Message::Assistant(said) => {
                if let Some((_, answer)) = found.last_mut() {
                    *answer = said.text();
                }
            }
            Message::ToolResults(_) => {}
        }
    }
    found.reverse();
    found
}

/// The draft that `messages` were building.
pub(super) fn draft(messages: &[Message]) -> Option<Draft> {
    let mut open = None;
    for (call, result) in calls_with_results(messages) {
        if let ToolInput::Object(input) = &call.input {
            follow(&mut open, &call.name, input, result);
        }
    }
    open
}

fn follow(open: &mut Option<Draft>, tool: &str, input: &Map<String, Value>, result: &ToolResult) {
    let given = |key: &str| input.get(key).and_then(Value::as_str).map(str::to_owned);
    if result.fate.is_error() {
        let gone = result.content.contains("not found or expired");
        open.take_if(|draft| gone && given("draft_id").is_some_and(|id| id == draft.id));
        return;
    }
    match tool {
        "start_draft" => {
            let answer = as_json(&result.content);
            if let Some(id) = words::str_at(&answer, &["draft_id"]) {
                *open = Some(Draft {
                    id: id.to_owned(),
                    name: given("name"),
                    entity: given("entity"),
                    actions: Vec::new(),
                });
            }
        }
        "add_draft_action" | "remove_draft_action" | "preview_draft" => {
            let Some(id) = given("draft_id") else { return };
            if open.as_ref().is_none_or(|draft| draft.id != id) {
                *open = Some(Draft { id, ..Draft::default() });
            }
            let Some(draft) = open else { return };
            if let (Some(name), Some(action_type)) = (given("name"), given("action_type")) {
                draft.actions.push(DraftAction { name, action_type });
            }
            if let Some(removed) = given("action_name") {
                draft.actions.retain(|action| action.name != removed);
            }
        }
        _ => {}
    }
}

/// The id of the stored table configuration that the user was shown last.
pub(super) fn shown_config(messages: &[Message]) -> Option<String> {
    let shown = calls_with_results(messages)
        .filter(|(call, result)| call.name == "get_table_config" && !result.fate.is_error());
    let (_, result) = shown.last()?;
    words::str_at(&as_json(&result.content), &["id"]).map(str::to_owned)
}

/// The newest table preview that was sent before the message at `last_user` and that no user message since has decided.
pub(super) fn pending_config(messages: &[Message], last_user: usize) -> Option<PendingConfig> {
    let mut pending = None;
    for (i, message) in messages.iter().enumerate().take(last_user + 1) {
        match message {
            Message::User(user) => {
                if user.decisions.iter().any(|decided| decided.what == "table configuration") {
                    pending = None;
                }
            }
            Message::Assistant(_) => {
                let pair = messages.get(i..i + 2).unwrap_or_default();
                for (call, result) in calls_with_results(pair).filter(|(call, _)| call.name == "preview_table_config") {
                    pending = sent_config(call, result).or(pending);
                }
            }
            Message::ToolResults(_) => {}
        }
    }
    pending
}

fn sent_config(call: &ToolCall, result: &ToolResult) -> Option<PendingConfig> {
    let ToolInput::Object(input) = &call.input else { return None };
    let sent = !result.fate.is_error() && words::str_at(&as_json(&result.content), &["status"]) == Some("preview_sent");
    let text = |key: &str| input.get(key).and_then(Value::as_str).map(str::to_owned);
    let config = input.get("config").filter(|_| sent)?.clone();
    Some(PendingConfig { id: text("id"), name: text("name"), config })
}

/// `content` as JSON; text that is not JSON becomes a JSON string.
pub(super) fn as_json(content: &str) -> Value {
    serde_json::from_str(content).unwrap_or_else(|_| Value::String(content.to_owned()))
}
