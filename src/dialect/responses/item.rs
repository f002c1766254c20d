//! The items of an answer, typed, as this wire and those with the same items write them. What is not there is left out,
//! but for what the protocol writes as `null`.

use serde::Serialize;
use utoipa::ToSchema;

/// It is not all there yet.
pub(super) const IN_PROGRESS: &str = "in_progress";
/// It is whole.
pub(super) const COMPLETED: &str = "completed";
/// The run ended before it was whole.
pub(super) const INCOMPLETE: &str = "incomplete";
/// The call failed.
pub(super) const FAILED: &str = "failed";

/// Whose tools the server's own are to these clients.
pub(super) const SERVER_LABEL: &str = "switchboard";

/// An item.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = ResponseItem)]
#[expect(missing_docs, reason = "the protocol has these fields")]
pub enum Item {
    /// Words of the assistant's, or of the user's.
    Message {
        id: String,
        role: &'static str,
        status: &'static str,
        content: Vec<Part>,
        /// `final_answer` of the last words of a run, `commentary` of those before.
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'static str>,
    },
    /// What the model thought, where its profile shows that.
    Reasoning { id: String, summary: Vec<SummaryPart>, status: &'static str },
    /// A call that is left to the client.
    FunctionCall {
        id: String,
        call_id: String,
        name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        /// JSON text.
        arguments: String,
        status: &'static str,
    },
    /// A call that is left to the client, of a tool that takes a text.
    CustomToolCall { id: String, call_id: String, name: String, input: String },
    /// A call of a tool that this server runs.
    McpCall {
        id: String,
        server_label: &'static str,
        name: String,
        /// JSON text.
        arguments: String,
        output: Option<String>,
        error: Option<String>,
        status: &'static str,
    },
    /// A call that waits for a decision.
    McpApprovalRequest {
        id: String,
        server_label: &'static str,
        name: String,
        /// JSON text: all that would be sent.
        arguments: String,
    },
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = ResponsePart)]
#[expect(missing_docs, reason = "the protocol has these fields")]
pub enum Part {
    /// The assistant's words.
    OutputText {
        text: String,
        #[schema(value_type = Vec<Object>)]
        annotations: [(); 0],
        #[schema(value_type = Vec<Object>)]
        logprobs: [(); 0],
    },
    /// The user's words.
    InputText { text: String },
}

impl Part {
    /// Words of the assistant's.
    pub fn output(text: impl Into<String>) -> Self {
        Self::OutputText { text: text.into(), annotations: [], logprobs: [] }
    }
}

/// A part of what the model thought.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = ResponseSummaryPart)]
pub enum SummaryPart {
    /// A text.
    SummaryText { text: String },
}

impl Item {
    /// A message of the user's.
    pub fn question(id: String, text: String) -> Self {
        let content = vec![Part::InputText { text }];
        Self::Message { id, role: "user", status: COMPLETED, content, phase: None }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        match self {
            Self::Message { id, .. }
            | Self::Reasoning { id, .. }
            | Self::FunctionCall { id, .. }
            | Self::CustomToolCall { id, .. }
            | Self::McpCall { id, .. }
            | Self::McpApprovalRequest { id, .. } => id,
        }
    }
}
