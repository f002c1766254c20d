//! Profiles, tools and payload types: the files of `config/` become domain types, all mistakes noted.

mod answers;
mod clarify;
mod data;
mod declared;
mod defaults;
mod directive;
mod helpers;
mod layers;
mod model;
mod moves;
pub mod openapi;
mod operations;
mod others;
mod payloads;
mod profile;
mod profiles;
mod request;
mod rules;
mod schedule;
mod state;
mod texts;
mod tools;

use std::collections::{BTreeMap, BTreeSet};

use self::declared::Known;
use self::model::Models;
use self::profile::Parts;
use self::texts::Texts;
use super::Problem;
use super::assets::Assets;
use super::document::Problems;
use crate::agent::offer::profile::Profiles;
use crate::agent::ports::tools::OfferedTool;
use crate::chat::directive::RunsAs;
use crate::directives::schedule::Schedule;
use crate::http::ChatMessageConfig;
use crate::llm;
use crate::tools::BuiltIn;
use crate::tools::rest::data::Loader;
use crate::tools::rest::declared::Declared;

pub use self::model::default_models;

/// What the files describe.
#[derive(Debug)]
pub struct Catalogue {
    /// The profiles.
    pub profiles: Profiles,
    /// What loads the data of their prompts.
    pub loaders: Vec<Loader>,
    /// How the tools that are declared as data run, by their names.
    pub requests: BTreeMap<String, Declared>,
    /// The directives that are requested again and again.
    pub schedules: Vec<Schedule>,
    /// The tool that `chat_message.installations` names.
    pub installations: Option<OfferedTool>,
}

/// What the settings name and files refer to.
#[derive(Debug, Default)]
pub struct Referents {
    /// Sources of tools: the names of `[mcp.NAME]`.
    pub sources: BTreeSet<String>,
    /// The names of `[backends.NAME]`.
    pub backends: BTreeSet<String>,
    /// The backends that a service's own credentials reach; `None`: `[backend]`.
    pub services: BTreeSet<Option<String>>,
    /// What `[chat_message]` names.
    pub chat_message: ChatMessageConfig,
}

/// The profiles of `assets`, asking models of `llm`, and its declared tools. `built_in` knows the built-in tools.
///
/// # Errors
/// Every problem at once.
pub fn load(
    assets: &Assets,
    llm: &llm::LlmConfig,
    referents: &Referents,
    built_in: impl Fn(&str) -> Option<BuiltIn>,
) -> Result<Catalogue, Vec<Problem>> {
    let problems = Problems::default();
    let models = Models::new(llm, &problems);
    let payload_types = payloads::read(assets, &problems);
    let backends = &referents.backends;
    let known = Known { built_in: &built_in, payload_types: &payload_types, backends };
    let mut tools = tools::read(assets, known, &problems);
    for path in assets.list("openapi", ".toml") {
        openapi::read(&path, assets, known, &mut tools, &problems);
    }
    let parts = Parts {
        texts: Texts::new(assets, &problems),
        tools: &tools,
        payload_types: &payload_types,
        models: &models,
        sources: &referents.sources,
        backends,
        built_in: &built_in,
    };
    let (profiles, loaders) = profiles::read(assets, &parts, &problems);
    for join in tools.joins() {
        if profiles.all().all(|profile| profile.id != join.profile) {
            problems.push(Problem::new(&*join.at, format!("profiles: {:?} is no profile's id", join.profile)));
        }
    }
    for lead in tools.leads() {
        if profiles.of_type(&lead.to).is_none() {
            problems.push(Problem::new(&*lead.at, format!("to: {:?} is no profile's context_type", lead.to)));
        }
    }
    for lookup in tools.wrong_lookups() {
        let reason = format!("lookup: {:?} is no declared tool that reads and is there for everybody", lookup.to);
        problems.push(Problem::new(&*lookup.at, reason));
    }
    let mut commands = BTreeMap::new();
    for command in tools.commands() {
        if let Some(first) = commands.insert(command.name.as_str(), command.at.as_str()) {
            problems
                .push(Problem::new(&*command.at, format!("name: {} is there twice, first at {first}", command.name)));
        }
        if let Some((backend, at)) = &command.backend
            && !referents.services.contains(backend)
        {
            let section = backend.as_ref().map_or("backend".to_owned(), |name| format!("backends.{name}"));
            let reason = format!("runs_as: \"service\" needs credentials in [{section}.service], whose mode is off");
            problems.push(Problem::new(&**at, reason));
        }
    }
    let mut schedules: BTreeMap<&str, &str> = BTreeMap::new();
    for schedule::Read { schedule, at } in tools.schedules() {
        if let Some(first) = schedules.insert(&schedule.name, at) {
            problems.push(Problem::new(&**at, format!("name: {} is there twice, first at {first}", schedule.name)));
        }
        let rule = tools.command_rule(&schedule.directive);
        let reason = match rule {
            None => format!("directive: {:?} is no directive", schedule.directive),
            Some(rule) if rule.runs_as == RunsAs::Caller => {
                format!("directive: {} runs with its caller's token, and a schedule has none", schedule.directive)
            }
            Some(rule) if !rule.roles.is_empty() && !rule.roles.iter().any(|role| schedule.roles.contains(role)) => {
                format!("roles: {} needs one of {}", schedule.directive, rule.roles.join(", "))
            }
            Some(_) => continue,
        };
        problems.push(Problem::new(&**at, reason));
    }
    for profile in profiles.all() {
        for assistant in profile.delegation.iter().flat_map(|delegation| &delegation.assistants) {
            if profiles.of_type(&assistant.context_type).is_none() {
                let reason = format!("agents: {:?} is no profile's context_type", assistant.context_type);
                problems.push(Problem::new(format!("the profile {:?}", profile.id), reason));
            }
        }
    }
    let ChatMessageConfig { profile: answers, install, uninstall, installations } = &referents.chat_message;
    if !answers.is_empty() && profiles.of_type(answers).is_none() {
        problems.push(Problem::new("chat_message.profile", format!("{answers:?} is no profile's context_type")));
    }
    for (key, name) in [("install", install), ("uninstall", uninstall)] {
        if !name.is_empty() && !commands.contains_key(name.as_str()) {
            problems.push(Problem::new(format!("chat_message.{key}"), format!("{name:?} is no directive")));
        }
    }
    let told_by = tools.reading_without_arguments(installations).cloned();
    if !installations.is_empty() && told_by.is_none() {
        let reason = format!("{installations:?} is no declared tool that reads and needs no arguments");
        problems.push(Problem::new("chat_message.installations", reason));
    }
    match problems.is_empty() {
        true => Ok(Catalogue {
            profiles,
            loaders,
            schedules: tools.schedules().iter().map(|read| read.schedule.clone()).collect(),
            requests: tools.requests,
            installations: told_by,
        }),
        false => Err(problems.into_inner()),
    }
}
