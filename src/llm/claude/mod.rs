//! Anthropic's Messages API: <https://docs.anthropic.com/en/api/messages>,
//! streaming: <https://docs.anthropic.com/en/docs/build-with-claude/streaming>.

mod event;
mod fold;
mod form;
mod wire;

use std::sync::Arc;

use async_trait::async_trait;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;

use self::fold::Fold;
use self::form::Form;
pub(super) use self::wire::Version;
use super::Setup;
use super::answer;
use super::anthropic;
use super::http::{self, ConnectError, Endpoint};
use super::recorded;
use super::sse::Sse;
use super::vendor::{self, Common, Facts, KindFacts, Own, Refusal, Usual, Wire};
use crate::agent::ports::llm::{ChatRequest, EventStream, LlmProvider, ProviderError};
use crate::chat::message::ModelOrigin;
use crate::llm::files::{ALL, IMAGES, Known, PDF_BYTES, READS, Sight};

/// What its models can be given (docs.claude.com, Vision, PDF support, 24 November 2026).
pub(super) const SIGHT: Sight = Sight {
    models: &[
        Known { name: "claude-2", input: READS },
        Known { name: "claude-instant", input: READS },
        Known { name: "", input: ALL },
    ],
    images: IMAGES,
    // 5 MB in base64, on the strictest of its pages.
    image_bytes: 3_750_000,
    image_side: 8000,
    images_max: 100,
    pdf_bytes: PDF_BYTES,
    pdfs_max: 100,
};

/// The vendor as the table has it.
pub(super) const FACTS: Facts = Facts {
    name: "claude",
    telemetry_name: "anthropic",
    needs_key: true,
    usual_key: Some("ANTHROPIC_API_KEY"),
    usual_settings: &[],
    is_spoken_by_others: false,
    sight: |_| &SIGHT,
    model_prefix: "",
    base_url: "https://api.anthropic.com",
    model: "claude-sonnet-5-5",
    kinds: &[KindFacts { name: "anthropic", needs_key: true, usual: Usual::Vendor }],
    defaults: vendor::defaults::<Config>,
    read: vendor::read::<Config>,
    wires: &[Wire { name: "claude", recorded: |pieces| recorded::read(pieces, reader()) }],
};

/// What `[llm.claude]` has besides.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    /// The `anthropic-version` header. The default is the version that every gateway knows; later ones take no temperature.
    version: String,
    /// Whether models that can be held to a schema are; some clouds must be told to allow it.
    structured_outputs: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { version: wire::VERSION_WITH_SAMPLING.to_owned(), structured_outputs: true }
    }
}

impl Own for Config {
    fn connect(&self, setup: Setup<'_>, common: &Common) -> Result<Arc<dyn LlmProvider>, ConnectError> {
        Ok(Arc::new(Claude::new(setup, common, self)?))
    }

    fn refuses_temperature(&self) -> Option<Refusal> {
        let Self { version, structured_outputs: _ } = self;
        let reason = format!("is refused by version {version:?} of the API");
        (version != wire::VERSION_WITH_SAMPLING).then_some(Refusal { reason, key: "version" })
    }
}

/// Claude, or what speaks its API.
struct Claude {
    origin: Arc<ModelOrigin>,
    endpoint: Endpoint,
    version: String,
    structured_outputs: bool,
}

impl Claude {
    /// The provider of one model.
    fn new(setup: Setup<'_>, common: &Common, own: &Config) -> Result<Self, ConnectError> {
        let Setup { section, origin, net, .. } = setup;
        let url = http::join(section, &common.base_url, &["v1", "messages"])?;
        let mut headers = HeaderMap::new();
        let version = HeaderValue::from_str(&own.version);
        let version = version.map_err(|_| ConnectError::Header { section: section.to_owned(), key: "version" })?;
        headers.insert(HeaderName::from_static("anthropic-version"), version);
        let endpoint = Endpoint::new(net, url, "text/event-stream", headers);
        let endpoint = endpoint.with_key(section, HeaderName::from_static("x-api-key"), "", &common.api_key)?;
        Ok(Self { origin, endpoint, version: own.version.clone(), structured_outputs: own.structured_outputs })
    }
}

#[async_trait]
impl LlmProvider for Claude {
    async fn stream_chat(&self, request: ChatRequest<'_>) -> Result<EventStream, ProviderError> {
        ask(&self.endpoint, &self.origin, request, Version::Header(&self.version), self.structured_outputs).await
    }
}

/// One turn of a model of Claude's at `endpoint`, whoever serves it.
///
/// # Errors
/// As [`LlmProvider::stream_chat`].
pub(super) async fn ask(
    endpoint: &Endpoint,
    origin: &Arc<ModelOrigin>,
    request: ChatRequest<'_>,
    version: Version<'_>,
    structured_outputs: bool,
) -> Result<EventStream, ProviderError> {
    let form = Form::new(&request, &origin.model, structured_outputs);
    let request = |forgets| {
        let body = wire::Request::new(&request, origin, version, &form, forgets);
        if body.lacks_temperature(&request) {
            tracing::debug!(gen_ai.request.model = origin.model, "the model takes no temperature: left out");
        }
        body
    };
    let opened = anthropic::post(endpoint, &origin.model, request).await?;
    Ok(answer::stream(origin, opened, (Sse::default(), Fold::new(form.answer_tool()))))
}

/// What reads the bytes of an answer.
fn reader() -> (Sse, impl answer::Fold) {
    (Sse::default(), Fold::default())
}
