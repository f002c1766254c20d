//! The settings of models at one time: what they are made of, what is shown of them, and what is wrong with a change.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::Kind;
use super::kept::{self, Kept};
use crate::agent::ports::models::{ChosenModel, Key, ModelSettings, Provider, Workload, WorkloadKind};
use crate::bounded::address::is_metadata_host;
use crate::chat::message::ModelOrigin;
use crate::llm::config::{LlmConfig, NO_MODEL};
use crate::llm::{DEMO, Vendor, VendorConfig};

/// The longest name of a provider, a workload or a model, in bytes.
const NAME_BYTES: usize = 200;

/// The settings at one time.
pub(super) struct State {
    providers: BTreeMap<String, kept::Provider>,
    workloads: BTreeMap<String, kept::Workload>,
    /// The workload of the configuration's own model.
    default: Option<String>,
    /// What is shown.
    pub(super) settings: Arc<ModelSettings>,
}

impl State {
    /// What a configuration says by itself: providers with a key, those that were added, those that answer by default.
    pub(super) fn configured(config: &LlmConfig, defaults: &[ModelOrigin]) -> Self {
        let with_key = config.vendors.iter().filter(|(_, section)| section.has_key()).map(|(vendor, _)| vendor.name());
        let names = defaults.iter().map(|origin| origin.provider.as_str()).chain(with_key);
        let names: BTreeSet<&str> =
            names.chain(config.providers.keys().map(String::as_str)).filter(|name| *name != NO_MODEL).collect();
        let providers = names.iter().map(|name| {
            let provider = match config.section(name) {
                Some(section) => configured(name, section),
                None => kept::Provider {
                    kind: DEMO.to_owned(),
                    base_url: String::new(),
                    key: kept::Key::None,
                    options: serde_json::Map::new(),
                },
            };
            ((*name).to_owned(), provider)
        });
        let own = names.iter().filter_map(|name| config.model(name).ok());
        let mut workloads = BTreeMap::new();
        let mut default = None;
        for origin in defaults.iter().cloned().chain(own).filter(|origin| origin.provider != NO_MODEL) {
            let ModelOrigin { provider, model } = origin;
            let workload =
                kept::Workload { provider, model, is_for_embeddings: false, options: serde_json::Map::new() };
            if workloads.values().any(|known| *known == workload) {
                continue;
            }
            let name = match workloads.contains_key(&workload.model) {
                true => format!("{}/{}", workload.provider, workload.model),
                false => workload.model.clone(),
            };
            default.get_or_insert_with(|| name.clone());
            workloads.insert(name, workload);
        }
        let default = default.filter(|_| defaults.first().is_some_and(|origin| origin.provider != NO_MODEL));
        Self::made(providers.collect(), workloads, default, BTreeMap::new())
    }

    /// This with what was kept.
    pub(super) fn with(&self, Kept { providers, workloads }: Kept) -> Self {
        let providers = Kept::applied(self.providers.clone(), providers);
        let workloads = Kept::applied(self.workloads.clone(), workloads);
        Self::made(providers, workloads, self.default.clone(), BTreeMap::new())
    }

    /// What is to be kept of `now`, where this is what the configuration says.
    pub(super) fn difference(&self, now: &Self) -> Kept {
        Kept {
            providers: Kept::difference(&self.providers, &now.providers),
            workloads: Kept::difference(&self.workloads, &now.workloads),
        }
    }

    /// The settings `after`, in the place of these; `base` is what the configuration says.
    ///
    /// # Errors
    /// All mistakes, in words. What stays as it is is none.
    pub(super) fn changed(&self, after: ModelSettings, base: &Self) -> Result<Self, Vec<String>> {
        let mut mistakes = Vec::new();
        let mut providers = BTreeMap::new();
        for (name, Provider { kind, base_url, key, options }) in after.providers {
            let key = match key {
                Key::None => kept::Key::None,
                Key::Of(other) => self.providers.get(&other).map(|other| other.key.clone()).unwrap_or_default(),
                Key::New(key) => kept::Key::Own(key.expose_secret().trim().to_owned()),
            };
            let provider = kept::Provider { kind, base_url: base_url.trim().to_owned(), key, options };
            if self.providers.get(&name) != Some(&provider) {
                check_provider(&name, &provider, &mut mistakes);
            }
            providers.insert(name, provider);
        }
        let mut workloads = BTreeMap::new();
        for (name, Workload { provider, model, kind, options }) in after.workloads {
            let (provider, model) = (provider.trim().to_owned(), model.trim().to_owned());
            if !provider.is_empty() && !providers.contains_key(&provider) {
                mistakes.push(format!("workloads.{name}.provider: there is no provider {provider:?}"));
            }
            check_name(&format!("workloads.{name}"), &name, &mut mistakes);
            if model.len() > NAME_BYTES || model.chars().any(char::is_control) {
                mistakes.push(format!("workloads.{name}.model: must be at most {NAME_BYTES} bytes"));
            }
            let is_for_embeddings = kind == WorkloadKind::Embeddings;
            workloads.insert(name, kept::Workload { provider, model, is_for_embeddings, options });
        }
        match mistakes.is_empty() {
            true => Ok(Self::made(providers, workloads, base.default.clone(), BTreeMap::new())),
            false => Err(mistakes),
        }
    }

