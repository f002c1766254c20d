//! Anthropic's Messages API: <https://docs.anthropic.com/en/api/messages>,
//! streaming: <https://docs.anthropic.com/en/docs/build-with-claude/streaming>.

mod event;
mod fold;
mod thinking;
mod wire;

use std::sync::Arc;

use async_trait::async_trait;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::SecretString;
use serde::Deserialize;

use self::fold::Fold;
use super::Setup;
use super::answer;
use super::http::{self, ConnectError, Endpoint};
use super::sse::Sse;
use crate::agent::ports::llm::{ChatRequest, EventStream, LlmProvider, ProviderError};
use crate::chat::message::ModelOrigin;

/// `[llm.claude]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The origin that `/v1/messages` is appended to.
    pub base_url: String,
    /// The model.
    pub model: String,
    /// The key; empty is none.
    #[serde(deserialize_with = "super::config::secret")]
    pub api_key: SecretString,
    /// The `anthropic-version` header. The default is the version that every gateway knows; later ones take no temperature.
    pub version: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            base_url: "https://api.anthropic.com".to_owned(),
            model: "claude-sonnet-5-5".to_owned(),
            api_key: SecretString::default(),
            version: "2023-06-01".to_owned(),
        }
    }
}

/// Claude, or what speaks its API.
pub(super) struct Claude {
    origin: Arc<ModelOrigin>,
    endpoint: Endpoint,
    version: String,
}

impl Claude {
    /// The provider of one model.
    pub(super) fn new(setup: Setup<'_>, config: &Config) -> Result<Self, ConnectError> {
        let Setup { section, origin, net } = setup;
        let url = http::join(section, &config.base_url, &["v1", "messages"])?;
        let mut headers = HeaderMap::new();
        let version = HeaderValue::from_str(&config.version);
        let version = version.map_err(|_| ConnectError::Header { section: section.to_owned(), key: "version" })?;
        headers.insert(HeaderName::from_static("anthropic-version"), version);
        let endpoint = Endpoint::new(net, url, "text/event-stream", headers);
        let endpoint = endpoint.with_key(section, HeaderName::from_static("x-api-key"), "", &config.api_key)?;
        Ok(Self { origin, endpoint, version: config.version.clone() })
    }
}

#[async_trait]
impl LlmProvider for Claude {
    async fn stream_chat(&self, request: ChatRequest<'_>) -> Result<EventStream, ProviderError> {
        let body = wire::Request::new(&request, &self.origin, &self.version);
        if body.lacks_temperature(&request) {
            tracing::debug!(gen_ai.request.model = self.origin.model, "the model takes no temperature: left out");
        }
        let opened = self.endpoint.post(&body).await?;
        Ok(answer::stream(&self.origin, opened, reader()))
    }
}

/// What reads the bytes of an answer.
pub(super) fn reader() -> (Sse, impl answer::Fold) {
    (Sse::default(), Fold::default())
}
