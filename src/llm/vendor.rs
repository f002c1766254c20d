//! What a vendor's folder says of itself, and the settings of a provider: those that all have, and those that only its
//! vendor knows.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::files::{Input, ModelConfig, Sight};
use super::http::ConnectError;
use super::{Setup, Vendor};
use crate::agent::ports::llm::{LlmProvider, ProviderError, Takes};
use crate::chat::stream::StreamEvent;

/// A setting of a wrong type, with the path to it.
pub type Mistake = serde_path_to_error::Error<toml::de::Error>;

/// What a vendor's folder says of itself.
pub(super) struct Facts {
    /// Its name in the configuration, which is the name of its folder too.
    pub(super) name: &'static str,
    /// What the conventions of telemetry call it.
    pub(super) telemetry_name: &'static str,
    /// Whether every call needs a key; local servers need none.
    pub(super) needs_key: bool,
    /// The variable that usually holds its key.
    pub(super) usual_key: Option<&'static str>,
    /// Others of its settings that usual variables fill.
    pub(super) usual_settings: &'static [UsualSetting],
    /// See [`Vendor::is_spoken_by_others`].
    pub(super) is_spoken_by_others: bool,
    /// What the model of a name can be given.
    pub(super) sight: fn(&str) -> &'static Sight,
    /// What its lists put before the names of models, and its addresses too.
    pub(super) model_prefix: &'static str,
    /// The default address of its API.
    pub(super) base_url: &'static str,
    /// Its model by default.
    pub(super) model: &'static str,
    /// The kinds of providers that editors know it by: its own first, and last whoever else speaks its wire.
    pub(super) kinds: &'static [KindFacts],
    /// Its own settings by default: [`defaults`] of their type.
    pub(super) defaults: fn() -> Arc<dyn Own>,
    /// Its own settings as a table has them: [`read`] of their type.
    pub(super) read: fn(Table) -> Result<Arc<dyn Own>, Mistake>,
    /// The wires it is spoken to on; the first has its name.
    pub(super) wires: &'static [Wire],
}

/// A setting of a vendor's that is found where its users keep it anyway, if nothing nearer sets it.
#[derive(Debug)]
pub struct UsualSetting {
    /// Its key in the section of the vendor, and of each provider that speaks its wire.
    pub key: &'static str,
    /// The variable that usually holds it.
    pub variable: &'static str,
    /// The file in the user's home whose path it is otherwise, where there is that file.
    pub file_at_home: Option<&'static str>,
}

/// A vendor's wire, as far as answers are concerned.
#[derive(Debug)]
pub struct Wire {
    /// Its name, which is the name of its folder.
    pub name: &'static str,
    /// What its reader makes of the bytes of an answer; see [`super::recorded`].
    pub(super) recorded: fn(Vec<Bytes>) -> Vec<Result<StreamEvent, ProviderError>>,
}

impl From<Vendor> for &'static Wire {
    fn from(vendor: Vendor) -> Self {
        vendor.wire()
    }
}

/// A kind of provider, as AgentSmithy's settings name it.
#[derive(Debug)]
pub(super) struct KindFacts {
    /// Its name.
    pub(super) name: &'static str,
    /// Whether nobody answers without a key.
    pub(super) needs_key: bool,
    /// The usual address of its API.
    pub(super) usual: Usual,
}

/// Where a kind is usually spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usual {
    /// Where its vendor has it.
    Vendor,
    /// There.
    At(&'static str),
    /// Everywhere: an address is needed.
    Nowhere,
}

/// The settings that only one vendor knows, and what can be done with them.
pub(super) trait Own: Debug + Send + Sync {
    /// The provider of one model.
    ///
    /// # Errors
    /// When an address, a key or a header cannot be used.
    fn connect(&self, setup: Setup<'_>, common: &Common) -> Result<Arc<dyn LlmProvider>, ConnectError>;

    /// Why a temperature is refused, where it is refused whatever the model.
    fn refuses_temperature(&self) -> Option<Refusal> {
        None
    }

    /// Whether they have credentials beside the key that all have, so that none is needed.
    fn has_credentials(&self) -> bool {
        false
    }

    /// Whether what they need of this machine is there, such as credentials. Looked at when a server starts, and soon
    /// known; no model is asked.
    ///
    /// The error says what is not there.
    fn ready<'a>(&'a self, _section: &'a str, _common: &'a Common) -> BoxFuture<'a, Result<(), ConnectError>> {
        ready(Ok(())).boxed()
    }
}

/// A vendor's own settings where nothing is set.
pub(super) fn defaults<T: Own + Default + 'static>() -> Arc<dyn Own> {
    Arc::new(T::default())
}

/// A vendor's own settings, without those that all have.
///
/// # Errors
/// For the first one that is unknown or of a wrong type.
pub(super) fn read<T: Own + DeserializeOwned + 'static>(section: Table) -> Result<Arc<dyn Own>, Mistake> {
    Ok(Arc::new(serde_path_to_error::deserialize::<_, T>(Value::Table(section))?))
}

/// Why a server refuses a field of a request, for its operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub reason: String,
    /// The key of the provider's section that makes it so.
    pub key: &'static str,
}

