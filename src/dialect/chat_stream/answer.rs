//! A run's answer as these clients see it: built from events while it streams, and from what is kept when a chat is
//! read again, so that both are the same.

use serde::Serialize;
use serde_json::{Value, json};

use super::diagnostics;
use super::words;
use crate::bounded::json::JsonText;
use crate::chat::answer::{ActionHandler, ActionStyle, SuggestedAction, SuggestedValue, Suggestions};
use crate::chat::approval::{APPROVAL_REQUEST, APPROVE_CALL, REJECT_CALL};
use crate::chat::artifact::Artifact;
use crate::chat::failure::Failure;
use crate::chat::payload::{Payload, PayloadSource};
use crate::chat::tool::ToolInput;
use crate::dialect::failures::friendly;

/// The separator between the calls of a turn and the text after them.
pub(super) const SEPARATOR: &str = "\n\n";

/// An answer while it grows.
#[derive(Debug, Default)]
pub struct Answer {
    message: String,
    history: Vec<ToolUse>,
    payloads: Vec<PayloadBody>,
    /// Where in `payloads` the newest of the model's own is: it goes before those of tools.
    of_model: Option<usize>,
    /// A call that waits for approval, or another artifact of a tool.
    artifact: Option<PayloadBody>,
    values: Option<Vec<ValueBody>>,
    actions: Option<Vec<ActionBody>>,
    diagnosed: Option<Value>,
    warning: Option<&'static str>,
}

/// A call in the answer's history; its position is the number of its marker in the text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolUse {
    /// The tool.
    pub tool_name: String,
    /// Its arguments.
    pub input: Value,
    /// The result that the model read.
    pub output: String,
}

/// A payload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PayloadBody {
    /// Its id; `null` of one that is not kept.
    payload_id: Option<String>,
    r#type: String,
    data: JsonText,
    summary: String,
}

/// Something to say next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ValueBody {
    label: String,
    value: String,
}

/// Something to do next.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ActionBody {
    label: String,
    action: String,
    handler: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    style: Option<&'static str>,
}

/// `payload` of the last frame; what is not there is `null`.
#[derive(Debug, Serialize)]
pub(super) struct CompletePayload<'a> {
    message: &'a str,
    suggested_values: Option<&'a [ValueBody]>,
    suggested_actions: Option<&'a [ActionBody]>,
    custom_payload: Option<&'a PayloadBody>,
    tool_history: Option<&'a [ToolUse]>,
    conversation_id: Option<i64>,
    /// That the context comes near its bound.
    warning: Option<&'static str>,
    diagnostics: Option<Value>,
}

/// The fields that are kept beside the text of an answer; one without a value has no key.
#[derive(Debug, Default, Serialize)]
pub struct Extras<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_history: Option<&'a [ToolUse]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    custom_payload: Option<&'a PayloadBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payloads: Option<&'a [PayloadBody]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggested_values: Option<&'a [ValueBody]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggested_actions: Option<&'a [ActionBody]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diagnostics: Option<Value>,
    /// Why there is no whole answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// How the run ended, where it did not end well.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
}

impl Answer {
    /// Text of the model.
    pub fn text(&mut self, text: &str) {
        self.message.push_str(text);
    }

    /// A call was made: the number and the text of its marker.
    pub fn call(&mut self, used: ToolUse) -> (usize, String) {
        let index = self.history.len();
        self.history.push(used);
        let marker = format!("[[tool:{index}]]");
        self.message.push_str(&marker);
        (index, marker)
    }

    /// A call was made of which the answer says nothing.
    pub fn silent_call(&mut self, used: ToolUse) {
        self.history.push(used);
    }

    /// The calls of a turn end here.
    pub fn round_end(&mut self) {
        self.message.push_str(SEPARATOR);
    }

    /// The answer ended so: what there is of it stands, where this gives the text that is added to it.
    pub fn cut_short(&mut self, failure: &Failure) -> Option<String> {
        let text = self.message.trim_end();
        let sentence = words::ending(failure, !text.is_empty())?;
        let gap = match (text.is_empty(), self.message.ends_with(SEPARATOR)) {
            (true, _) | (false, true) => "",
            (false, false) => SEPARATOR,
        };
        let added = format!("{gap}{sentence}");
        self.message.push_str(&added);
        Some(added)
    }

    /// A payload was kept.
    pub fn payload(&mut self, payload: &Payload) {
        match payload.source {
            PayloadSource::Model => self.of_model = Some(self.payloads.len()),
            PayloadSource::Tool => {}
        }
        self.payloads.push(PayloadBody {
            payload_id: Some(payload.id.to_string()),
            r#type: payload.kind.clone(),
            data: payload.data.clone(),
            summary: payload.summary.clone(),
        });
    }

