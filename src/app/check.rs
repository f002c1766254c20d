//! Checks of a configuration without serving it: its mistakes, and what its models and backends really do.

use std::sync::Arc;
use std::time::Duration;

use super::StartError;
use super::demo;
use super::parts::{Tools, backends, root_url, router, tools_and_profiles};
use super::workspace::Workspace;
use crate::agent::offer::profile::Profiles;
use crate::agent::ports::clock::SystemClock;
use crate::agent::ports::signals::Bell;
use crate::bounded::intake::Intake;
use crate::bounded::memory::Memory;
use crate::chat::causes::Causes;
use crate::chat::message::ModelOrigin;
use crate::chat::model::{Helper, ModelChoice};
use crate::config::assets::Assets;
use crate::config::{BackendMode, Config};
use crate::llm::{self, Vendor, VendorConfig};
use crate::probe::{self, Report};
use crate::store;
use crate::tools::backend::probe::BackendReport;
use crate::tools::backend::{Backends, ServiceMode};

/// What [`App::build`](super::App::build) would say about `config` and the files of `assets`, without a socket, a file
/// or a request, but for one to a metadata server whose credentials are needed. When it is all good: the models that may be
/// called, each with the options of its profiles.
///
/// # Errors
/// See [`StartError`].
pub async fn check(config: &Config, assets: &Assets) -> Result<Vec<ModelChoice>, StartError> {
    store::understand(&config.store)?;
    let in_memory = store::StoreConfig { url: "sqlite::memory:".to_owned(), ..store::StoreConfig::default() };
    let store = store::open(&in_memory, Arc::new(SystemClock), Arc::default()).await?;
    let intake = Intake::new(Memory::new(config.limits.memory_bytes));
    let backends = all_backends(config, &intake)?;
    let seed = match config.backend.mode {
        BackendMode::Http => Ok(()),
        BackendMode::Demo => demo::check(assets),
    };
    let of_process = ("", &Bell::default());
    let of_process = (of_process, (&intake, Workspace::new(&config.workspace)?.tools()));
    let tools = tools_and_profiles(config, assets, &backends, store.clone(), Arc::new(SystemClock), of_process);
    let profiles = tools.and_then(|Tools { profiles, .. }| {
        let router = router(config, &profiles, demo::model())?;
        Ok((router, choices(config, &profiles)))
    });
    store.close().await;
    let (router, choices) = match (seed, profiles) {
        (Err(StartError::Config(mut problems)), Err(StartError::Config(more))) => {
            problems.extend(more);
            Err(StartError::Config(problems))
        }
        (seed, profiles) => seed.and(profiles),
    }?;
    router.ready(&config.llm).await?;
    Ok(choices)
}

/// The backends of `config`, in place of the demo's one that nobody serves.
fn all_backends(config: &Config, intake: &Intake) -> Result<Backends, StartError> {
    let root = match config.backend.mode {
        BackendMode::Http => &config.backend.base_url,
        BackendMode::Demo => "http://localhost",
    };
    let root = root_url("backend.base_url", root)?;
    backends(config, root, intake)
}

/// Each model of the profiles by itself, with each set of its options; limits of answers make no difference to that.
fn choices(config: &Config, profiles: &Profiles) -> Vec<ModelChoice> {
    let mut choices = Vec::new();
    for context_type in profiles.context_types() {
        let Some(profile) = profiles.of_type(context_type) else { continue };
        for origin in profile.models.origins() {
            let choice = ModelChoice {
                models: vec![origin.clone()],
                max_tokens: config.llm.answer_tokens(),
                ..profile.models.choice.clone()
            };
            if !choices.contains(&choice) {
                choices.push(choice);
            }
        }
    }
    for helper in config.jobs().all() {
        let Helper::Model(origin) = helper else { continue };
        if !choices.iter().any(|choice: &ModelChoice| choice.models.contains(origin)) {
            choices.push(ModelChoice::from_model(origin.clone(), config.llm.answer_tokens()));
        }
    }
    choices
}

/// The probes of the models of `choices`, and those of providers that no profile uses yet: all at once, each for at
/// most `limit`. The demo model needs no probe.
pub async fn probe_models(config: &llm::LlmConfig, mut choices: Vec<ModelChoice>, limit: Duration) -> Vec<Report> {
    choices.retain(|choice| choice.models.iter().all(|origin| origin.provider != llm::DEMO));
    let mut unknown = Vec::new();
    let mut names: Vec<&str> = Vendor::ALL.into_iter().map(Vendor::name).collect();
    names.retain(|name| config.section(name).is_some_and(VendorConfig::has_key));
    names.extend(config.providers.keys().map(String::as_str));
    for name in names {
        let is_chosen = choices.iter().flat_map(|choice| &choice.models).any(|origin| origin.provider == name);
        match config.model(name) {
            _ if is_chosen => {}
            Ok(origin) => choices.push(ModelChoice::from_model(origin, config.answer_tokens())),
            Err(error) => {
                let origin = ModelOrigin { provider: name.to_owned(), model: "?".to_owned() };
                unknown.push(Report::not_probed(&origin, &error.to_string()));
            }
        }
    }
    let probes = choices.iter().filter_map(|choice| choice.models.first().map(|origin| (origin, choice)));
    // Set up before the first probe: that takes time, which is not the models'.
    let probes: Vec<_> = probes.map(|(origin, choice)| (origin, choice, llm::connect(origin, config))).collect();
    let probes = probes.into_iter().map(async |(origin, choice, provider)| match provider {
        Ok(provider) => probe::probe(&*provider, origin, choice, limit).await,
        Err(error) => Report::not_probed(origin, &Causes(&error).to_string()),
    });
    let mut reports = futures::future::join_all(probes).await;
    reports.extend(unknown);
    reports
}

/// The probes of all backends, each for at most `limit`, all at once. The demo's needs none.
///
/// # Errors
/// See [`StartError`].
pub async fn probe_backends(config: &Config, limit: Duration) -> Result<Vec<BackendReport>, StartError> {
    let intake = Intake::new(Memory::new(config.limits.memory_bytes));
    let Backends { main, named, services } = all_backends(config, &intake)?;
    let has_main = config.backend.mode == BackendMode::Http;
    let section = |name: &Option<String>| name.as_ref().map_or("backend".to_owned(), |name| format!("backends.{name}"));
    let main = has_main.then(|| (section(&None), main));
    let named = named.into_iter().map(|(name, backend)| (section(&Some(name)), backend));
    // Where a backend has credentials of its own and no others for its service, they are the same.
    let services = services.into_iter().filter(|(name, _)| match name {
        None => has_main,
        Some(name) => config.backends.get(name).is_some_and(|backend| backend.service.mode != ServiceMode::Off),
    });
    let services = services.map(|(name, backend)| (format!("{}.service", section(&name)), backend));
    let probes = main.into_iter().chain(named).chain(services);
    let probes = probes.map(async |(name, backend)| backend.probe(name, limit).await);
    Ok(futures::future::join_all(probes).await)
}
