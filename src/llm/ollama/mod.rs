//! Ollama's chat API: <https://github.com/ollama/ollama/blob/main/docs/api.md>.

mod fold;
mod wire;

use std::sync::Arc;

use async_trait::async_trait;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use secrecy::SecretString;
use serde::Deserialize;

use self::fold::Fold;
use super::answer;
use super::http::{self, ConnectError, Endpoint, Patience};
use super::ndjson::Ndjson;
use crate::agent::ports::llm::{ChatRequest, EventStream, LlmProvider, ProviderError};
use crate::chat::message::ModelOrigin;

/// The vendor's name in the configuration.
pub const NAME: &str = "ollama";

/// `[llm.ollama]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The origin that `/api/chat` is appended to.
    pub base_url: String,
    /// The model.
    pub model: String,
    /// The key of a proxy or of the vendor's cloud; empty is none.
    #[serde(deserialize_with = "super::secret")]
    pub api_key: SecretString,
    /// The context window to ask for, in tokens; 0 leaves it to the server, whose own default may be 4096 and cuts old
    /// messages off.
    pub num_ctx: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            base_url: "http://localhost:11434".to_owned(),
            model: "qwen3:14b".to_owned(),
            api_key: SecretString::default(),
            num_ctx: 65_536,
        }
    }
}

/// Ollama, local or behind a proxy.
pub(super) struct Ollama {
    origin: Arc<ModelOrigin>,
    endpoint: Endpoint,
    num_ctx: Option<u32>,
}

impl Ollama {
    /// The provider that `config` describes.
    pub(super) fn new(config: &Config, patience: Patience) -> Result<Self, ConnectError> {
        let origin = super::origin(NAME, &config.model)?;
        let url = http::join(NAME, &config.base_url, &["api", "chat"])?;
        let mut headers = HeaderMap::new();
        http::add_key(&mut headers, NAME, AUTHORIZATION, "Bearer ", &config.api_key)?;
        let num_ctx = (config.num_ctx > 0).then_some(config.num_ctx);
        // A call comes whole: while the model writes its arguments nothing is sent, which is no reason to give up.
        let idle = patience.idle.map(|idle| patience.first_byte.map_or(idle, |first_byte| idle.max(first_byte)));
        let patience = Patience { idle, ..patience };
        Ok(Self { origin, endpoint: Endpoint::new(url, "application/x-ndjson", headers, patience)?, num_ctx })
    }
}

#[async_trait]
impl LlmProvider for Ollama {
    fn origin(&self) -> &ModelOrigin {
        &self.origin
    }

    async fn stream_chat(&self, request: ChatRequest<'_>) -> Result<EventStream, ProviderError> {
        let body = self.endpoint.post(&wire::Request::new(&request, &self.origin, self.num_ctx)).await?;
        let events = answer::events(body, Ndjson::default(), Fold::default());
        Ok(EventStream { origin: Arc::clone(&self.origin), events })
    }
}
