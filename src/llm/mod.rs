//! Language model providers over HTTP streaming: one folder per vendor, each a call (`mod`), a typed wire (`wire`) and a
//! pure fold (`fold`), of the same shape line by line; and the router, which decides who takes a turn.
//!
//! ```text
//! ChatRequest --router--> one model's provider                        again, or the next model, until the first token
//!   --wire--> JSON --http--> bytes --sse | ndjson--> frames --fold--> StreamEvent
//! ```
//!
//! **Invariant:** only a `wire` knows its vendor's field names; requests share the HTTP clients and credentials, and nothing else.

mod bedrock;
mod claude;
mod gemini;
mod ollama;
mod openai;
mod vertex;

mod answer;
mod anthropic;
mod breaker;
mod config;
pub mod embeddings;
mod failure;
mod few;
mod files;
mod form;
mod google;
mod history;
mod http;
mod lenient;
mod ndjson;
pub mod recorded;
mod retry;
mod router;
mod schema;
pub mod settings;
mod sse;
mod think;
mod vendor;
mod watch;

use std::sync::Arc;

use self::http::Net;
use self::vendor::Facts;
use crate::agent::ports::llm::LlmProvider;
use crate::aws::Variables;
use crate::chat::message::ModelOrigin;

pub use self::config::{Breaker, DEMO, LlmConfig, NO_MODEL, Retry, UnknownModel, demo_model};
pub use self::files::{Input, ModelConfig, ModelConfigs};
pub use self::http::ConnectError;
pub use self::router::Router;
pub use self::vendor::{Common, Mistake, Refusal, UsualSetting, VendorConfig, Wire};

/// The vendors, by the wire they speak, in the order that `auto` tries them. This enum, `ALL` and `facts` are the table of
/// vendors: all else goes through it. What is known of a vendor is in its folder; words of errors that several vendors share are
/// in `failure/kinds.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Vendor {
    /// `POST {base}/v1beta/models/{model}:streamGenerateContent`.
    Gemini,
    /// `POST {base}/v1/messages`.
    Claude,
    /// `POST {base}/chat/completions` or `POST {base}/responses`.
    OpenAi,
    /// `POST {base}/api/chat`.
    Ollama,
    /// `POST {base}/model/{model}/converse-stream`.
    Bedrock,
    /// `POST {base}/v1/projects/{project}/locations/{location}/publishers/{publisher}/models/{model}:{method}`.
    Vertex,
}

impl Vendor {
    /// All of them, in their order.
    pub const ALL: [Self; 6] = [Self::Gemini, Self::Claude, Self::OpenAi, Self::Ollama, Self::Bedrock, Self::Vertex];

    /// What its folder says of it.
    fn facts(self) -> &'static Facts {
        match self {
            Self::Gemini => &gemini::FACTS,
            Self::Claude => &claude::FACTS,
            Self::OpenAi => &openai::FACTS,
            Self::Ollama => &ollama::FACTS,
            Self::Bedrock => &bedrock::FACTS,
            Self::Vertex => &vertex::FACTS,
        }
    }
}

/// What every provider of one model is set up with.
struct Setup<'a> {
    /// The section of its settings, for errors.
    section: &'a str,
    origin: Arc<ModelOrigin>,
    net: &'a Net,
    /// Who this server is to AWS.
    aws: &'a Variables,
}

/// The provider of one model, as `config` describes it. Nothing is sent before the first request.
///
/// # Errors
/// When there is no such provider, or an address or a key cannot be used.
pub fn connect(origin: &ModelOrigin, config: &LlmConfig) -> Result<Arc<dyn LlmProvider>, ConnectError> {
    connect_with(origin, config, &Net::new(config.patience())?)
}

fn connect_with(origin: &ModelOrigin, config: &LlmConfig, net: &Net) -> Result<Arc<dyn LlmProvider>, ConnectError> {
    let section = config.section(&origin.provider);
    let section = section.ok_or_else(|| ConnectError::Provider { name: origin.provider.clone() })?;
    let path = LlmConfig::section_path(&origin.provider);
    section.connect(Setup { section: &path, origin: Arc::new(origin.clone()), net, aws: &config.aws })
}
