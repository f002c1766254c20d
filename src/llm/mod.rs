//! Language model providers over HTTP streaming: one folder per vendor, each a call (`mod`), a typed wire (`wire`) and a
//! pure fold (`fold`), of the same shape line by line; and the router, which decides who takes a turn.
//!
//! ```text
//! ChatRequest --router--> one model's provider                        again, or the next model, until the first token
//!   --wire--> JSON --http--> bytes --sse | ndjson--> frames --fold--> StreamEvent
//! ```
//!
//! **Invariant:** only a `wire` knows its vendor's field names; nothing but the HTTP client is shared between requests.

mod answer;
mod breaker;
pub mod claude;
mod config;
pub mod embeddings;
mod failure;
mod few;
mod form;
pub mod gemini;
mod google;
mod history;
mod http;
mod lenient;
mod ndjson;
pub mod ollama;
pub mod openai;
pub mod recorded;
mod retry;
mod router;
mod schema;
mod sse;
mod think;
mod watch;

use std::sync::Arc;

use self::http::Net;
use crate::agent::ports::llm::LlmProvider;
use crate::chat::message::ModelOrigin;

pub use self::config::{Breaker, Config, Provider, Retry, Section, UnknownModel};
pub use self::http::ConnectError;
pub use self::router::Router;

/// The vendors, by the wire they speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    /// `POST {base}/v1beta/models/{model}:streamGenerateContent`.
    Gemini,
    /// `POST {base}/v1/messages`.
    Claude,
    /// `POST {base}/api/chat`.
    Ollama,
    /// `POST {base}/chat/completions`.
    OpenAi,
}

impl Vendor {
    /// All of them, in the order that `auto` tries them.
    pub const ALL: [Self; 4] = [Self::Gemini, Self::Claude, Self::OpenAi, Self::Ollama];

    /// The vendor called `name` in the configuration.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|vendor| vendor.name() == name)
    }

    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gemini => "gemini",
            Self::Claude => "claude",
            Self::Ollama => "ollama",
            Self::OpenAi => "openai",
        }
    }

    /// Whether nothing can be asked without a key; local servers need none.
    pub fn needs_key(self) -> bool {
        match self {
            Self::Gemini | Self::Claude => true,
            Self::Ollama | Self::OpenAi => false,
        }
    }
}

/// What every provider of one model is set up with.
struct Setup<'a> {
    /// Where its settings are, for errors.
    section: &'a str,
    origin: Arc<ModelOrigin>,
    net: &'a Net,
}

/// The provider of one model, as `config` describes it. Nothing is sent before the first request.
///
/// # Errors
/// When there is no such provider, or an address or a key cannot be used.
pub fn connect(origin: &ModelOrigin, config: &Config) -> Result<Arc<dyn LlmProvider>, ConnectError> {
    connect_with(origin, config, &Net::new(config.patience())?)
}

fn connect_with(origin: &ModelOrigin, config: &Config, net: &Net) -> Result<Arc<dyn LlmProvider>, ConnectError> {
    let section = config.section(&origin.provider);
    let section = section.ok_or_else(|| ConnectError::Provider { name: origin.provider.clone() })?;
    let setup = Setup { section: &Config::section_path(&origin.provider), origin: Arc::new(origin.clone()), net };
    Ok(match section {
        Section::Gemini(config) => Arc::new(gemini::Gemini::new(setup, config)?),
        Section::Claude(config) => Arc::new(claude::Claude::new(setup, config)?),
        Section::Ollama(config) => Arc::new(ollama::Ollama::new(setup, config)?),
        Section::OpenAi(config) => Arc::new(openai::OpenAi::new(setup, config)?),
    })
}
