//! OpenAI's chat completions, <https://platform.openai.com/docs/api-reference/chat>, and the many servers that speak them
//! with deviations of their own: vLLM, llama.cpp, LM Studio, Groq, Mistral, DeepSeek, xAI, OpenRouter, Azure.

mod call_ids;
mod calls;
mod chunk;
mod config;
mod fold;
mod habits;
mod reasoning;
mod usage;
mod wire;

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue,
    TRANSFER_ENCODING,
};
use secrecy::{ExposeSecret, SecretString};

use self::fold::Fold;
use self::habits::{Habits, Host};
use super::Setup;
use super::answer;
use super::failure;
use super::http::{self, ConnectError, Endpoint};
use super::sse::Sse;
use crate::agent::ports::llm::{ChatRequest, EventStream, LlmProvider, ProviderError};
use crate::chat::message::ModelOrigin;

pub use self::config::{Config, MaxTokensField, Secret, ToolCallIds};

/// 8 bytes: less is no secret worth the name.
const MIN_SECRET_BYTES: usize = 8;

/// OpenAI, or what speaks its API.
pub(super) struct OpenAi {
    origin: Arc<ModelOrigin>,
    endpoint: Endpoint,
    habits: Habits,
    /// Values of the operator's headers, which must not appear in any error either.
    secrets: Arc<[SecretString]>,
}

impl OpenAi {
    /// The provider of one model.
    pub(super) fn new(setup: Setup<'_>, config: &Config) -> Result<Self, ConnectError> {
        let Setup { section, origin, net } = setup;
        let url = http::join(section, &config.base_url, &["chat", "completions"])?;
        let host = Host::of(&url);
        let (header, prefix) = match host {
            Host::Azure => (HeaderName::from_static("api-key"), ""),
            Host::OpenAi | Host::OpenRouter | Host::Mistral | Host::Other => (AUTHORIZATION, "Bearer "),
        };
        let headers = extra_headers(section, config, &header)?;
        let habits = Habits::new(section, config, host)?;
        let endpoint = Endpoint::new(net, url, "text/event-stream", headers);
        let endpoint = endpoint.with_key(section, header, prefix, &config.api_key)?;
        Ok(Self { origin, endpoint, habits, secrets: secrets(config) })
    }
}

/// The configured headers. What the request says itself may not be said twice, and its length is nobody's affair.
fn extra_headers(section: &str, config: &Config, key_header: &HeaderName) -> Result<HeaderMap, ConnectError> {
    let own = [ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, CONTENT_LENGTH, TRANSFER_ENCODING, HOST];
    let has_key = !config.api_key.expose_secret().trim().is_empty();
    let mut headers = HeaderMap::new();
    for (key, text) in &config.extra_headers {
        let extra =
            |reason| ConnectError::Extra { section: section.to_owned(), key: format!("extra_headers.{key}"), reason };
        let name = HeaderName::try_from(key).map_err(|_| extra("is not the name of an http header"))?;
        if own.contains(&name) || (has_key && name == *key_header) || headers.contains_key(&name) {
            return Err(extra("is a header that the request has already"));
        }
        let value = HeaderValue::from_str(text.0.expose_secret().trim());
        let mut value = value.map_err(|_| extra("has characters that no http header can carry"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

#[async_trait]
impl LlmProvider for OpenAi {
    async fn stream_chat(&self, request: ChatRequest<'_>) -> Result<EventStream, ProviderError> {
        let opened = self.endpoint.post(&wire::Request::new(&request, &self.origin, &self.habits)).await;
        let opened = opened.map_err(|error| scrubbed(error, &self.secrets))?;
        let answer = answer::stream(&self.origin, opened, Sse::default(), Fold::default());
        let secrets = Arc::clone(&self.secrets);
        let events = answer.events.map(move |event| event.map_err(|error| scrubbed(error, &secrets))).boxed();
        Ok(EventStream { events, ..answer })
    }
}

/// The header values that are long enough to be secret; a shorter one would be found in any number.
fn secrets(config: &Config) -> Arc<[SecretString]> {
    let values = config.extra_headers.values().map(|Secret(value)| value.expose_secret().trim());
    values.filter(|value| value.len() >= MIN_SECRET_BYTES).map(SecretString::from).collect()
}

fn scrubbed(error: ProviderError, secrets: &[SecretString]) -> ProviderError {
    secrets.iter().fold(error, failure::scrubbed)
}