    /// A tool shows something. A call that waits comes with the actions that decide it.
    pub fn artifact(&mut self, artifact: &Artifact) {
        let mut summary = artifact.kind.to_string();
        if artifact.kind == APPROVAL_REQUEST {
            let tool = artifact.payload.get("tool").and_then(Value::as_str).unwrap_or_default();
            summary = format!("Waiting for approval: {tool}");
            let of = |key: &str| artifact.payload.get(key);
            let data = json!({ "approval_id": of("approval_id"), "digest": of("digest") });
            let action = |label: &str, action: &str, style| ActionBody {
                label: format!("{label} {tool}"),
                action: action.to_owned(),
                handler: handler_name(ActionHandler::Server),
                data: Some(data.clone()),
                style: Some(style_name(style)),
            };
            let actions = self.actions.get_or_insert_default();
            actions.push(action("Approve", APPROVE_CALL, ActionStyle::Primary));
            actions.push(action("Reject", REJECT_CALL, ActionStyle::Warning));
        }
        self.artifact = Some(PayloadBody {
            payload_id: None,
            r#type: artifact.kind.to_string(),
            data: JsonText::of(&artifact.payload),
            summary,
        });
    }

    /// The model's suggestions; those of an artifact come behind them.
    pub fn suggested(&mut self, suggestions: &Suggestions) {
        self.values = suggestions.values.as_ref().map(|values| values.iter().map(value).collect());
        if let Some(actions) = &suggestions.actions {
            let of_artifact = self.actions.take().unwrap_or_default();
            self.actions = Some(actions.iter().map(action).chain(of_artifact).collect());
        }
    }

    /// How the run was carried out, as the loop reports it.
    pub fn diagnosed(&mut self, diagnosed: Value) {
        self.diagnosed = Some(diagnosed);
    }

    /// The user is warned of something; the last frame says it.
    pub(super) fn warn(&mut self, words: &'static str) {
        self.warning = Some(words);
    }

    /// The text so far.
    pub fn message(&self) -> &str {
        self.message.trim()
    }

    /// A call that waits for approval before all else, then the model's last payload, then the last one of a tool.
    fn custom(&self) -> Option<&PayloadBody> {
        let waits = self.artifact.as_ref().filter(|artifact| artifact.r#type == APPROVAL_REQUEST);
        let of_model = || self.of_model.and_then(|at| self.payloads.get(at));
        waits.or_else(of_model).or(self.payloads.last()).or(self.artifact.as_ref())
    }

    fn history(&self) -> Option<&[ToolUse]> {
        Some(self.history.as_slice()).filter(|history| !history.is_empty())
    }

    fn diagnostics(&self, run: &str, number: Option<i64>) -> Option<Value> {
        let final_response = || {
            json!({
                "message": self.message(),
                "suggested_values": self.values,
                "suggested_actions": self.actions,
                "custom_payload": self.custom(),
                "tool_history": self.history(),
                "conversation_id": number,
            })
        };
        diagnostics::trace_body(self.diagnosed.as_ref()?, run, final_response)
    }

    /// The last frame's payload.
    pub(super) fn complete(&self, run: &str, number: Option<i64>) -> CompletePayload<'_> {
        CompletePayload {
            message: self.message(),
            suggested_values: self.values.as_deref(),
            suggested_actions: self.actions.as_deref(),
            custom_payload: self.custom(),
            tool_history: self.history(),
            conversation_id: number,
            warning: self.warning,
            diagnostics: self.diagnostics(run, number),
        }
    }

    /// The fields that are kept beside the text of a run of the chat of that number. `outcome` tells how a run ended
    /// that did not end well.
    pub fn extras(
        &self,
        (run, number): (&str, i64),
        error: Option<&Failure>,
        outcome: Option<&'static str>,
    ) -> Extras<'_> {
        Extras {
            tool_history: self.history(),
            custom_payload: self.custom(),
            payloads: Some(self.payloads.as_slice()).filter(|payloads| !payloads.is_empty()),
            suggested_values: self.values.as_deref(),
            suggested_actions: self.actions.as_deref(),
            diagnostics: self.diagnostics(run, Some(number)),
            error: error.map(|error| friendly(error).into_owned()),
            outcome,
        }
    }
}

impl Extras<'_> {
    /// As JSON; `None` where there is nothing.
    pub fn into_json(self) -> Option<Value> {
        let extras = serde_json::to_value(self).ok()?;
        extras.as_object().is_some_and(|extras| !extras.is_empty()).then_some(extras)
    }
}

/// A call's arguments as clients see them: always an object.
pub fn input(input: &ToolInput) -> Value {
    match input {
        ToolInput::Object(fields) => Value::Object(fields.clone()),
        ToolInput::Invalid(text) => json!({ "invalid": text }),
    }
}

fn value(SuggestedValue { label, value }: &SuggestedValue) -> ValueBody {
    ValueBody { label: label.clone(), value: value.clone() }
}

fn action(suggested: &SuggestedAction) -> ActionBody {
    ActionBody {
        label: suggested.label.clone(),
        action: suggested.action.clone(),
        handler: handler_name(suggested.handler),
        data: suggested.data.clone(),
        style: suggested.style.map(style_name),
    }
}

fn handler_name(handler: ActionHandler) -> &'static str {
    match handler {
        ActionHandler::Client => "client",
        ActionHandler::Server => "server",
    }
}

fn style_name(style: ActionStyle) -> &'static str {
    match style {
        ActionStyle::Primary => "primary",
        ActionStyle::Secondary => "secondary",
        ActionStyle::Warning => "warning",
    }
}
