//! How a run was carried out, for whoever may see that: what was asked, and what was answered before anything was made of it.
//!
//! A JSON object, the same for all wires; a dialect shows it in its own words.
//!
//! ```text
//! shape          "basic" or "trace"
//! provider       of who answered, else of who was to be asked first
//! model          its model, as that provider calls it
//! max_tokens     per model call, or null      max_turns      model calls; 0 is no limit
//! temperature    a number, or null where the model's own default applies
//! tools          [{name, description, input_schema}] as they were offered when the run began
//! system_prompt  the whole text
//! messages       [{role: "user" | "assistant", content}]: what was said before this run, texts only; of a trace all that the
//!                model was sent, the calls and their results in blocks
//! context        the state of the screen as the request brought it, or null
//! question       what the user said
//! raw_text       the model's text of all turns, markers and all
//! notes          [text]: what was wrong with markers, and what was cut here
//! outcome        "complete", "max_turns", "cancelled", "error" or "awaiting_approval"
//! ended          how the run ended, in one word     error      what was said of it where it failed, else null
//! trace only:
//! turns          [{turn, sent, text, finish, usage: {input_tokens, output_tokens} or null, duration_ms,
//!                  tool_calls: [{id, name, input, output, is_error, duration_ms, payload}]}]; `sent` is how many of
//!                `messages` the model was sent, the first of them
//! usage          {input_tokens, output_tokens} of all turns
//! ```
//!
//! **Invariant:** it never has more than a mebibyte, and never the caller's token.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::speech::Raw;
use crate::agent::offer::profile::{DiagnosticsShape, Profile};
use crate::agent::ports::llm::SystemPrompt;
use crate::agent::ports::tools::ToolContext;
use crate::agent::spend::limits::RunLimits;
use crate::chat::failure::Failure;
use crate::chat::fate::CallFate;
use crate::chat::ids::ToolCallId;
use crate::chat::message::{AssistantPart, Message, ModelOrigin};
use crate::chat::model::ModelChoice;
use crate::chat::payload::Payload;
use crate::chat::run::RunState;
use crate::chat::stream::Usage;
use crate::chat::tool::{ToolDef, ToolInput};
use crate::chat::trail::TrailEvent;

/// 1 MiB as JSON, less what its own keys take.
const MOST_BYTES: usize = 1024 * 1024 - 4096;

/// What the keys of a list's entry take, at most.
const ENTRY_BYTES: usize = 256;

/// What stands where the caller's token was.
const TOKEN: &str = "[token]";

/// What is known of a run while it runs.
pub(super) struct Diagnosis {
    shape: DiagnosticsShape,
    object: Map<String, Value>,
    turns: Vec<Value>,
    /// How many messages the model was sent with the newest call.
    sent: usize,
    /// Whether the model was asked to answer without further calls.
    limit_reached: bool,
    room: ByteBudget,
    bearer: String,
}

/// What is known of a run when it has ended.
pub(super) struct Ended<'a> {
    /// The model that answered last.
    pub(super) model: Option<&'a ModelOrigin>,
    /// What was said.
    pub(super) raw: Raw,
    /// The question.
    pub(super) question: String,
    /// The messages before the run.
    pub(super) history: &'a [Message],
    /// All messages.
    pub(super) messages: &'a [Message],
    /// The tokens.
    pub(super) usage: Usage,
}

/// How many bytes may still be said.
struct ByteBudget {
    left: usize,
    is_cut: bool,
}

