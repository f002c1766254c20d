//! The events of the Messages API's stream as JSON. Every field is optional, since gateways leave out what they like.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::llm::failure::ErrorField;
use crate::llm::lenient;

/// The kind of an event; the rest of it is read once the kind is known.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<Cow<'a, str>>,
}

/// `message_start`.
#[derive(Debug, Deserialize)]
pub(super) struct MessageStart {
    pub(super) message: Option<MessageHead>,
}

#[derive(Debug, Deserialize)]
pub(super) struct MessageHead {
    pub(super) id: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) usage: Option<Usage>,
}

/// `content_block_start`.
#[derive(Debug, Deserialize)]
pub(super) struct BlockStart<'a> {
    pub(super) index: Option<u64>,
    #[serde(borrow)]
    pub(super) content_block: Option<ContentBlock<'a>>,
}

/// A block's beginning: which fields there are depends on `kind`.
#[derive(Debug, Deserialize)]
pub(super) struct ContentBlock<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) signature: Option<String>,
    pub(super) data: Option<String>,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
}

/// `content_block_delta`.
#[derive(Debug, Deserialize)]
pub(super) struct BlockDelta {
    pub(super) index: Option<u64>,
    pub(super) delta: Option<Delta>,
}

/// A piece of a block: which fields there are depends on `kind`; where it is missing, on the fields.
#[derive(Debug, Deserialize)]
pub(super) struct Delta {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) text: Option<String>,
    pub(super) partial_json: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) signature: Option<String>,
}

/// `content_block_stop`.
#[derive(Debug, Deserialize)]
pub(super) struct BlockStop {
    pub(super) index: Option<u64>,
}

/// `message_delta`.
#[derive(Debug, Deserialize)]
pub(super) struct MessageDelta {
    pub(super) delta: Option<StopInfo>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) usage: Option<Usage>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StopInfo {
    pub(super) stop_reason: Option<String>,
}

/// `error`.
#[derive(Debug, Deserialize)]
pub(super) struct ErrorEvent {
    pub(super) error: Option<ErrorField>,
}

/// Counters; a later event overrides what it repeats.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Usage {
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) cache_creation_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct OutputDetails {
    #[serde(default, deserialize_with = "lenient::or_absent")]
    pub(super) thinking_tokens: Option<u64>,
}
