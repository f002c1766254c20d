//! The events of the stream as JSON. Every field is optional; those that are not here are ignored, the padding `p` too.

use serde::Deserialize;

use crate::llm::lenient;

/// `contentBlockStart`. Only calls have one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlockStart {
    pub(super) content_block_index: Option<u64>,
    pub(super) start: Option<Start>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Start {
    pub(super) tool_use: Option<ToolUseStart>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolUseStart {
    pub(super) tool_use_id: Option<String>,
    pub(super) name: Option<String>,
}

/// `contentBlockDelta`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlockDelta {
    pub(super) content_block_index: Option<u64>,
    pub(super) delta: Option<Delta>,
}

/// A piece of a block: one of these.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Delta {
    pub(super) text: Option<String>,
    pub(super) tool_use: Option<ToolUseDelta>,
    pub(super) reasoning_content: Option<ReasoningDelta>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ToolUseDelta {
    pub(super) input: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReasoningDelta {
    pub(super) text: Option<String>,
    pub(super) signature: Option<String>,
    pub(super) redacted_content: Option<String>,
}

/// `contentBlockStop`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlockStop {
    pub(super) content_block_index: Option<u64>,
}

/// `messageStop`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageStop {
    pub(super) stop_reason: Option<String>,
}

/// `metadata`, which comes after `messageStop`.
#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) usage: Option<Usage>,
}

/// Counters; the input is what was neither read from a cache nor written to one.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Usage {
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) cache_write_input_tokens: Option<u64>,
}
