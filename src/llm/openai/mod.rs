//! OpenAI's chat completions, <https://platform.openai.com/docs/api-reference/chat>, and the many servers that speak them
//! with deviations of their own: vLLM, llama.cpp, LM Studio, Groq, Mistral, DeepSeek, xAI, OpenRouter, Azure. And its
//! responses, which it wants to be asked for instead: a folder of their own.

mod call_ids;
mod calls;
mod chunk;
mod config;
mod fold;
mod habits;
mod reasoning;
mod responses;
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
use self::responses::Responses;
use super::Setup;
use super::answer;
use super::http::{self, ConnectError, Endpoint};
use super::recorded;
use super::sse::Sse;
use super::vendor::{self, Common, Facts, KindFacts, Own, Usual, Wire};
use crate::agent::ports::llm::{ChatRequest, EventStream, LlmProvider, ProviderError};
use crate::chat::message::ModelOrigin;
use crate::llm::files::{ALL, IMAGE_BYTES, IMAGES, Known, PDF_BYTES, READS, SEES, Sight};

/// What its models can be given (platform.openai.com, Models, 24 November 2026), and usual ones of servers that speak its wire.
const SIGHT: Sight = Sight {
    models: &[
        Known { name: "gpt-3.5", input: READS },
        Known { name: "gpt-oss", input: READS },
        Known { name: "gpt-4o", input: ALL },
        Known { name: "gpt-4.1", input: ALL },
        Known { name: "gpt-5", input: ALL },
        Known { name: "o4-mini", input: ALL },
        Known { name: "llava", input: SEES },
        Known { name: "vision", input: SEES },
        Known { name: "-vl", input: SEES },
        Known { name: "pixtral", input: SEES },
        Known { name: "gemma-3", input: SEES },
        Known { name: "llama-4", input: SEES },
    ],
    images: IMAGES,
    image_bytes: IMAGE_BYTES,
    image_side: u32::MAX,
    images_max: 500,
    pdf_bytes: PDF_BYTES,
    pdfs_max: usize::MAX,
};

/// The vendor as the table has it.
pub(super) const FACTS: Facts = Facts {
    name: "openai",
    telemetry_name: "openai",
    needs_key: false,
    usual_key: Some("OPENAI_API_KEY"),
    usual_settings: &[],
    is_spoken_by_others: true,
    sight: |_| &SIGHT,
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
    wires: &[
        Wire { name: "openai", recorded: |pieces| recorded::read(pieces, reader()) },
        Wire { name: "responses", recorded: |pieces| recorded::read(pieces, responses::reader()) },
    ],
};

impl Own for Config {
    fn connect(&self, setup: Setup<'_>, common: &Common) -> Result<Arc<dyn LlmProvider>, ConnectError> {
        let Setup { section, origin, net, .. } = setup;
        let host = Host::from_url(&http::join(section, &common.base_url, &[])?);
        let habits = Habits::new(section, self, host)?;
        let (header, prefix) = match host {
            Host::Azure => (HeaderName::from_static("api-key"), ""),
            Host::OpenAi
            | Host::OpenRouter
            | Host::Mistral
            | Host::DeepSeek
            | Host::Moonshot
            | Host::Google
            | Host::Cloudflare
            | Host::Other => (AUTHORIZATION, "Bearer "),
        };
        let patience = net.patience;
        let path: &[&str] = if habits.wants_responses { &["responses"] } else { &["chat", "completions"] };
        let url = http::join(section, &common.base_url, path)?;
        let headers = extra_headers(section, common, self, &header)?;
        let endpoint = Endpoint::new(net, url, "text/event-stream", headers);
        let endpoint = endpoint.with_key(section, header, prefix, &common.api_key)?;
        Ok(match habits.wants_responses {
            // While its model thinks and tells nothing of it, it is silent.
            true => Arc::new(Responses::new(origin, endpoint.with_patience(patience.with_silence()), habits)),
            false => Arc::new(OpenAi { origin, endpoint, habits }),
        })
    }
}

/// OpenAI, or what speaks its API, asked for chat completions.
struct OpenAi {
    origin: Arc<ModelOrigin>,
    endpoint: Endpoint,
    habits: Habits,
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
        let extra = |reason: &'static str| {
            let key = format!("extra_headers.{key}");
            ConnectError::Extra { section: section.to_owned(), key, reason: reason.into() }
        };
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
