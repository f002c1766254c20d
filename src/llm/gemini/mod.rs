//! Google's Gemini API: <https://ai.google.dev/api/generate-content>,
//! thought signatures: <https://ai.google.dev/gemini-api/docs/thought-signatures>.

mod fold;
mod thinking;
mod wire;

use std::sync::Arc;

use async_trait::async_trait;
use reqwest::header::{HeaderMap, HeaderName};
use secrecy::SecretString;
use serde::Deserialize;

use self::fold::Fold;
use super::Setup;
use super::answer;
use super::http::{self, ConnectError, Endpoint};
use super::sse::Sse;
use crate::agent::ports::llm::{ChatRequest, EventStream, LlmProvider, ProviderError};
use crate::chat::message::ModelOrigin;

/// `[llm.gemini]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The origin that `/v1beta/models/…` is appended to.
    pub base_url: String,
    /// The model, with or without `models/`.
    pub model: String,
    /// The key; empty is none.
    #[serde(deserialize_with = "super::config::secret")]
    pub api_key: SecretString,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            base_url: "https://generativelanguage.googleapis.com".to_owned(),
            model: "gemini-2.5-flash".to_owned(),
            api_key: SecretString::default(),
        }
    }
}

/// Gemini, or what speaks its API.
pub(super) struct Gemini {
    origin: Arc<ModelOrigin>,
    endpoint: Endpoint,
}

impl Gemini {
    /// The provider of one model.
    pub(super) fn new(setup: Setup<'_>, config: &Config) -> Result<Self, ConnectError> {
        let Setup { section, origin, net } = setup;
        let method = format!("{}:streamGenerateContent", origin.model);
        let mut url = http::join(section, &config.base_url, &["v1beta", "models", &method])?;
        // Without it the answer is one JSON list instead of events.
        url.query_pairs_mut().append_pair("alt", "sse");
        let endpoint = Endpoint::new(net, url, "text/event-stream", HeaderMap::new());
        let endpoint = endpoint.with_key(section, HeaderName::from_static("x-goog-api-key"), "", &config.api_key)?;
        Ok(Self { origin, endpoint })
    }
}

#[async_trait]
impl LlmProvider for Gemini {
    async fn stream_chat(&self, request: ChatRequest<'_>) -> Result<EventStream, ProviderError> {
        let body = wire::Request::new(&request, &self.origin);
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
