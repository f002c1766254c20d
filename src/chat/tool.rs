//! Tools as data: what is offered to a model, what it calls, what comes back.

use serde_json::{Map, Value};

use super::approval::Consent;
use super::artifact::Artifact;
use super::caller::Caller;
use super::fate::{CallError, CallFate};
use super::file::FileRef;
use super::ids::{DirectiveId, ToolCallId};
use super::payload::NewPayload;
use super::place::Move;
use crate::bounded::json;

/// A tool as the model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDef {
    /// `^[A-Za-z0-9_-]{1,64}$`, the alphabet that every vendor allows.
    pub name: String,
    /// Its effect, and when to use it.
    pub description: String,
    /// JSON Schema of the arguments, `type: object` at the top.
    pub input_schema: Value,
}

/// Whether a client wants a tool of its own to be called.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// None of its tools is called.
    None,
    /// The answer is a call of any of its tools.
    Required,
    /// The answer is a call of this one.
    Named(String),
}

/// Who may use a tool, and the consent that each call needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// The caller's token must list one of them; empty lets everybody.
    pub roles: Vec<String>,
    /// The consent that each call needs.
    pub consent: Consent,
}

impl Policy {
    /// Whether `caller` may use the tool.
    pub fn lets(&self, caller: &Caller) -> bool {
        self.roles.is_empty() || self.roles.iter().any(|role| caller.has_role(role))
    }
}

/// The effect of a second, equal call of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing that the first one did not: such a call may be made again.
    Read,
    /// Change something a second time: such a call is made at most once, whatever becomes of its answer.
    Write,
}

/// A call that the model made, its arguments complete.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Unique within its turn.
    pub id: ToolCallId,
    /// The tool's name as the model wrote it; may name no tool at all.
    pub name: String,
    /// The arguments.
    pub input: ToolInput,
}

/// A call's arguments as they came from the model.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolInput {
    /// A JSON object; no arguments at all are an empty one.
    Object(Map<String, Value>),
    /// Text that is not a JSON object. Never executed: the model reads so.
    Invalid(String),
}

impl ToolInput {
    /// The arguments in `text`: empty, blank or `null` text means none. Some servers write the object into a JSON text (vLLM with
    /// Granite, vllm#54964).
    pub fn parse(text: &str) -> Self {
        if text.trim().is_empty() {
            return Self::Object(Map::new());
        }
        let object = match json::value(text) {
            Ok(Value::Object(fields)) => Some(fields),
            Ok(Value::Null) => Some(Map::new()),
            Ok(Value::String(inner)) => json::object(&inner),
            Ok(_) | Err(_) => None,
        };
        object.map_or_else(|| Self::Invalid(text.to_owned()), Self::Object)
    }

    /// Reads what is no object for a tool whose `argument` may stand alone: bare text, which is that argument.
    pub fn read_bare(&mut self, argument: &str) {
        let Self::Invalid(text) = self else { return };
        let bare = match json::value(text) {
            Ok(Value::String(inner)) => inner,
            Ok(_) => return,
            // What begins like JSON was to be some.
            Err(_) if text.trim_start().starts_with(['{', '[', '"']) => return,
            Err(_) => std::mem::take(text),
        };
        *self = match bare.trim().is_empty() {
            true => Self::Invalid(bare),
            false => Self::Object(Map::from_iter([(argument.to_owned(), Value::from(bare))])),
        };
    }
}

/// The output of a tool for the loop. A failure is data too.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// For the model; JSON text in all shipped tools.
    pub content: String,
    /// For the client, sent after the call's result.
    pub artifacts: Vec<Artifact>,
    /// For the client and for later turns; the model gets a line about it.
    pub payload: Option<NewPayload>,
    /// The fate of the call, set with the output and never read from `content`.
    pub fate: CallFate,
    /// Why it is an error, where it is one.
    pub error: Option<CallError>,
    /// Where the conversation goes with it.
    pub moves: Option<Move>,
    /// What the trail says of it besides.
    pub note: Option<CallNote>,
    /// Files that it made, kept already; the model sees them beside the text.
    pub files: Vec<FileRef>,
}

/// What is known of a call beside its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallNote {
    /// It has requested this directive, or found it.
    Directive(DirectiveId),
    /// None of its caller's roles may use the tool.
    Denied,
}

/// How far a tool has come while it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Its stage, in one word.
    pub stage: String,
    /// The same for people.
    pub message: String,
    /// How much of it is done, from 0 to 1; `None` where that is unknown.
    pub fraction: Option<f64>,
    /// Data that it has found so far.
    pub data: Option<Value>,
}

impl ToolOutput {
    /// A success with `content` for the model.
    pub fn ok(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            artifacts: Vec::new(),
            payload: None,
            fate: CallFate::Done,
            error: None,
            moves: None,
            note: None,
            files: Vec::new(),
        }
    }

    /// A failure in the protocol's shape (section 7): `{"error":"message"}`.
    pub fn error(message: &str) -> Self {
        let content = serde_json::json!({ "error": message }).to_string();
        Self { fate: CallFate::Failed, error: Some(CallError::Failed), ..Self::ok(content) }
    }

    /// The same for this reason.
    pub fn refused(message: &str, error: CallError) -> Self {
        Self { error: Some(error), ..Self::error(message) }
    }

    /// The same of a call that was not made, and may be made again.
    pub fn not_made(message: &str) -> Self {
        Self { fate: CallFate::NotRun, ..Self::error(message) }
    }

    /// The same of a call of which it is unknown whether it took effect.
    pub fn unknown(message: &str) -> Self {
        Self { fate: CallFate::Unknown, ..Self::error(message) }
    }
}

/// A call's result as the conversation keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The call it answers.
    pub id: ToolCallId,
    /// The tool's name; some vendors want it back.
    pub name: String,
    /// For the model.
    pub content: String,
    /// The fate of the call.
    pub fate: CallFate,
    /// Files that it made, which the model sees beside the text.
    pub files: Vec<FileRef>,
}

impl ToolResult {
    /// The result of `call`, as its output says.
    pub fn from_call(call: &ToolCall, output: ToolOutput) -> Self {
        let ToolOutput { content, artifacts: _, payload: _, fate, error: _, moves: _, note: _, files } = output;
        Self { id: call.id.clone(), name: call.name.clone(), content, fate, files }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bare_text_is_the_argument_that_may_stand_alone() {
        let object = |value: Value| ToolInput::parse(&value.to_string());
        let invalid = |text: &str| ToolInput::Invalid(text.to_owned());
        let rows = [
            ("solar panels", object(json!({"query": "solar panels"}))),
            ("\"solar\"", object(json!({"query": "solar"}))),
            (r#""{\"query\": \"solar\", \"n\": 1}""#, object(json!({"query": "solar", "n": 1}))),
            (r#"{"n": 1}"#, object(json!({"n": 1}))),
            (r#"{"query": "sol"#, invalid(r#"{"query": "sol"#)),
            ("[1]", invalid("[1]")),
            ("7", invalid("7")),
            ("\" \"", invalid(" ")),
        ];
        for (text, expected) in rows {
            let mut input = ToolInput::parse(text);
            input.read_bare("query");
            assert_eq!(input, expected, "{text}");
        }
    }
}