/// The settings that each provider has.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Common {
    /// The address of the API; the vendor's paths are appended to it.
    pub base_url: String,
    /// The provider's own model.
    pub model: String,
    /// The key; empty is none.
    #[serde(deserialize_with = "super::config::secret")]
    pub api_key: SecretString,
    /// What its models can be given; where nothing is set, what is known of them.
    #[serde(default)]
    pub input: Vec<Input>,
}

/// The settings of one provider.
#[derive(Debug, Clone)]
pub struct VendorConfig {
    vendor: Vendor,
    /// What each provider has.
    pub common: Common,
    /// Of the vendor above, since only [`Vendor::defaults`] and [`Vendor::read`] make it.
    own: Arc<dyn Own>,
}

impl VendorConfig {
    /// The vendor whose wire it speaks.
    pub fn vendor(&self) -> Vendor {
        self.vendor
    }

    /// Whether a key is given.
    pub fn has_key(&self) -> bool {
        !self.common.api_key.expose_secret().trim().is_empty()
    }

    /// Whether every call needs a key that is not given.
    pub fn lacks_key(&self) -> bool {
        self.vendor.needs_key() && !self.has_credentials()
    }

    /// Why a temperature is refused there, where it is refused whatever the model.
    pub fn refuses_temperature(&self) -> Option<Refusal> {
        self.own.refuses_temperature()
    }

    /// Whether it has credentials: the key, or what its vendor has beside that.
    pub(super) fn has_credentials(&self) -> bool {
        self.has_key() || self.own.has_credentials()
    }

    /// What the model of that name can be given; `said` is what is said of it alone.
    pub fn takes(&self, model: &str, said: Option<&ModelConfig>) -> Takes {
        (self.vendor.facts().sight)(model).takes(model, &self.common.input, said)
    }

    /// Whether what it needs of this machine is there.
    ///
    /// # Errors
    /// For what is not.
    pub(super) async fn ready(&self, section: &str) -> Result<(), ConnectError> {
        self.own.ready(section, &self.common).await
    }

    /// The provider of one model.
    ///
    /// # Errors
    /// When an address, a key or a header cannot be used.
    pub(super) fn connect(&self, setup: Setup<'_>) -> Result<Arc<dyn LlmProvider>, ConnectError> {
        self.own.connect(setup, &self.common)
    }
}

impl Vendor {
    /// The vendor called `name` in the configuration.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|vendor| vendor.name() == name)
    }

    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// What the conventions of telemetry call it.
    pub fn telemetry_name(self) -> &'static str {
        self.facts().telemetry_name
    }

    /// The wires it is spoken to on, by names of their own; the first has the vendor's.
    pub fn wires(self) -> &'static [Wire] {
        self.facts().wires
    }

    /// The wire that has its name.
    pub fn wire(self) -> &'static Wire {
        &self.wires()[0]
    }

    /// Whether every call needs a key; local servers need none.
    pub fn needs_key(self) -> bool {
        self.facts().needs_key
    }

    /// The variable that usually holds its key.
    pub fn usual_key(self) -> Option<&'static str> {
        self.facts().usual_key
    }

    /// The other settings that usual variables fill.
    pub fn usual_settings(self) -> &'static [UsualSetting] {
        self.facts().usual_settings
    }

    /// Whether many servers of others speak its wire. Then a provider of the operator's own has no address and no model
    /// by default: the vendor's are not those of a server that only speaks its language, and a key must not go to the
    /// wrong one by an omission. And an address may end with a query, as Azure names its API version.
    pub fn is_spoken_by_others(self) -> bool {
        self.facts().is_spoken_by_others
    }

    /// The model called `name` as its addresses have it.
    pub(super) fn plain_model(self, name: &str) -> &str {
        name.strip_prefix(self.facts().model_prefix).unwrap_or(name)
    }

    /// Its settings where nothing is set.
    pub fn defaults(self) -> VendorConfig {
        let Facts { base_url, model, defaults, .. } = self.facts();
        let common = Common {
            base_url: (*base_url).to_owned(),
            model: (*model).to_owned(),
            api_key: SecretString::default(),
            input: Vec::new(),
        };
        VendorConfig { vendor: self, common, own: defaults() }
    }

    /// Its settings as `section` has them, flat; what it does not say is as in [`Self::defaults`].
    ///
    /// # Errors
    /// For the first setting that is unknown or of a wrong type.
    pub fn read(self, mut section: Table) -> Result<VendorConfig, Mistake> {
        let Facts { base_url, model, read, .. } = self.facts();
        let common = [("base_url", *base_url), ("model", *model), ("api_key", "")].map(|(key, default)| {
            let value = section.remove(key).unwrap_or_else(|| Value::String(default.to_owned()));
            (key.to_owned(), value)
        });
        let mut common = Table::from_iter(common);
        common.extend(section.remove("input").map(|input| ("input".to_owned(), input)));
        let common = serde_path_to_error::deserialize(Value::Table(common))?;
        Ok(VendorConfig { vendor: self, common, own: read(section)? })
    }
}
