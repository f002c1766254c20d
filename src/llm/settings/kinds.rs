//! The kinds of providers that an editor can add: a wire, and where it is usually spoken.

use crate::agent::ports::models::ProviderKind;
use crate::llm::Vendor;

/// A kind of provider.
#[derive(Debug)]
pub(super) struct Kind {
    /// Its name, as AgentSmithy's settings have it.
    pub(super) name: &'static str,
    /// The wire.
    pub(super) vendor: Vendor,
    /// The usual address of its API.
    usual: Usual,
    /// Whether nobody answers without a key.
    needs_key: bool,
}

/// Where a kind is usually spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Usual {
    /// Where its vendor has it.
    Vendor,
    /// There.
    At(&'static str),
    /// Everywhere: an address is needed.
    Nowhere,
}

/// All kinds. Addresses of xAI and DeepSeek: docs.x.ai, api-docs.deepseek.com.
pub(super) const KINDS: [Kind; 7] = [
    Kind { name: "openai", vendor: Vendor::OpenAi, usual: Usual::Vendor, needs_key: true },
    Kind { name: "ollama", vendor: Vendor::Ollama, usual: Usual::Vendor, needs_key: false },
    Kind { name: "anthropic", vendor: Vendor::Claude, usual: Usual::Vendor, needs_key: true },
    Kind { name: "gemini", vendor: Vendor::Gemini, usual: Usual::Vendor, needs_key: true },
    Kind { name: "xai", vendor: Vendor::OpenAi, usual: Usual::At("https://api.x.ai/v1"), needs_key: true },
    Kind { name: "deepseek", vendor: Vendor::OpenAi, usual: Usual::At("https://api.deepseek.com/v1"), needs_key: true },
    Kind { name: OTHER, vendor: Vendor::OpenAi, usual: Usual::Nowhere, needs_key: false },
];

/// Whoever speaks OpenAI's wire.
const OTHER: &str = "other";

impl Kind {
    /// The kind called `name`.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// The kind of a provider of the configuration, by its name and its wire.
    pub(super) fn of(name: &str, vendor: Vendor) -> &'static str {
        match vendor {
            Vendor::OpenAi if Vendor::parse(name).is_none() => OTHER,
            vendor => KINDS.iter().find(|kind| kind.vendor == vendor).map_or(OTHER, |kind| kind.name),
        }
    }

    /// As it is shown.
    pub(super) fn shown(&self) -> ProviderKind {
        ProviderKind { name: self.name, needs_key: self.needs_key, needs_url: self.usual == Usual::Nowhere }
    }

    /// The usual address; empty where there is none.
    pub(super) fn usual_url(&self) -> String {
        match self.usual {
            Usual::Vendor => self.vendor.defaults().common.base_url,
            Usual::At(url) => url.to_owned(),
            Usual::Nowhere => String::new(),
        }
    }
}
