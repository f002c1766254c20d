//! Google's Gemini API: <https://ai.google.dev/api/generate-content>,
//! thought signatures: <https://ai.google.dev/gemini-api/docs/thought-signatures>.

mod fold;
mod wire;

use std::sync::Arc;

use async_trait::async_trait;
use reqwest::header::{HeaderMap, HeaderName};
use secrecy::SecretString;
use serde::Deserialize;

use self::fold::Fold;
use super::answer;
use super::http::{self, ConnectError, Endpoint, Patience};
use super::sse::Sse;
use crate::agent::ports::llm::{ChatRequest, EventStream, LlmProvider, ProviderError};
use crate::chat::message::ModelOrigin;

/// The vendor's name in the configuration.
pub const NAME: &str = "gemini";

/// `[llm.gemini]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The origin that `/v1beta/models/…` is appended to.
    pub base_url: String,
    /// The model, with or without `models/`.
    pub model: String,
    /// The key; empty is none.
    #[serde(deserialize_with = "super::secret")]
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
    /// The provider that `config` describes.
    pub(super) fn new(config: &Config, patience: Patience) -> Result<Self, ConnectError> {
        let model = config.model.trim();
        let origin = super::origin(NAME, model.strip_prefix("models/").unwrap_or(model))?;
        let method = format!("{}:streamGenerateContent", origin.model);
        let mut url = http::join(NAME, &config.base_url, &["v1beta", "models", &method])?;
        // Without it the answer is one JSON list instead of events.
        url.query_pairs_mut().append_pair("alt", "sse");
        let mut headers = HeaderMap::new();
        http::add_key(&mut headers, NAME, HeaderName::from_static("x-goog-api-key"), "", &config.api_key)?;
        Ok(Self { origin, endpoint: Endpoint::new(url, "text/event-stream", headers, patience)? })
    }
}

#[async_trait]
impl LlmProvider for Gemini {
    fn origin(&self) -> &ModelOrigin {
        &self.origin
    }

    async fn stream_chat(&self, request: ChatRequest<'_>) -> Result<EventStream, ProviderError> {
        let body = self.endpoint.post(&wire::Request::new(&request, &self.origin)).await?;
        let events = answer::events(body, Sse::default(), Fold::default());
        Ok(EventStream { origin: Arc::clone(&self.origin), events })
    }
}
