//! Profiles and tool definitions: `profiles/*.toml` and `tools/*.json` become domain types, all mistakes noted.

mod data;
mod model;
mod request;
mod tools;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use self::model::Models;
use self::tools::Tools;
use super::Problem;
use super::assets::Assets;
use super::document::Problems;
use crate::agent::ports::tools::OfferedTool;
use crate::agent::profile::{Bounds, Diagnostics, Profile, Profiles, ReplyLanguage};
use crate::agent::prompt::Prompt;
use crate::chat::template::Template;
use crate::llm;
use crate::tools::data::Loader;
use crate::tools::rest::RestRequest;

pub use self::model::default_models;

/// `profiles/*.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileFile {
    id: String,
    context_type: String,
    reply_language: Option<Language>,
    instructions: Vec<String>,
    tools: Vec<String>,
    #[serde(default)]
    accepts: Vec<String>,
    #[serde(default)]
    background: bool,
    /// Read by hand, so that all its mistakes are found.
    model: Option<toml::Value>,
}

#[derive(Deserialize)]
enum Language {
    #[serde(rename = "en")]
    English,
}

/// What the files describe.
#[derive(Debug)]
pub struct Catalogue {
    /// The profiles.
    pub profiles: Profiles,
    /// What loads the data of their prompts.
    pub loaders: Vec<Loader>,
    /// The calls of the tools that are declared as data, by the tools' names.
    pub requests: BTreeMap<String, RestRequest>,
}

/// The profiles of `assets`, asking models of `llm`, and its declared tools. `has_handler` tells whether a tool of that
/// name is built in; `sources` are the sources of tools that the settings name.
///
/// # Errors
/// Every problem at once.
pub fn load(
    assets: &Assets,
    llm: &llm::Config,
    sources: &BTreeSet<String>,
    has_handler: impl Fn(&str) -> bool,
) -> Result<Catalogue, Vec<Problem>> {
    let _ = sources;
    let noted = Problems::default();
    let tools = tools::read(assets, &has_handler, &noted);
    let mut problems = noted.into_inner();
    let models = Models::new(llm, &mut problems);
    let mut profiles: Vec<Profile> = Vec::new();
    let mut paths: Vec<String> = Vec::new();
    for path in assets.list("profiles", ".toml") {
        let Some(text) = assets.text(&path) else {
            problems.push(Problem::new(path, "cannot be read"));
            continue;
        };
        match toml::from_str::<ProfileFile>(&text) {
            Ok(file) => {
                let profile = profile(&path, file, assets, &tools, &models, &has_handler, &mut problems);
                for (other, other_path) in profiles.iter().zip(&paths) {
                    let (id, context_type) = (&profile.id, &profile.context_type);
                    for (key, value, taken) in [
                        ("id", id, *id == other.id),
                        ("context_type", context_type, *context_type == other.context_type),
                    ] {
                        if taken {
                            let reason = format!("{key} {value:?} is already that of {other_path}");
                            problems.push(Problem::new(&path, reason));
                        }
                    }
                }
                profiles.push(profile);
                paths.push(path);
            }
            Err(error) => problems.push(Problem::new(path, error.message().to_owned())),
        }
    }
    if profiles.is_empty() && problems.is_empty() {
        problems.push(Problem::new("profiles", "there is no profile"));
    }
    match problems.is_empty() {
        true => {
            Ok(Catalogue { profiles: Profiles::new(profiles, None), loaders: Vec::new(), requests: tools.requests })
        }
        false => Err(problems),
    }
}

fn profile(
    path: &str,
    file: ProfileFile,
    assets: &Assets,
    tools: &Tools,
    models: &Models<'_>,
    has_handler: &impl Fn(&str) -> bool,
    problems: &mut Vec<Problem>,
) -> Profile {
    let mut prompt = |name: &str| {
        let text = assets.text(&format!("prompts/{name}"));
        if text.is_none() {
            problems.push(Problem::new(path, format!("prompts/{name} cannot be read")));
        }
        text.unwrap_or_default().trim().to_owned()
    };
    let blocks: Vec<String> = file.instructions.iter().map(|name| prompt(name)).collect();
    for name in file.tools.iter().chain(&file.accepts) {
        if !has_handler(name) && !tools.declares(name) {
            problems.push(Problem::new(path, format!("no tool {name} can run")));
        }
    }
    let mut offered: Vec<OfferedTool> = Vec::with_capacity(file.tools.len());
    for name in &file.tools {
        match tools.offered(name) {
            // Vendors refuse a request in which two tools have the same name.
            Some(tool) if offered.contains(tool) => {
                problems.push(Problem::new(path, format!("{name} is listed twice")))
            }
            Some(tool) => offered.push(tool.clone()),
            None => problems.push(Problem::new(path, format!("tool {name} is not defined in tools/*.json"))),
        }
    }
    let templates: Vec<Template> = blocks.iter().filter_map(|block| Template::parse(block).ok()).collect();
    let prompt = Prompt::new(templates).unwrap_or_else(|_| Prompt::empty());
    Profile {
        id: file.id,
        context_type: file.context_type,
        app: String::new(),
        roles: Vec::new(),
        prompt,
        data: Vec::new(),
        sources: Vec::new(),
        selection: None,
        payload_types: Vec::new(),
        client_actions: Vec::new(),
        suggestions: false,
        bounds: Bounds::default(),
        diagnostics: Diagnostics::default(),
        tools: offered,
        accepts: file.accepts,
        reply_language: file.reply_language.map(|Language::English| ReplyLanguage::English),
        background: file.background,
        models: models.menu(path, file.model, problems),
    }
}