    fn made(
        providers: BTreeMap<String, kept::Provider>,
        workloads: BTreeMap<String, kept::Workload>,
        default: Option<String>,
        unusable: BTreeMap<String, String>,
    ) -> Self {
        let shown = providers.iter().map(|(name, provider)| {
            let kept::Provider { kind, base_url, key, options } = provider.clone();
            let key = if key == kept::Key::None { Key::None } else { Key::Of(name.clone()) };
            (name.clone(), Provider { kind, base_url, key, options })
        });
        let settings = ModelSettings {
            providers: shown.collect(),
            workloads: workloads.iter().map(|(name, workload)| (name.clone(), shown_workload(workload))).collect(),
            default: None,
            kinds: Kind::all().map(Kind::shown).collect(),
            unusable,
        };
        let chat = workloads.iter().filter(|(_, workload)| !workload.is_for_embeddings).map(|(name, _)| name);
        let own = default.as_ref().filter(|name| workloads.contains_key(*name));
        let whole = || chat.clone().find(|name| settings.missing(Some(name)).is_empty());
        let chosen = own.or_else(whole).or_else(|| chat.clone().next()).cloned();
        let settings = Arc::new(ModelSettings { default: chosen, ..settings });
        Self { providers, workloads, default, settings }
    }

    /// The model of a workload that answers.
    pub(super) fn model(&self, workload: &str) -> Option<ChosenModel> {
        let workload = self.workloads.get(workload).filter(|workload| !workload.is_for_embeddings)?;
        let origin = origin(workload)?;
        let number = |name: &str| workload.options.get(name);
        Some(ChosenModel {
            origin,
            temperature: number("temperature").and_then(serde_json::Value::as_f64).filter(|t| (0.0..=2.0).contains(t)),
            max_tokens: number("max_tokens").and_then(serde_json::Value::as_u64).and_then(|most| most.try_into().ok()),
        })
    }

    /// All models that can be chosen, but for the demo's.
    pub(super) fn origins(&self) -> HashSet<ModelOrigin> {
        let of_vendors = |workload: &&kept::Workload| {
            self.providers.get(&workload.provider).is_some_and(|provider| provider.kind != DEMO)
        };
        self.workloads.values().filter(of_vendors).filter_map(origin).collect()
    }

    /// The providers with mistakes that `base` has not, each with what is wrong: a file may have been kept by another version,
    /// or edited.
    pub(super) fn wrong(&self, base: &Self) -> BTreeMap<String, String> {
        let others = self.providers.iter().filter(|(name, provider)| base.providers.get(*name) != Some(provider));
        let mut wrong = BTreeMap::new();
        for (name, provider) in others {
            let mut mistakes = Vec::new();
            check_provider(name, provider, &mut mistakes);
            if !mistakes.is_empty() {
                wrong.insert(name.clone(), mistakes.join("; "));
            }
        }
        wrong
    }

    /// Whether a provider says where it is.
    pub(super) fn has_address(&self, provider: &str) -> bool {
        self.providers.get(provider).is_some_and(|provider| !provider.base_url.is_empty())
    }

    /// The same, of which these providers cannot be asked.
    pub(super) fn with_unusable(&self, unusable: BTreeMap<String, String>) -> Self {
        let Self { providers, workloads, default, .. } = self;
        Self::made(providers.clone(), workloads.clone(), default.clone(), unusable)
    }

    /// The providers that are not as in `before`.
    pub(super) fn differing(&self, before: &Self) -> BTreeSet<String> {
        Kept::difference(&before.providers, &self.providers).into_keys().collect()
    }

