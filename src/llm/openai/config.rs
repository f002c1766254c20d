//! What `[llm.openai]` and the sections of further providers that speak its wires have besides: which of the two, and how the
//! server differs from the others.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Map, Value};

/// What `[llm.openai]` has besides.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Config {
    /// What the server is asked for.
    pub(super) wire: Wire,
    /// What the server calls the answer's limit.
    pub(super) max_tokens_field: MaxTokensField,
    /// Whether to ask for token counts; some strict servers refuse the question.
    pub(super) stream_options: bool,
    /// Whether reasoning is sent back in the field it came in: `reasoning_content`, as `DeepSeek` demands, `reasoning`, or
    /// `OpenRouter`'s signed `reasoning_details`; of responses, whether it comes sealed and goes back so.
    pub(super) echo_reasoning: bool,
    /// Which ids of calls the server takes.
    pub(super) tool_call_ids: ToolCallIds,
    /// Which forms of an answer the server can hold its model to.
    pub(super) response_format: ResponseFormats,
    /// Whether it can be told that a tool has to be called; else its model is asked for it in words.
    pub(super) forced_tool_choice: bool,
    /// Headers that every request has besides.
    pub(super) extra_headers: BTreeMap<String, Secret>,
    /// Fields that every request's body has besides; none of those that requests have anyway.
    pub(super) extra_body: Map<String, Value>,
}

/// What a server is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Wire {
    /// As [`Self::Responses`] at OpenAI itself, as [`Self::Chat`] elsewhere.
    Auto,
    /// Responses: a model that reasons goes on with its thoughts from turn to turn.
    Responses,
    /// Chat completions, which every server knows.
    Chat,
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

/// The forms of an answer that a server can hold its model to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ResponseFormats {
    /// As [`Self::Full`] at OpenAI, Azure and OpenRouter, as [`Self::JsonObject`] at DeepSeek, as [`Self::WithoutTools`]
    /// elsewhere.
    Auto,
    /// A schema, also beside tools that may be called.
    Full,
    /// A schema, where no tool may be called: most servers hold back calls too.
    WithoutTools,
    /// A JSON object, where no tool may be called; no schemas.
    JsonObject,
    /// None.
    None,
}

/// A text that may be secret: it is never printed.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Secret(#[serde(deserialize_with = "crate::llm::config::secret")] pub(super) SecretString);

impl Default for Config {
    fn default() -> Self {
        Self {
            wire: Wire::Auto,
            max_tokens_field: MaxTokensField::Auto,
            stream_options: true,
            echo_reasoning: true,
            tool_call_ids: ToolCallIds::Auto,
            response_format: ResponseFormats::Auto,
            forced_tool_choice: true,
            extra_headers: BTreeMap::new(),
            extra_body: Map::new(),
        }
    }
}
