//! AG-UI events as they stand on the wire: one struct per event, absent fields left out, never `null`.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::super::bodies::{NoticeBody, PayloadBody, PlaceChangeBody, SuggestionsBody, SummaryBody};
use super::super::directive::DirectiveBody;
use super::super::operation::OperationBody;
use super::super::state::StateBody;
use super::usage::ModelUsage;
use crate::chat::artifact::Artifact;

/// One event.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub(super) enum Event<'a> {
    RunStarted {
        thread_id: &'a str,
        run_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        protocol_version: Option<&'static str>,
    },
    RunFinished {
        thread_id: &'a str,
        run_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        outcome: Option<Outcome<'a>>,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        usage: &'a [ModelUsage],
    },
    RunError {
        message: &'a str,
        code: &'a str,
    },
    StepStarted {
        step_name: &'a str,
    },
    StepFinished {
        step_name: &'a str,
    },
    TextMessageStart {
        message_id: &'a str,
        role: &'static str,
    },
    TextMessageContent {
        message_id: &'a str,
        delta: &'a str,
    },
    TextMessageEnd {
        message_id: &'a str,
    },
    ReasoningStart {
        message_id: &'a str,
    },
    ReasoningMessageStart {
        message_id: &'a str,
        role: &'static str,
    },
    ReasoningMessageContent {
        message_id: &'a str,
        delta: &'a str,
    },
    ReasoningMessageEnd {
        message_id: &'a str,
    },
    ReasoningEnd {
        message_id: &'a str,
    },
    ToolCallStart {
        tool_call_id: &'a str,
        tool_call_name: &'a str,
        parent_message_id: &'a str,
    },
    ToolCallArgs {
        tool_call_id: &'a str,
        delta: &'a str,
    },
    ToolCallEnd {
        tool_call_id: &'a str,
    },
    ToolCallResult {
        message_id: &'a str,
        tool_call_id: &'a str,
        content: &'a str,
        role: &'static str,
    },
    MessagesSnapshot {
        messages: &'a [SnapshotMessage<'a>],
    },
    ActivitySnapshot {
        message_id: &'a str,
        activity_type: &'a str,
        content: Activity<'a>,
    },
    Custom {
        name: &'static str,
        value: Custom<'a>,
    },
}

/// How a run ended that did not simply succeed.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub(super) enum Outcome<'a> {
    /// Calls wait for the client, which runs their tools.
    Success { pending_tool_call_ids: &'a [String] },
    /// Calls wait for a person.
    Interrupt { interrupts: &'a [Interrupt] },
    /// It was cancelled.
    Cancelled,
}

/// A message of a snapshot.
#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub(super) enum SnapshotMessage<'a> {
    User {
        id: String,
        content: &'a str,
    },
    Assistant {
        id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<SnapshotCall<'a>>,
    },
    Tool {
        id: String,
        tool_call_id: &'a str,
        content: &'a str,
    },
    Activity {
        id: String,
        activity_type: &'a str,
        content: Activity<'a>,
    },
}

/// A call in a message of a snapshot.
#[derive(Serialize)]
pub(super) struct SnapshotCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: SnapshotFunction<'a>,
}

#[derive(Serialize)]
struct SnapshotFunction<'a> {
    name: &'a str,
    arguments: &'static str,
}

impl<'a> SnapshotCall<'a> {
    /// A call of that tool. Its arguments are not sent again, and clients parse the text in their field as JSON.
    pub(super) fn new(id: &'a str, name: &'a str) -> Self {
        Self { id, r#type: "function", function: SnapshotFunction { name, arguments: "{}" } }
    }
}

/// The content of a block of the transcript; always an object.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Activity<'a> {
    Payload(PayloadBody<'a>),
    Fields(&'a serde_json::Map<String, Value>),
    Other { value: &'a Value },
}

impl<'a> Activity<'a> {
    /// The content of an artifact.
    pub(super) fn from_artifact(artifact: &'a Artifact) -> Self {
        Self::from_value(&artifact.payload)
    }

    /// The id of a block that stands for something with an id of its own.
    pub(super) fn id(artifact: &Artifact) -> Option<String> {
        let preview = artifact.payload.get("preview_id").and_then(Value::as_str)?;
        Some(format!("preview-{preview}"))
    }

    /// The content that `value` is.
    pub(super) fn from_value(value: &'a Value) -> Self {
        match value {
            Value::Object(fields) => Self::Fields(fields),
            value => Self::Other { value },
        }
    }
}

/// Metadata that only this server has.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Custom<'a> {
    Progress(ToolProgress<'a>),
    Suggestions(SuggestionsBody),
    Place(PlaceChangeBody),
    Notice(NoticeBody),
    Summary(SummaryBody),
    Operation(OperationBody<'a>),
    Directive(DirectiveBody<'a>),
    State(StateBody),
    Cost { usd: f64 },
}

/// How far a tool has come.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolProgress<'a> {
    pub(super) tool_call_id: &'a str,
    pub(super) tool_call_name: &'a str,
    pub(super) stage: &'a str,
    pub(super) message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fraction: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<&'a Value>,
}

/// A call that waits for a person.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Interrupt {
    pub(super) id: String,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
    message: String,
    response_schema: Arc<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    metadata: serde_json::Map<String, Value>,
}

impl Interrupt {
    /// Its question to the user.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// The interrupt of an `approval_request` artifact; `call` is the id that clients know its call by, where they do.
    pub(super) fn from_payload(payload: &Value, call: Option<String>) -> Self {
        let text = |key: &str| payload.get(key).and_then(Value::as_str).unwrap_or_default();
        let tool = text("tool");
        let message = match text("role") {
            "" => format!("{tool} waits for your approval"),
            role if payload["not_requester"] == true => {
                format!("{tool} waits for the approval of somebody else with the role {role}")
            }
            role => format!("{tool} waits for the approval of somebody with the role {role}"),
        };
        let keys = ["tool", "arguments", "digest", "needs", "role", "not_requester"].into_iter();
        let metadata = keys.filter_map(|key| Some((key.to_owned(), payload.get(key)?.clone()))).collect();
        let expires_at = payload.get("expires_at_ms").and_then(Value::as_i64);
        let expires_at = expires_at.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
        Self {
            id: text("approval_id").to_owned(),
            reason: if call.is_some() { "tool_call" } else { "confirmation" },
            tool_call_id: call,
            message,
            response_schema: Arc::new(json!({
                "type": "object",
                "properties": {"approved": {"type": "boolean"}, "comment": {"type": "string"}},
                "required": ["approved"],
            })),
            expires_at: expires_at.map(|at| format!("{at:.3}")),
            metadata,
        }
    }
}