impl Diagnosis {
    /// A diagnosis of a run of `profile`; `None` where its caller may see none.
    pub(super) fn from_profile(
        profile: &Profile,
        cx: &ToolContext<'_>,
        model: &ModelChoice,
        limits: RunLimits,
    ) -> Option<Self> {
        let shape = profile.diagnostics.shape_for(cx.caller)?;
        let mut room = ByteBudget { left: MOST_BYTES, is_cut: false };
        let mut object = Map::new();
        let name = match shape {
            DiagnosticsShape::Basic => "basic",
            DiagnosticsShape::Trace => "trace",
        };
        object.insert("shape".to_owned(), json!(name));
        let first = model.models.first();
        object.insert("provider".to_owned(), json!(first.map(|model| &model.provider)));
        object.insert("model".to_owned(), json!(first.map(|model| &model.model)));
        object.insert("max_tokens".to_owned(), json!(model.max_tokens));
        let max_turns = profile.bounds.max_turns.unwrap_or(limits.max_turns);
        object.insert("max_turns".to_owned(), json!(max_turns));
        object.insert("temperature".to_owned(), json!(model.temperature));
        for (key, empty) in [("tools", json!([])), ("system_prompt", json!("")), ("messages", json!([]))] {
            object.insert(key.to_owned(), empty);
        }
        let context = cx.context.map_or(Value::Null, |context| room.value(Value::Object(context.fields())));
        object.insert("context".to_owned(), context);
        object.insert("question".to_owned(), json!(""));
        let bearer = cx.caller.bearer.expose().to_owned();
        Some(Self { shape, object, turns: Vec::new(), sent: 0, limit_reached: false, room, bearer })
    }

    /// What the model is asked with.
    pub(super) fn record_request(&mut self, system: &SystemPrompt, tools: &[Arc<ToolDef>]) {
        self.object.insert("system_prompt".to_owned(), json!(self.room.text(&system.text())));
        let mut told = Vec::new();
        for tool in tools {
            if !self.room.entry() {
                break;
            }
            let schema = self.room.value(tool.input_schema.clone());
            let description = self.room.text(&tool.description);
            told.push(json!({"name": tool.name, "description": description, "input_schema": schema}));
        }
        self.object.insert("tools".to_owned(), Value::Array(told));
    }

    /// The model was asked to answer without further calls.
    pub(super) fn limit_reached(&mut self) {
        self.limit_reached = true;
    }

    /// The model is sent so many messages.
    pub(super) fn sent(&mut self, messages: usize) {
        self.sent = messages;
    }

    /// The newest call has made this.
    pub(super) fn made(&mut self, call: &ToolCallId, payload: &Payload) {
        let Some(Value::Array(calls)) = self.turns.last_mut().and_then(|turn| turn.get_mut("tool_calls")) else {
            return;
        };
        let Some(call) = calls.iter_mut().rev().find(|noted| noted["id"] == call.as_str()) else { return };
        let data = self.room.value(payload.data.clone());
        let id = payload.id.to_string();
        call["payload"] = json!({"payload_id": id, "type": payload.kind, "data": data, "summary": payload.summary});
    }

    /// Something that the trail keeps too.
    pub(super) fn record_entry(&mut self, what: &TrailEvent) {
        match self.shape {
            DiagnosticsShape::Basic => return,
            DiagnosticsShape::Trace => {}
        }
        match what {
            TrailEvent::ModelTurn { turn, text, finish, usage, duration_ms, .. } => {
                if self.room.entry() {
                    let text = self.room.text(text.as_str());
                    self.turns.push(json!({
                        "turn": turn,
                        "sent": self.sent,
                        "text": text,
                        "finish": finish,
                        "usage": usage.filter(|counted| !counted.is_estimate).map(|counted| tokens(counted.usage)),
                        "duration_ms": duration_ms,
                        "tool_calls": [],
                    }));
                }
            }
            TrailEvent::ToolCall { turn, id, name, arguments, result, fate, duration_ms, sent: _ } => {
                if !self.room.entry() {
                    return;
                }
                let input = match arguments {
                    ToolInput::Object(arguments) => Value::Object(arguments.clone()),
                    ToolInput::Invalid(text) => json!(text),
                };
                let (input, output) = (self.room.value(input), self.room.text(result));
                let call = json!({
                    "id": id.as_str(),
                    "name": name,
                    "input": input,
                    "output": output,
                    "is_error": *fate != CallFate::Done,
                    "duration_ms": duration_ms,
                });
                self.call(*turn, call);
            }
            TrailEvent::UserMessage { .. }
            | TrailEvent::ApprovalDecided { .. }
            | TrailEvent::PreviewDecided(_)
            | TrailEvent::RunEnded { .. } => {}
        }
    }

