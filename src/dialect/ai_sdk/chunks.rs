//! The chunks that we send, as JSON. Absent fields are left out: a `null` is refused.

use bytes::{BufMut, BytesMut};
use serde::Serialize;

use super::plain::Plain;
use crate::chat::stream::Usage;
use crate::dialect::frame;

/// A chunk. The approval and the denial are unknown to version 5, a finish's reason to its first releases.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(super) enum Chunk<'a> {
    Start {
        message_id: &'a str,
        message_metadata: Metadata<'a>,
    },
    StartStep,
    FinishStep,
    TextStart {
        id: &'a str,
    },
    TextDelta {
        id: &'a str,
        delta: &'a str,
    },
    TextEnd {
        id: &'a str,
    },
    ReasoningStart {
        id: &'a str,
    },
    ReasoningDelta {
        id: &'a str,
        delta: &'a str,
    },
    ReasoningEnd {
        id: &'a str,
    },
    ToolInputStart {
        tool_call_id: &'a str,
        tool_name: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        dynamic: bool,
    },
    ToolInputAvailable {
        tool_call_id: &'a str,
        tool_name: &'a str,
        input: &'a Plain,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        dynamic: bool,
    },
    ToolInputError {
        tool_call_id: &'a str,
        tool_name: &'a str,
        input: &'a str,
        error_text: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        dynamic: bool,
    },
    ToolOutputAvailable {
        tool_call_id: &'a str,
        output: &'a Plain,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        dynamic: bool,
    },
    ToolOutputError {
        tool_call_id: &'a str,
        error_text: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        dynamic: bool,
    },
    ToolApprovalRequest {
        approval_id: &'a str,
        tool_call_id: &'a str,
    },
    ToolOutputDenied {
        tool_call_id: &'a str,
    },
    MessageMetadata {
        message_metadata: Metadata<'a>,
    },
    Finish {
        #[serde(skip_serializing_if = "Option::is_none")]
        finish_reason: Option<&'static str>,
        message_metadata: Metadata<'a>,
    },
    Abort,
    Error {
        error_text: &'a str,
    },
}

/// A part of the operator's own kind.
#[derive(Serialize)]
pub(super) struct DataChunk<'a, T: Serialize> {
    pub(super) r#type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
    pub(super) data: &'a T,
    /// Whether it is for the moment only, and no part of the message.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) transient: bool,
}

/// The metadata of a message; clients merge it piece by piece.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata<'a> {
    pub(super) run_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) finish_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) provider: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<UsageBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost_usd: Option<f64>,
}

/// Token counts, by the SDK's names.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageBody {
    input_tokens: u64,
    output_tokens: u64,
    total_tokens: u64,
    #[serde(skip_serializing_if = "is_zero")]
    cached_input_tokens: u64,
    #[serde(skip_serializing_if = "is_zero")]
    reasoning_tokens: u64,
}

impl UsageBody {
    pub(super) fn from_usage(usage: Usage) -> Self {
        let Usage { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens } = usage;
        let total_tokens = input_tokens.saturating_add(output_tokens);
        Self { input_tokens, output_tokens, total_tokens, cached_input_tokens, reasoning_tokens }
    }
}

/// How far a call has come.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProgressBody<'a> {
    pub(super) tool_call_id: &'a str,
    pub(super) tool_name: &'a str,
    pub(super) stage: &'a str,
    pub(super) message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fraction: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<Plain>,
}

/// Appends a chunk's frame. No client continues these streams after an event, so no frame has a number.
pub(super) fn write(out: &mut BytesMut, chunk: &Chunk<'_>) {
    frame::write_data(out, None, chunk);
}

/// Appends the frame of a part of the operator's own kind.
pub(super) fn write_part<T: Serialize>(out: &mut BytesMut, chunk: &DataChunk<'_, T>) {
    frame::write_data(out, None, chunk);
}

/// Appends what every stream ends with.
pub(super) fn write_done(out: &mut BytesMut) {
    out.put_slice(b"data: [DONE]\n\n");
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
