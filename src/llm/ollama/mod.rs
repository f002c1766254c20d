//! Ollama's chat API: <https://github.com/ollama/ollama/blob/main/docs/api.md>.

mod fold;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde::Deserialize;

use self::fold::Fold;
use super::Setup;
use super::answer;
use super::failure;
use super::http::{self, ConnectError, Endpoint, Opened};
use super::ndjson::Ndjson;
use super::recorded;
use super::vendor::{self, Common, Facts, KindFacts, Own, Usual, Wire};
use crate::agent::ports::llm::{ChatRequest, EventStream, LlmProvider, ProviderError};
use crate::chat::file::FileKind;
use crate::chat::message::ModelOrigin;
use crate::chat::model::Effort;
use crate::llm::files::{IMAGE_BYTES, Known, PDF_BYTES, READS, SEES, Sight};

/// What its models can be given (ollama.com, Vision models, 24 November 2026).
const SIGHT: Sight = Sight {
    models: &[
        Known { name: "llava", input: SEES },
        Known { name: "vision", input: SEES },
        Known { name: "-vl", input: SEES },
        Known { name: "qwen2.5vl", input: SEES },
        Known { name: "gemma3:270m", input: READS },
        Known { name: "gemma3:1b", input: READS },
        Known { name: "gemma3", input: SEES },
        Known { name: "llama4", input: SEES },
        Known { name: "minicpm-v", input: SEES },
        Known { name: "moondream", input: SEES },
        Known { name: "mistral-small3", input: SEES },
    ],
    // Of a GIF it says that its format is unknown.
    images: &[FileKind::Png, FileKind::Jpeg, FileKind::Webp],
    image_bytes: IMAGE_BYTES,
    image_side: u32::MAX,
    images_max: usize::MAX,
    pdf_bytes: PDF_BYTES,
    pdfs_max: usize::MAX,
};

/// The vendor as the table has it.
pub(super) const FACTS: Facts = Facts {
    name: "ollama",
    telemetry_name: "ollama",
    needs_key: false,
    usual_key: None,
    usual_settings: &[],
    is_spoken_by_others: false,
    sight: |_| &SIGHT,
    model_prefix: "",
    base_url: "http://localhost:11434",
    model: "qwen3:14b",
    kinds: &[KindFacts { name: "ollama", needs_key: false, usual: Usual::Vendor }],
    defaults: vendor::defaults::<Config>,
    read: vendor::read::<Config>,
    wires: &[Wire { name: "ollama", recorded: |pieces| recorded::read(pieces, reader()) }],
};

/// What `[llm.ollama]` has besides.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    /// The context window to ask for, in tokens; 0 leaves it to the server, whose own default may be 4096 and cuts old
    /// messages off.
    num_ctx: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { num_ctx: 65_536 }
    }
}

impl Own for Config {
    fn connect(&self, setup: Setup<'_>, common: &Common) -> Result<Arc<dyn LlmProvider>, ConnectError> {
        Ok(Arc::new(Ollama::new(setup, common, self)?))
    }
}

/// Ollama, local or behind a proxy.
struct Ollama {
    origin: Arc<ModelOrigin>,
    endpoint: Endpoint,
    num_ctx: Option<u32>,
    /// Whether the model has refused to be told how much to think.
    thinks_not: AtomicBool,
}

impl Ollama {
    /// The provider of one model.
    fn new(setup: Setup<'_>, common: &Common, own: &Config) -> Result<Self, ConnectError> {
        let Setup { section, origin, net, .. } = setup;
        let url = http::join(section, &common.base_url, &["api", "chat"])?;
        let num_ctx = (own.num_ctx > 0).then_some(own.num_ctx);
        // A call comes whole: while the model writes its arguments nothing is sent, which is no reason to give up.
        let patience = net.patience.with_silence();
        let endpoint = Endpoint::new(net, url, "application/x-ndjson", HeaderMap::new())
            .with_patience(patience)
            .with_key(section, AUTHORIZATION, "Bearer ", &common.api_key)?;
        Ok(Self { origin, endpoint, num_ctx, thinks_not: AtomicBool::new(false) })
    }
}

impl Ollama {
    async fn post(&self, request: &ChatRequest<'_>, effort: Option<Effort>) -> Result<Opened, ProviderError> {
        self.endpoint.post(&wire::Request::new(request, &self.origin, self.num_ctx, effort)).await
    }
}

#[async_trait]
impl LlmProvider for Ollama {
    async fn stream_chat(&self, request: ChatRequest<'_>) -> Result<EventStream, ProviderError> {
        let effort = request.model.effort.filter(|_| !self.thinks_not.load(Ordering::Relaxed));
        let opened = match self.post(&request, effort).await {
            Err(error) if effort.is_some() && failure::is_about(&error, failure::THINKING) => {
                self.thinks_not.store(true, Ordering::Relaxed);
                tracing::info!(
                    gen_ai.request.model = self.origin.model,
                    "the model does not think: effort is left out"
                );
                self.post(&request, None).await?
            }
            answered => answered?,
        };
        Ok(answer::stream(&self.origin, opened, reader()))
    }
}

/// What reads the bytes of an answer.
fn reader() -> (Ndjson, impl answer::Fold) {
    (Ndjson::default(), Fold::default())
}