    /// Notes a call in its turn; one that was approved has a turn that no model has spoken.
    fn call(&mut self, number: u32, call: Value) {
        if self.turns.last().is_none_or(|turn| turn["turn"] != number) {
            self.turns.push(json!({
                "turn": number, "sent": 0, "text": "", "finish": null, "usage": null, "duration_ms": 0, "tool_calls": [],
            }));
        }
        if let Some(Value::Array(calls)) = self.turns.last_mut().and_then(|turn| turn.get_mut("tool_calls")) {
            calls.push(call);
        }
    }

    /// The whole of it, when the run has ended so.
    pub(super) fn end(mut self, run: Ended<'_>, code: &str, error: Option<&Failure>) -> Value {
        let Ended { model, raw: Raw { text, notes }, question, history, messages, usage } = run;
        if let Some(origin) = model {
            self.object.insert("provider".to_owned(), json!(origin.provider));
            self.object.insert("model".to_owned(), json!(origin.model));
        }
        self.object.insert("ended".to_owned(), json!(code));
        self.object.insert("error".to_owned(), json!(error.map(|error| &error.message)));
        let raw_text = self.room.text(&text);
        let question = self.room.text(&question);
        self.object.insert("question".to_owned(), json!(question));
        let messages = match self.shape {
            DiagnosticsShape::Basic => self.messages(history),
            DiagnosticsShape::Trace => self.all_messages(messages),
        };
        self.object.insert("messages".to_owned(), Value::Array(messages));
        self.object.insert("raw_text".to_owned(), json!(raw_text));
        let mut notes: Vec<String> = notes.iter().map(|note| self.room.text(note)).collect();
        if self.room.is_cut {
            notes.push("some texts here were cut".to_owned());
        }
        self.object.insert("notes".to_owned(), json!(notes));
        let outcome = match code {
            "max_turns" | "tool_call_limit" => "max_turns",
            _ if self.limit_reached => "max_turns",
            code if code == RunState::Completed.name() => "complete",
            code if code == RunState::AwaitingApproval.name() => "awaiting_approval",
            code if code == RunState::Cancelled.name() || code == RunState::Interrupted.name() => "cancelled",
            _ => "error",
        };
        self.object.insert("outcome".to_owned(), json!(outcome));
        match self.shape {
            DiagnosticsShape::Basic => {}
            DiagnosticsShape::Trace => {
                self.object.insert("turns".to_owned(), Value::Array(self.turns));
                self.object.insert("usage".to_owned(), tokens(usage));
            }
        }
        without(Value::Object(self.object), &self.bearer)
    }

    /// What was said before, newest first as far as there is room, in its order.
    fn messages(&mut self, history: &[Message]) -> Vec<Value> {
        let mut told = Vec::new();
        for message in history.iter().rev() {
            let (role, content) = match message {
                Message::User(user) => ("user", user.text.clone()),
                Message::Assistant(assistant) => ("assistant", assistant.parts.iter().filter_map(text).collect()),
                Message::ToolResults(_) => continue,
            };
            if content.is_empty() {
                continue;
            }
            if !self.room.entry() {
                break;
            }
            told.push(json!({"role": role, "content": self.room.text(&content)}));
        }
        told.reverse();
        told
    }

    /// All messages as the model was sent them, the newest first as far as there is room, in their order.
    fn all_messages(&mut self, messages: &[Message]) -> Vec<Value> {
        let mut told = Vec::new();
        for message in messages.iter().rev() {
            if !self.room.entry() {
                break;
            }
            told.push(self.room.value(sent(message)));
        }
        told.reverse();
        let left_out = messages.len() - told.len();
        for turn in &mut self.turns {
            let sent = turn["sent"].as_u64().and_then(|sent| usize::try_from(sent).ok()).unwrap_or_default();
            turn["sent"] = json!(sent.saturating_sub(left_out));
        }
        told
    }
}

