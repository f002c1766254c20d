//! Language model providers over HTTP streaming: one folder per vendor, each a call (`mod`), a typed wire (`wire`) and a
//! pure fold (`fold`), of the same shape line by line.
//!
//! ```text
//! ChatRequest --wire--> JSON --http--> bytes --sse | ndjson--> frames --fold--> StreamEvent
//! ```
//!
//! **Invariant:** only a `wire` knows its vendor's field names; nothing but the HTTP client is shared between requests.

mod answer;
pub mod claude;
mod failure;
pub mod gemini;
mod history;
mod http;
mod ndjson;
pub mod ollama;
pub mod openai;
mod sse;

use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer};

use self::http::Patience;
use crate::agent::ports::llm::LlmProvider;
use crate::chat::message::ModelOrigin;

pub use self::http::ConnectError;

/// `[llm]` of the configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `auto`, a vendor's name or `demo`. `auto` is the first vendor with a key, gemini first, else the demo.
    pub provider: String,
    /// Vendors to try, in order, when the provider fails before its first byte.
    pub fallbacks: Vec<String>,
    /// The limit of one answer, in tokens.
    pub max_tokens: u32,
    /// Seconds between two pieces of an answer; 0 is no limit.
    pub idle_timeout_s: u64,
    /// Seconds until an answer begins; 0 is no limit. A local server may load its model first, which takes minutes.
    pub first_byte_timeout_s: u64,
    /// Google's Gemini.
    pub gemini: gemini::Config,
    /// Anthropic's Claude.
    pub claude: claude::Config,
    /// Ollama's own protocol.
    pub ollama: ollama::Config,
    /// OpenAI and all that speak its chat completions.
    pub openai: openai::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            provider: "auto".to_owned(),
            fallbacks: Vec::new(),
            max_tokens: 4096,
            idle_timeout_s: 30,
            first_byte_timeout_s: 300,
            gemini: gemini::Config::default(),
            claude: claude::Config::default(),
            ollama: ollama::Config::default(),
            openai: openai::Config::default(),
        }
    }
}

impl Config {
    /// The vendor that `provider` asks for; `None` is the demo model.
    pub fn vendor(&self) -> Option<Vendor> {
        match self.provider.as_str() {
            "auto" => Vendor::ALL.into_iter().find(|vendor| self.section(*vendor).has_key),
            name => Vendor::parse(name),
        }
    }

    /// The section of one vendor.
    pub fn section(&self, vendor: Vendor) -> Section<'_> {
        let (base_url, model, api_key) = match vendor {
            Vendor::Gemini => (&self.gemini.base_url, &self.gemini.model, &self.gemini.api_key),
            Vendor::Claude => (&self.claude.base_url, &self.claude.model, &self.claude.api_key),
            Vendor::Ollama => (&self.ollama.base_url, &self.ollama.model, &self.ollama.api_key),
            Vendor::OpenAi => (&self.openai.base_url, &self.openai.model, &self.openai.api_key),
        };
        Section { base_url, model, has_key: !api_key.expose_secret().trim().is_empty() }
    }

    fn patience(&self) -> Patience {
        let seconds = |s: u64| (s > 0).then(|| Duration::from_secs(s));
        Patience { first_byte: seconds(self.first_byte_timeout_s), idle: seconds(self.idle_timeout_s) }
    }
}

/// What the vendors' sections have in common.
#[derive(Debug, Clone, Copy)]
pub struct Section<'a> {
    /// Where the vendor's API is.
    pub base_url: &'a str,
    /// The model.
    pub model: &'a str,
    /// Whether a key is given.
    pub has_key: bool,
}

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
            Self::Gemini => gemini::NAME,
            Self::Claude => claude::NAME,
            Self::Ollama => ollama::NAME,
            Self::OpenAi => openai::NAME,
        }
    }
}

impl Vendor {
    /// Whether nothing can be asked without a key; local servers need none.
    pub fn needs_key(self) -> bool {
        match self {
            Self::Gemini | Self::Claude => true,
            Self::Ollama | Self::OpenAi => false,
        }
    }
}

/// The provider of `vendor`, as `config` describes it. Nothing is sent before the first request.
///
/// # Errors
/// When an address, a model's name or a key cannot be used.
pub fn connect(vendor: Vendor, config: &Config) -> Result<Arc<dyn LlmProvider>, ConnectError> {
    let patience = config.patience();
    Ok(match vendor {
        Vendor::Gemini => Arc::new(gemini::Gemini::new(&config.gemini, patience)?),
        Vendor::Claude => Arc::new(claude::Claude::new(&config.claude, patience)?),
        Vendor::Ollama => Arc::new(ollama::Ollama::new(&config.ollama, patience)?),
        Vendor::OpenAi => Arc::new(openai::OpenAi::new(&config.openai, patience)?),
    })
}

/// Reads a key from the configuration straight into its redacting type.
fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretString, D::Error> {
    String::deserialize(deserializer).map(SecretString::from)
}

/// The origin of every answer of `model`.
fn origin(provider: &'static str, model: &str) -> Result<Arc<ModelOrigin>, ConnectError> {
    if model.trim().is_empty() {
        return Err(ConnectError::Model { provider });
    }
    Ok(Arc::new(ModelOrigin { provider: provider.to_owned(), model: model.trim().to_owned() }))
}
