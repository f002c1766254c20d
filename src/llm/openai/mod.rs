//! OpenAI's chat completions, <https://platform.openai.com/docs/api-reference/chat>, and the many servers that speak them
//! with deviations of their own: vLLM, llama.cpp, LM Studio, Groq, Mistral, DeepSeek, xAI, OpenRouter, Azure.

mod calls;
mod fold;
mod wire;

use std::sync::Arc;

use async_trait::async_trait;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName};
use secrecy::SecretString;
use serde::Deserialize;

use self::fold::Fold;
use super::Setup;
use super::answer;
use super::http::{self, ConnectError, Endpoint};
use super::sse::Sse;
use crate::agent::ports::llm::{ChatRequest, EventStream, LlmProvider, ProviderError};
use crate::chat::message::ModelOrigin;

/// `[llm.openai]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What stands before `/chat/completions`; a query (Azure's `api-version`) is kept.
    pub base_url: String,
    /// The model.
    pub model: String,
    /// The key; empty is none.
    #[serde(deserialize_with = "super::config::secret")]
    pub api_key: SecretString,
    /// What the server calls the answer's limit.
    pub max_tokens_field: MaxTokensField,
    /// Whether to ask for token counts; some strict servers refuse the question.
    pub stream_options: bool,
    /// Whether reasoning that came as `reasoning_content` is sent back, as `DeepSeek` demands.
    pub echo_reasoning: bool,
}

/// The name of the field that limits an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    /// `max_completion_tokens` at OpenAI and Azure, whose newer models refuse the old name; `max_tokens` elsewhere.
    Auto,
    /// The name that every other server knows.
    MaxTokens,
    /// OpenAI's newer name.
    MaxCompletionTokens,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            base_url: "https://api.openai.com/v1".to_owned(),
            model: "gpt-5.5-mini".to_owned(),
            api_key: SecretString::default(),
            max_tokens_field: MaxTokensField::Auto,
            stream_options: true,
            echo_reasoning: true,
        }
    }
}

/// OpenAI, or what speaks its API.
pub(super) struct OpenAi {
    origin: Arc<ModelOrigin>,
    endpoint: Endpoint,
    habits: wire::Habits,
}

impl OpenAi {
    /// The provider of one model.
    pub(super) fn new(setup: Setup<'_>, config: &Config) -> Result<Self, ConnectError> {
        let Setup { section, origin, net } = setup;
        let url = http::join(section, &config.base_url, &["chat", "completions"])?;
        let host = Host::of(&url);
        let (header, prefix) = match host {
            Host::Azure => (HeaderName::from_static("api-key"), ""),
            Host::OpenAi | Host::Other => (AUTHORIZATION, "Bearer "),
        };
        let habits = wire::Habits {
            max_completion_tokens: match config.max_tokens_field {
                MaxTokensField::Auto => host != Host::Other,
                MaxTokensField::MaxTokens => false,
                MaxTokensField::MaxCompletionTokens => true,
            },
            stream_options: config.stream_options,
            echo_reasoning: config.echo_reasoning,
        };
        let endpoint = Endpoint::new(net, url, "text/event-stream", HeaderMap::new());
        let endpoint = endpoint.with_key(section, header, prefix, &config.api_key)?;
        Ok(Self { origin, endpoint, habits })
    }
}

/// Whose server an address is, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Host {
    OpenAi,
    Azure,
    Other,
}

impl Host {
    fn of(url: &Url) -> Self {
        let azure = [".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"];
        match url.host_str() {
            Some("api.openai.com") => Self::OpenAi,
            Some(host) if azure.iter().any(|suffix| host.ends_with(suffix)) => Self::Azure,
            Some(_) | None => Self::Other,
        }
    }
}

#[async_trait]
impl LlmProvider for OpenAi {
    async fn stream_chat(&self, request: ChatRequest<'_>) -> Result<EventStream, ProviderError> {
        let opened = self.endpoint.post(&wire::Request::new(&request, &self.origin, self.habits)).await?;
        Ok(answer::stream(&self.origin, opened, reader()))
    }
}

/// What reads the bytes of an answer.
pub(super) fn reader() -> (Sse, impl answer::Fold) {
    (Sse::default(), Fold::default())
}