/// A message as the model was sent it: a text, or blocks where there are calls.
fn sent(message: &Message) -> Value {
    match message {
        Message::User(user) => json!({"role": "user", "content": user.model_text()}),
        Message::Assistant(said) if said.calls().next().is_none() => {
            json!({"role": "assistant", "content": said.text()})
        }
        Message::Assistant(said) => {
            let text = Some(said.text()).filter(|text| !text.is_empty());
            let calls = said.calls().map(|call| {
                let input = match &call.input {
                    ToolInput::Object(input) => Value::Object(input.clone()),
                    ToolInput::Invalid(text) => json!(text),
                };
                json!({"type": "tool_use", "id": call.id.as_str(), "name": call.name, "input": input})
            });
            let text = text.into_iter().map(|text| json!({"type": "text", "text": text}));
            json!({"role": "assistant", "content": text.chain(calls).collect::<Vec<_>>()})
        }
        Message::ToolResults(results) => {
            let results = results.iter().map(|result| {
                json!({
                    "type": "tool_result", "tool_use_id": result.id.as_str(), "content": result.content,
                    "is_error": result.fate.is_error(),
                })
            });
            json!({"role": "user", "content": results.collect::<Vec<_>>()})
        }
    }
}

impl ByteBudget {
    /// Whether there is room for one more entry.
    fn entry(&mut self) -> bool {
        self.is_cut |= self.left < ENTRY_BYTES;
        self.left = self.left.saturating_sub(ENTRY_BYTES);
        self.left > 0
    }

    /// As much of `text` as there is room for.
    fn text(&mut self, text: &str) -> String {
        let mut kept = String::new();
        for c in text.chars() {
            let bytes = escaped(c);
            if bytes > self.left {
                self.is_cut = true;
                self.left = 0;
                kept.push('…');
                break;
            }
            self.left -= bytes;
            kept.push(c);
        }
        kept
    }

    /// `value` when there is room for it.
    fn value(&mut self, value: Value) -> Value {
        let bytes = value.to_string().len();
        if bytes > self.left {
            self.is_cut = true;
            return json!(format!("[{bytes} bytes]"));
        }
        self.left -= bytes;
        value
    }
}

/// How many bytes `c` has in JSON.
fn escaped(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        c if c < ' ' => 6,
        c => c.len_utf8(),
    }
}

fn text(part: &AssistantPart) -> Option<&str> {
    match part {
        AssistantPart::Text { text, .. } => Some(text),
        AssistantPart::Thinking { .. } | AssistantPart::ToolCall { .. } | AssistantPart::Opaque(_) => None,
    }
}

fn tokens(usage: Usage) -> Value {
    json!({"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens})
}

/// `value` with `secret` taken out of all its texts and keys.
fn without(value: Value, secret: &str) -> Value {
    let clean = |text: String| if text.contains(secret) { text.replace(secret, TOKEN) } else { text };
    match value {
        value if secret.is_empty() => value,
        Value::String(text) => Value::String(clean(text)),
        Value::Array(items) => items.into_iter().map(|item| without(item, secret)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, value)| (clean(key), without(value, secret))).collect::<Map<_, _>>().into()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_cut_and_said_to_be() {
        let mut room = ByteBudget { left: 10, is_cut: false };
        assert_eq!((room.text("a\"ü"), room.left, room.is_cut), ("a\"ü".to_owned(), 5, false));
        assert_eq!((room.value(json!([1, 2, 3])), room.left, room.is_cut), (json!("[7 bytes]"), 5, true));
        assert_eq!((room.text("\n\n\n"), room.left), ("\n\n…".to_owned(), 0));
        assert!(!room.entry());
    }

    #[test]
    fn a_secret_is_taken_out_wherever_it_stands() {
        let value = json!({"a-key": ["x key y", 1, {"b": "key"}], "c": null});
        let clean = json!({"a-[token]": ["x [token] y", 1, {"b": "[token]"}], "c": null});
        assert_eq!(without(value.clone(), "key"), clean);
        assert_eq!(without(value.clone(), ""), value);
    }
}
