//! `[llm]` of the configuration: the vendors' own sections, further providers by name, and their order.

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::SecretString;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::files::ModelConfigs;
use super::http::Patience;
use super::{Vendor, VendorConfig};
use crate::agent::ports::llm::Takes;
use crate::aws::Variables;
use crate::chat::message::ModelOrigin;

/// `[llm]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LlmConfig {
    /// `auto`, a provider's name, `demo` or `none`. `auto` is the first vendor with a key, gemini first, else the demo.
    pub provider: String,
    /// The models that are tried next, in order, when one fails before its first token: `provider` or `provider:model`.
    pub fallbacks: Vec<String>,
    /// The limit of one answer, in tokens; 0: the model's own, or the documented one where the vendor demands a limit.
    pub max_tokens: u32,
    /// Seconds until an answer begins; 0 is no limit. A local server may load its model first, which takes minutes.
    pub first_byte_timeout_s: u64,
    /// Seconds between two pieces of an answer's bytes, comments and pings included; 0 is no limit.
    pub idle_timeout_s: u64,
    /// Seconds between two pieces of the answer itself, however many pings come; 0 is no limit.
    pub progress_timeout_s: u64,
    /// When a failed call is made again.
    pub retry: Retry,
    /// When a model that keeps failing is left alone.
    pub breaker: Breaker,
    /// The vendors' own sections, which serde does not read: see [`Vendor::read`].
    #[serde(skip)]
    pub vendors: BTreeMap<Vendor, VendorConfig>,
    /// More providers, by a name of the operator's choice, read like those. Their `vendor` says how.
    #[serde(skip)]
    pub providers: BTreeMap<String, VendorConfig>,
    /// `[models]`: what single models can be given. Read by itself, as their names have dots in them.
    #[serde(skip)]
    pub models: ModelConfigs,
    /// Who this server is to AWS.
    #[serde(skip)]
    pub aws: Variables,
}

/// `[llm.retry]`: only calls that failed before their first token are made again.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// Calls of one model for one turn, the first included.
    pub attempts: u32,
    /// Milliseconds that the first wait may last; each later one may last twice as long. The wait is a random part of it.
    pub base_ms: u64,
    /// Seconds that a wait may last, also when the vendor asks for it: the user is waiting too.
    pub max_wait_s: u64,
    /// How many calls of a model may be repetitions, in per cent of its calls of the last ten seconds.
    pub budget_percent: u32,
}

/// `[llm.breaker]`: one per provider and model.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Breaker {
    /// Failures in a row after which a model gets no calls for a while; 0: no such limit.
    pub failures: u32,
    /// Seconds until the next call, which shows whether it answers again.
    pub open_s: u64,
    /// The same where a request has no model behind it: its user would only wait.
    pub last_open_s: u64,
}

/// The name of the provider that needs no settings: the demo model, which the composition root brings.
pub const DEMO: &str = "demo";

/// The provider that stands for none: a server without a model, until an editor adds one.
pub const NO_MODEL: &str = "none";

/// The demo model; `None` in a server that is built without it.
pub fn demo_model() -> Option<ModelOrigin> {
    cfg!(feature = "demo").then(|| ModelOrigin { provider: DEMO.to_owned(), model: "rules-1".to_owned() })
}

/// A model's name that names no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownModel {
    /// There is no such provider.
    #[error("{0:?} is not a provider; there are {1}")]
    Provider(String, String),
    /// The provider has no model of its own and none is given.
    #[error("{0:?} names no model{own}", own = no_model_of_its_own(.0))]
    Model(String),
    /// It is the demo model's, which is not built in.
    #[error("is {DEMO:?}, and this server is built without the feature {DEMO}")]
    NoDemo,
}

fn no_model_of_its_own(text: &str) -> String {
    match text.contains(':') {
        true => String::new(),
        false => format!(", and {}.model is empty", LlmConfig::section_path(text)),
    }
}

impl Default for LlmConfig {
    fn default() -> Self {
        Self {
            provider: "auto".to_owned(),
            fallbacks: Vec::new(),
            max_tokens: 0,
            first_byte_timeout_s: 300,
            idle_timeout_s: 300,
            progress_timeout_s: 300,
            retry: Retry::default(),
            breaker: Breaker::default(),
            vendors: Vendor::ALL.into_iter().map(|vendor| (vendor, vendor.defaults())).collect(),
            providers: BTreeMap::new(),
            models: ModelConfigs::default(),
            aws: Variables::default(),
        }
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 3, base_ms: 500, max_wait_s: 20, budget_percent: 20 }
    }
}

impl Default for Breaker {
    fn default() -> Self {
        Self { failures: 5, open_s: 30, last_open_s: 2 }
    }
}

