//! Ollama's chat API: <https://github.com/ollama/ollama/blob/main/docs/api.md>.

mod fold;
mod wire;

use std::sync::Arc;

use async_trait::async_trait;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use secrecy::SecretString;
use serde::Deserialize;

use self::fold::Fold;
use super::Setup;
use super::answer;
use super::http::{self, ConnectError, Endpoint, Patience};
use super::ndjson::Ndjson;
use crate::agent::ports::llm::{ChatRequest, EventStream, LlmProvider, ProviderError};
use crate::chat::message::ModelOrigin;

/// `[llm.ollama]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The origin that `/api/chat` is appended to.
    pub base_url: String,
    /// The model.
    pub model: String,
    /// The key of a proxy or of the vendor's cloud; empty is none.
    #[serde(deserialize_with = "super::config::secret")]
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
    /// The provider of one model.
    pub(super) fn new(setup: Setup<'_>, config: &Config) -> Result<Self, ConnectError> {
        let Setup { section, origin, net } = setup;
        let url = http::join(section, &config.base_url, &["api", "chat"])?;
        let num_ctx = (config.num_ctx > 0).then_some(config.num_ctx);
        // A call comes whole: while the model writes its arguments nothing is sent, which is no reason to give up.
        // Where either limit is off there is none.
        let patience = net.patience;
        let idle = patience.idle.zip(patience.first_byte).map(|(idle, first_byte)| idle.max(first_byte));
        let endpoint = Endpoint::new(net, url, "application/x-ndjson", HeaderMap::new())
            .with_patience(Patience { idle, ..patience })
            .with_key(section, AUTHORIZATION, "Bearer ", &config.api_key)?;
        Ok(Self { origin, endpoint, num_ctx })
    }
}

#[async_trait]
impl LlmProvider for Ollama {
    async fn stream_chat(&self, request: ChatRequest<'_>) -> Result<EventStream, ProviderError> {
        let opened = self.endpoint.post(&wire::Request::new(&request, &self.origin, self.num_ctx)).await?;
        Ok(answer::stream(&self.origin, opened, reader()))
    }
}

/// What reads the bytes of an answer.
pub(super) fn reader() -> (Ndjson, impl answer::Fold) {
    (Ndjson::default(), Fold::default())
}
