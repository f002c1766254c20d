//! The port of the models as they are at run time: what an editor shows of their settings and may change, and which one a
//! user has chosen.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use secrecy::SecretString;
use serde_json::{Map, Value};

use crate::chat::caller::Owner;
use crate::chat::message::ModelOrigin;

/// The providers, and the models that can be chosen of them.
#[derive(Debug, Clone, Default)]
pub struct ModelSettings {
    /// By name.
    pub providers: BTreeMap<String, Provider>,
    /// By name.
    pub workloads: BTreeMap<String, Workload>,
    /// The workload of users who have chosen none; `None` where no model can be asked.
    pub default: Option<String>,
    /// What kinds of providers there are.
    pub kinds: Vec<ProviderKind>,
    /// The providers that cannot be asked, by name, each with the reason in words that begin with its place.
    pub unusable: BTreeMap<String, String>,
}

/// A kind of provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderKind {
    /// Its name.
    pub name: &'static str,
    /// Whether nobody answers without a key.
    pub needs_key: bool,
    /// Whether there is no usual address.
    pub needs_url: bool,
}

/// The place of the choice of a model, in settings.
pub const CHOICE: &str = "models.agents.universal.workload";

impl ModelSettings {
    /// The kind called `name`.
    pub fn kind(&self, name: &str) -> Option<&ProviderKind> {
        self.kinds.iter().find(|kind| kind.name == name)
    }

    /// Why `workload` cannot be asked, each in words that begin with a place; empty where it can.
    pub fn missing(&self, workload: Option<&str>) -> Vec<String> {
        let Some(name) = workload else {
            return vec![format!("{CHOICE} is not set: add a provider with its key, and a workload")];
        };
        let Some(workload) = self.workloads.get(name) else {
            return vec![format!("{CHOICE}: there is no workload {name:?}")];
        };
        let members = [("provider", &workload.provider), ("model", &workload.model)];
        let unset = members.iter().filter(|(_, text)| text.is_empty());
        let mut missing: Vec<String> =
            unset.map(|(member, _)| format!("workloads.{name}.{member} is not set")).collect();
        let Some(provider) = self.providers.get(&workload.provider) else { return missing };
        let Some(kind) = self.kind(&provider.kind) else { return missing };
        if kind.needs_key && matches!(provider.key, Key::None) {
            missing.push(format!("providers.{}.api_key is not set", workload.provider));
        }
        if kind.needs_url && provider.base_url.is_empty() {
            missing.push(format!("providers.{}.base_url is not set", workload.provider));
        }
        if missing.is_empty() {
            missing.extend(self.unusable.get(&workload.provider).cloned());
        }
        missing
    }
}

/// Whoever has models.
#[derive(Debug, Clone)]
pub struct Provider {
    /// Its wire and usual address: one of [`ModelSettings::kinds`].
    pub kind: String,
    /// The address of its API; empty: the usual one.
    pub base_url: String,
    /// Its key.
    pub key: Key,
    /// What else editors keep with it.
    pub options: Map<String, Value>,
}

/// The key of a provider.
#[derive(Debug, Clone)]
pub enum Key {
    /// It has none.
    None,
    /// The one that the provider of this name has.
    Of(String),
    /// This one, from now on.
    New(SecretString),
}

/// A model under a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// The provider's name; empty: not chosen yet.
    pub provider: String,
    /// The provider's own name of the model.
    pub model: String,
    /// What it is for.
    pub kind: WorkloadKind,
    /// `temperature` and `max_tokens` of its answers, and what else editors keep with it.
    pub options: Map<String, Value>,
}

/// What a model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkloadKind {
    /// It answers.
    Chat,
    /// It gives texts their meanings.
    Embeddings,
}

impl WorkloadKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Chat, Self::Embeddings];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Embeddings => "embeddings",
        }
    }
}

/// Why settings were not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotTaken {
    /// They are wrong: each mistake in words, which begin with its place.
    Mistakes(Vec<String>),
    /// Somebody else has changed them meanwhile.
    Changed,
    /// They could not be kept; the cause is in the log.
    NotKept,
}

/// The choice of a user could not be read or kept; the cause is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the choice of a model was not read or kept")]
pub struct ChoiceLost;

/// Shows and changes them.
#[async_trait]
pub trait ModelDesk: Send + Sync {
    /// The settings as they are; their keys are [`Key::Of`] or none.
    fn settings(&self) -> Arc<ModelSettings>;

    /// Takes `after` in the place of `before`, which is what [`Self::settings`] has given. The next call of a model goes
    /// by it, after a restart too.
    ///
    /// # Errors
    /// See [`NotTaken`]: nothing has changed then.
    async fn replace(&self, before: &Arc<ModelSettings>, after: ModelSettings) -> Result<(), NotTaken>;

    /// The workload that a user has chosen; it may be gone meanwhile.
    ///
    /// # Errors
    /// When it cannot be read.
    async fn chosen(&self, owner: &Owner) -> Result<Option<String>, ChoiceLost>;

    /// Chooses one for a user; `None`: the default.
    ///
    /// # Errors
    /// When it cannot be kept.
    async fn choose(&self, owner: &Owner, workload: Option<&str>) -> Result<(), ChoiceLost>;
}

/// Tells runs which model their user has chosen.
#[async_trait]
pub trait ChosenModels: Send + Sync {
    /// The model for a run with the profile `context_type`: the workload `named`, where it is one that answers, else the
    /// one that the user has chosen. `None`: the profile's own.
    async fn chosen(&self, owner: &Owner, context_type: &str, named: Option<&str>) -> Option<ChosenModel>;
}

/// A model that was chosen, with its options.
#[derive(Debug, Clone, PartialEq)]
pub struct ChosenModel {
    /// The model.
    pub origin: ModelOrigin,
    /// The sampling temperature, where it has one.
    pub temperature: Option<f64>,
    /// The longest answer in tokens, where it has a limit.
    pub max_tokens: Option<u32>,
}
