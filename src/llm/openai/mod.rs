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
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue,
    TRANSFER_ENCODING,
};
use secrecy::ExposeSecret;

use self::config::Config;
use self::fold::Fold;
use self::habits::{Habits, Host};
use super::Setup;
use super::answer;
use super::http::{self, ConnectError, Endpoint};
use super::recorded;
use super::sse::Sse;
use super::vendor::{self, Common, Facts, KindFacts, Own, Usual};
use crate::agent::ports::llm::{ChatRequest, EventStream, LlmProvider, ProviderError};
use crate::chat::message::ModelOrigin;

/// The vendor as the table has it.
pub(super) const FACTS: Facts = Facts {
    name: "openai",
    telemetry_name: "openai",
    needs_key: false,
    usual_key: Some("OPENAI_API_KEY"),
    is_spoken_by_others: true,
    model_prefix: "",
    base_url: "https://api.openai.com/v1",
    model: "gpt-5.5-mini",
    kinds: &[
        KindFacts { name: "openai", needs_key: true, usual: Usual::Vendor },
        // https://docs.x.ai/docs/api-reference, https://api-docs.deepseek.com
        KindFacts { name: "xai", needs_key: true, usual: Usual::At("https://api.x.ai/v1") },
        KindFacts { name: "deepseek", needs_key: true, usual: Usual::At("https://api.deepseek.com/v1") },
        KindFacts { name: "other", needs_key: false, usual: Usual::Nowhere },
    ],
    defaults: vendor::defaults::<Config>,
    read: vendor::read::<Config>,
    recorded: |pieces| recorded::read(pieces, reader()),
};

impl Own for Config {
    fn connect(&self, setup: Setup<'_>, common: &Common) -> Result<Arc<dyn LlmProvider>, ConnectError> {
        Ok(Arc::new(OpenAi::new(setup, common, self)?))
    }
}

/// OpenAI, or what speaks its API.
struct OpenAi {
    origin: Arc<ModelOrigin>,
    endpoint: Endpoint,
    habits: Habits,
}

impl OpenAi {
    /// The provider of one model.
    fn new(setup: Setup<'_>, common: &Common, own: &Config) -> Result<Self, ConnectError> {
        let Setup { section, origin, net } = setup;
        let url = http::join(section, &common.base_url, &["chat", "completions"])?;
        let host = Host::from_url(&url);
        let (header, prefix) = match host {
            Host::Azure => (HeaderName::from_static("api-key"), ""),
            Host::OpenAi | Host::OpenRouter | Host::Mistral | Host::Other => (AUTHORIZATION, "Bearer "),
        };
        let headers = extra_headers(section, common, own, &header)?;
        let habits = Habits::new(section, own, host)?;
        let endpoint = Endpoint::new(net, url, "text/event-stream", headers);
        let endpoint = endpoint.with_key(section, header, prefix, &common.api_key)?;
        Ok(Self { origin, endpoint, habits })
    }
}

/// The configured headers. They may not repeat what the request sets itself, nor set its length.
fn extra_headers(
    section: &str,
    common: &Common,
    own: &Config,
    key_header: &HeaderName,
) -> Result<HeaderMap, ConnectError> {
    let fixed = [ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, CONTENT_LENGTH, TRANSFER_ENCODING, HOST];
    let has_key = !common.api_key.expose_secret().trim().is_empty();
    let mut headers = HeaderMap::new();
    for (key, text) in &own.extra_headers {
        let extra =
            |reason| ConnectError::Extra { section: section.to_owned(), key: format!("extra_headers.{key}"), reason };
        let name = HeaderName::try_from(key).map_err(|_| extra("is not the name of an http header"))?;
        if fixed.contains(&name) || (has_key && name == *key_header) || headers.contains_key(&name) {
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
        let opened = self.endpoint.post(&wire::Request::new(&request, &self.origin, &self.habits)).await?;
        Ok(answer::stream(&self.origin, opened, reader()))
    }
}

/// What reads the bytes of an answer.
fn reader() -> (Sse, impl answer::Fold) {
    (Sse::default(), Fold::default())
}
