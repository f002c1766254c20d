//! What `[llm.openai]` and the sections of further providers that speak chat completions have besides: how the server differs
//! from the others.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Map, Value};

/// What `[llm.openai]` has besides.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Config {
    /// What the server calls the answer's limit.
    pub(super) max_tokens_field: MaxTokensField,
    /// Whether to ask for token counts; some strict servers refuse the question.
    pub(super) stream_options: bool,
    /// Whether reasoning is sent back in the field it came in: `reasoning_content`, as `DeepSeek` demands, `reasoning`, or
    /// `OpenRouter`'s signed `reasoning_details`.
    pub(super) echo_reasoning: bool,
    /// Which ids of calls the server takes.
    pub(super) tool_call_ids: ToolCallIds,
    /// Headers that every request has besides.
    pub(super) extra_headers: BTreeMap<String, Secret>,
    /// Fields that every request's body has besides; none of those that requests have anyway.
    pub(super) extra_body: Map<String, Value>,
}

/// The name of the field that limits an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum MaxTokensField {
    /// `max_completion_tokens` at OpenAI and Azure, whose newer models refuse the old name; `max_tokens` elsewhere.
    Auto,
    /// The name that every other server knows.
    MaxTokens,
    /// OpenAI's newer name.
    MaxCompletionTokens,
}

/// The ids of calls that a server takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToolCallIds {
    /// As [`Self::Mistral`] at Mistral, up to 40 characters at OpenAI, Azure and OpenRouter, which refuse longer ones of
    /// other models, as [`Self::Any`] elsewhere.
    Auto,
    /// Whatever a model gave, or we made up.
    Any,
    /// Exactly nine letters and digits: Mistral refuses all others, and so do servers with its tokenizer.
    Mistral,
}

/// A text that may be secret: it is never printed.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Secret(#[serde(deserialize_with = "crate::llm::config::secret")] pub(super) SecretString);

impl Default for Config {
    fn default() -> Self {
        Self {
            max_tokens_field: MaxTokensField::Auto,
            stream_options: true,
            echo_reasoning: true,
            tool_call_ids: ToolCallIds::Auto,
            extra_headers: BTreeMap::new(),
            extra_body: Map::new(),
        }
    }
}
