//! Google's Gemini API: <https://ai.google.dev/api/generate-content>,
//! thought signatures: <https://ai.google.dev/gemini-api/docs/thought-signatures>.

mod fold;
mod thinking;
mod wire;

use std::sync::Arc;

use async_trait::async_trait;
use reqwest::header::{HeaderMap, HeaderName};
use serde::Deserialize;

use self::fold::Fold;
use super::Setup;
use super::answer;
use super::http::{self, ConnectError, Endpoint};
use super::recorded;
use super::sse::Sse;
use super::vendor::{self, Common, Facts, KindFacts, Own, Usual, Wire};
use crate::agent::ports::llm::{ChatRequest, EventStream, LlmProvider, ProviderError};
use crate::chat::file::FileKind;
use crate::chat::message::ModelOrigin;
use crate::llm::files::{ALL, IMAGE_BYTES, Known, PDF_BYTES, READS, SEES, Sight};

/// What its models can be given (ai.google.dev, Image understanding, Document understanding, 24 November 2026).
pub(super) const SIGHT: Sight = Sight {
    models: &[
        Known { name: "gemma-3", input: SEES },
        Known { name: "gemma", input: READS },
        Known { name: "", input: ALL },
    ],
    // GIF is none of them.
    images: &[FileKind::Png, FileKind::Jpeg, FileKind::Webp],
    image_bytes: IMAGE_BYTES,
    image_side: u32::MAX,
    images_max: 3000,
    pdf_bytes: PDF_BYTES,
    pdfs_max: usize::MAX,
};

/// The vendor as the table has it.
pub(super) const FACTS: Facts = Facts {
    name: "gemini",
    telemetry_name: "gcp.gemini",
    needs_key: true,
    usual_key: Some("GEMINI_API_KEY"),
    usual_settings: &[],
    is_spoken_by_others: false,
    sight: |_| &SIGHT,
    model_prefix: "models/",
    base_url: "https://generativelanguage.googleapis.com",
    model: "gemini-2.5-flash",
    kinds: &[KindFacts { name: "gemini", needs_key: true, usual: Usual::Vendor }],
    defaults: vendor::defaults::<Config>,
    read: vendor::read::<Config>,
    wires: &[Wire { name: "gemini", recorded: |pieces| recorded::read(pieces, reader()) }],
};

/// `[llm.gemini]` has nothing but what all have.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {}

impl Own for Config {
    fn connect(&self, setup: Setup<'_>, common: &Common) -> Result<Arc<dyn LlmProvider>, ConnectError> {
        Ok(Arc::new(Gemini::new(setup, common)?))
    }
}

/// Gemini, or what speaks its API.
struct Gemini {
    origin: Arc<ModelOrigin>,
    endpoint: Endpoint,
}

impl Gemini {
    /// The provider of one model.
    fn new(setup: Setup<'_>, common: &Common) -> Result<Self, ConnectError> {
        let Setup { section, origin, net, .. } = setup;
        let method = format!("{}:streamGenerateContent", origin.model);
        let mut url = http::join(section, &common.base_url, &["v1beta", "models", &method])?;
        // Without it the answer is one JSON list instead of events.
        url.query_pairs_mut().append_pair("alt", "sse");
        let endpoint = Endpoint::new(net, url, "text/event-stream", HeaderMap::new());
        let endpoint = endpoint.with_key(section, HeaderName::from_static("x-goog-api-key"), "", &common.api_key)?;
        Ok(Self { origin, endpoint })
    }
}

#[async_trait]
impl LlmProvider for Gemini {
    async fn stream_chat(&self, request: ChatRequest<'_>) -> Result<EventStream, ProviderError> {
        ask(&self.endpoint, &self.origin, request).await
    }
}

/// One turn of a model of Gemini's at `endpoint`, whoever serves it.
///
/// # Errors
/// As [`LlmProvider::stream_chat`].
pub(super) async fn ask(
    endpoint: &Endpoint,
    origin: &Arc<ModelOrigin>,
    request: ChatRequest<'_>,
) -> Result<EventStream, ProviderError> {
    let body = wire::Request::new(&request, origin);
    if body.lacks_temperature(&request) {
        tracing::debug!(gen_ai.request.model = origin.model, "the model takes no temperature: left out");
    }
    let opened = endpoint.post(&body).await?;
    Ok(answer::stream(origin, opened, reader()))
}

/// What reads the bytes of an answer.
pub(super) fn reader() -> (Sse, impl answer::Fold) {
    (Sse::default(), Fold::default())
}