impl LlmConfig {
    /// The provider that answers by default; `None` is the demo model.
    pub fn default_provider(&self) -> Option<&str> {
        match self.provider.as_str() {
            "auto" => self.vendors.iter().find(|(_, section)| section.has_key()).map(|(vendor, _)| vendor.name()),
            DEMO | NO_MODEL => None,
            name => Some(name),
        }
    }

    /// A section that says where a model is, where the demo model answers all the same; for the operator.
    pub fn weakness(&self) -> Option<String> {
        if self.provider != "auto" || self.default_provider().is_some() {
            return None;
        }
        let is_own =
            |vendor: &Vendor, section: &VendorConfig| section.common.base_url != vendor.defaults().common.base_url;
        let (vendor, _) = self.vendors.iter().find(|(vendor, section)| is_own(vendor, section))?;
        let name = vendor.name();
        Some(format!(
            "{} is filled in, and without a key there llm.provider \"auto\" does not choose it: the demo model answers. Set \
             llm.provider to {name:?}",
            Self::section_path(name)
        ))
    }

    /// Whether no model answers by the configuration's own choice.
    pub fn has_none(&self) -> bool {
        self.provider == NO_MODEL
    }

    /// What a model can be given.
    pub fn takes(&self, origin: &ModelOrigin) -> Takes {
        let section = self.section(&origin.provider);
        section.map(|section| section.takes(&origin.model, self.models.of(origin))).unwrap_or_default()
    }

    /// The section of the provider called `name`.
    pub fn section(&self, name: &str) -> Option<&VendorConfig> {
        match Vendor::parse(name) {
            Some(vendor) => self.vendors.get(&vendor),
            None => self.providers.get(name),
        }
    }

    /// The section of the configuration of the provider called `name`: `llm.claude`, `llm.providers.groq`.
    pub fn section_path(name: &str) -> String {
        match Vendor::parse(name) {
            Some(_) => format!("llm.{name}"),
            None => format!("llm.providers.{name}"),
        }
    }

    /// The model that `text` names: `provider` for that provider's own model, `provider:model` for another one of its.
    ///
    /// # Errors
    /// When there is no such provider, or it has no model.
    pub fn model(&self, text: &str) -> Result<ModelOrigin, UnknownModel> {
        let (provider, model) = match text.split_once(':') {
            Some((provider, model)) => (provider.trim(), Some(model.trim())),
            None => (text.trim(), None),
        };
        let section = self.section(provider).ok_or_else(|| {
            let mut names: Vec<&str> = Vendor::ALL.into_iter().map(Vendor::name).collect();
            names.extend(self.providers.keys().map(String::as_str));
            UnknownModel::Provider(provider.to_owned(), names.join(", "))
        })?;
        let model = section.vendor().plain_model(model.unwrap_or_else(|| section.common.model.trim()));
        if model.is_empty() {
            return Err(UnknownModel::Model(text.to_owned()));
        }
        Ok(ModelOrigin { provider: provider.to_owned(), model: model.to_owned() })
    }

    /// The same; `demo` is the demo model.
    ///
    /// # Errors
    /// As [`Self::model`], and when the demo model is not built in.
    pub fn model_or_demo(&self, text: &str) -> Result<ModelOrigin, UnknownModel> {
        match text.trim() {
            DEMO => demo_model().ok_or(UnknownModel::NoDemo),
            name => self.model(name),
        }
    }

    /// Why no model answers for a profile that names none; `None` where one does.
    pub fn no_model_reason(&self) -> Option<String> {
        if self.default_provider().is_some() || self.has_none() || demo_model().is_some() {
            return None;
        }
        let keys: Vec<&str> = Vendor::ALL.into_iter().filter_map(Vendor::usual_key).collect();
        let advice = format!("name a provider, or set the key of one ({})", keys.join(", "));
        Some(match self.provider.as_str() {
            DEMO => format!("{}: {advice}", UnknownModel::NoDemo),
            _ => format!("finds no model, and this server is built without the feature {DEMO}: {advice}"),
        })
    }

    /// The limit of one answer in tokens, where neither profile nor request sets one.
    pub fn answer_tokens(&self) -> Option<u32> {
        Some(self.max_tokens).filter(|tokens| *tokens != 0)
    }

    pub(super) fn patience(&self) -> Patience {
        let seconds = |s: u64| (s > 0).then(|| Duration::from_secs(s));
        Patience {
            first_byte: seconds(self.first_byte_timeout_s),
            idle: seconds(self.idle_timeout_s),
            progress: seconds(self.progress_timeout_s),
        }
    }
}

/// Reads a key from the configuration straight into its redacting type; what is no string is not quoted in the error.
pub(super) fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretString, D::Error> {
    String::deserialize(deserializer).map(SecretString::from).map_err(|_| D::Error::custom("must be a string"))
}