    /// The configuration with these providers.
    pub(super) fn config(&self, configured: &LlmConfig) -> LlmConfig {
        let mut config = configured.clone();
        for (name, provider) in &self.providers {
            let Some(section) = section(provider, configured) else { continue };
            match Vendor::parse(name) {
                Some(vendor) => config.vendors.insert(vendor, section).map(drop),
                None => config.providers.insert(name.clone(), section).map(drop),
            };
        }
        config
    }
}

/// A provider as its section has it. The vendor's own address is not shown: it goes with the kind.
fn configured(name: &str, section: &VendorConfig) -> kept::Provider {
    let kind = Kind::of(name, section.vendor());
    let base_url = section.common.base_url.clone();
    let is_usual = kind.is_some_and(|kind| kind.usual_url() == base_url);
    kept::Provider {
        kind: kind.map(Kind::name).unwrap_or_default().to_owned(),
        base_url: if is_usual { String::new() } else { base_url },
        key: if section.has_credentials() { kept::Key::Configured(name.to_owned()) } else { kept::Key::None },
        options: serde_json::Map::new(),
    }
}

/// The section that a provider stands for; `None` for the demo's.
fn section(provider: &kept::Provider, configured: &LlmConfig) -> Option<VendorConfig> {
    let kind = Kind::named(&provider.kind)?;
    let of_configuration = match &provider.key {
        kept::Key::Configured(name) => configured.section(name),
        kept::Key::None | kept::Key::Own(_) => None,
    };
    let mut section = match of_configuration.filter(|section| section.vendor() == kind.vendor) {
        Some(section) => section.clone(),
        None => kind.vendor.defaults(),
    };
    section.common.base_url = match provider.base_url.as_str() {
        "" => kind.usual_url(),
        url => url.to_owned(),
    };
    section.common.api_key = match &provider.key {
        kept::Key::None => SecretString::default(),
        kept::Key::Configured(_) => of_configuration.map(|section| section.common.api_key.clone()).unwrap_or_default(),
        kept::Key::Own(key) => SecretString::from(key.clone()),
    };
    Some(section)
}

fn origin(workload: &kept::Workload) -> Option<ModelOrigin> {
    let kept::Workload { provider, model, .. } = workload;
    let is_whole = !provider.is_empty() && !model.is_empty();
    is_whole.then(|| ModelOrigin { provider: provider.clone(), model: model.clone() })
}

fn shown_workload(workload: &kept::Workload) -> Workload {
    let kept::Workload { provider, model, is_for_embeddings, options } = workload.clone();
    let kind = if is_for_embeddings { WorkloadKind::Embeddings } else { WorkloadKind::Chat };
    Workload { provider, model, kind, options }
}

fn check_name(place: &str, name: &str, mistakes: &mut Vec<String>) {
    if name.trim().is_empty() || name.len() > NAME_BYTES || name.chars().any(char::is_control) {
        mistakes.push(format!("{place}: a name must be 1 to {NAME_BYTES} bytes and not blank"));
    }
}

fn check_provider(name: &str, provider: &kept::Provider, mistakes: &mut Vec<String>) {
    check_name(&format!("providers.{name}"), name, mistakes);
    if Kind::named(&provider.kind).is_none() {
        let kinds: Vec<&str> = Kind::all().map(Kind::name).collect();
        let kinds = kinds.join(", ");
        mistakes.push(format!("providers.{name}.type: there is no type {:?}; there are {kinds}", provider.kind));
    }
    if let kept::Key::Own(key) = &provider.key
        && !key.bytes().all(|byte| byte.is_ascii_graphic())
    {
        mistakes.push(format!("providers.{name}.api_key: has characters that no http header can carry"));
    }
    if let Err(reason) = check_url(&provider.base_url) {
        mistakes.push(format!("providers.{name}.base_url: {reason}"));
    }
}

/// Models may be on this machine and beside it. Where clouds tell their machines' secrets there is none.
fn check_url(text: &str) -> Result<(), &'static str> {
    if text.is_empty() {
        return Ok(());
    }
    let url = Url::parse(text).map_err(|_| "is not a URL")?;
    match url.scheme() {
        _ if url.host().is_none() => Err("names no host"),
        "http" | "https" if !url.username().is_empty() || url.password().is_some() => {
            Err("must not hold a user or password")
        }
        "http" | "https" if url.fragment().is_some() => Err("must not have a fragment"),
        "http" | "https" if is_metadata_host(&url) => Err("is a link-local address, where there are no models"),
        "http" | "https" => Ok(()),
        _ => Err("must begin with http:// or https://"),
    }
}
