//! Profiles and tool definitions: `profiles/*.toml` and `tools/*.json` become domain types, all mistakes noted.

mod data;
mod model;
mod request;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use self::model::Models;
use super::Problem;
use super::assets::Assets;
use crate::agent::ports::tools::OfferedTool;
use crate::agent::profile::{Bounds, Diagnostics, Profile, Profiles, ReplyLanguage};
use crate::agent::prompt::Prompt;
use crate::chat::template::Template;
use crate::chat::tool::{Policy, ToolDef};
use crate::llm;
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

/// One entry of `tools/*.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolEntry {
    name: String,
    description: String,
    input_schema: Value,
    /// Read by hand, so that all its mistakes are found.
    request: Option<Value>,
}

/// What the files describe.
#[derive(Debug)]
pub struct Catalogue {
    /// The profiles.
    pub profiles: Profiles,
    /// The calls of the tools that are declared as data, by the tools' names.
    pub requests: BTreeMap<String, RestRequest>,
}

/// What `tools/*.json` define.
#[derive(Default)]
struct Tools {
    defs: BTreeMap<String, ToolDef>,
    requests: BTreeMap<String, RestRequest>,
    /// The names with a `request`, be it right or wrong.
    declared: BTreeSet<String>,
}

/// The profiles of `assets`, asking models of `llm`, and its declared tools. `has_handler` tells whether a tool of that
/// name is built in.
///
/// # Errors
/// Every problem at once.
pub fn load(assets: &Assets, llm: &llm::Config, has_handler: impl Fn(&str) -> bool) -> Result<Catalogue, Vec<Problem>> {
    let mut problems = Vec::new();
    let models = Models::new(llm, &mut problems);
    let tools = tools(assets, &has_handler, &mut problems);
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
        true => Ok(Catalogue { profiles: Profiles::new(profiles, None), requests: tools.requests }),
        false => Err(problems),
    }
}

fn tools(assets: &Assets, has_handler: &impl Fn(&str) -> bool, problems: &mut Vec<Problem>) -> Tools {
    let mut tools = Tools::default();
    for path in assets.list("tools", ".json") {
        let entries: Vec<ToolEntry> = match assets.text(&path).map(|text| serde_json::from_str(&text)) {
            Some(Ok(entries)) => entries,
            Some(Err(error)) => {
                problems.push(Problem::new(path, error.to_string()));
                continue;
            }
            None => {
                problems.push(Problem::new(path, "cannot be read"));
                continue;
            }
        };
        for ToolEntry { name, description, input_schema, request } in entries {
            if !is_tool_name(&name) {
                problems.push(Problem::new(&path, format!("{name:?} must be 1 to 64 of A-Z a-z 0-9 _ -")));
            }
            if input_schema.get("type").and_then(Value::as_str) != Some("object") {
                problems.push(Problem::new(&path, format!("{name}: input_schema must have the type \"object\"")));
            }
            if let Some(entry) = request {
                if has_handler(&name) {
                    problems
                        .push(Problem::new(&path, format!("{name}: request must not be given for a built-in tool")));
                }
                tools.declared.insert(name.clone());
                let request = request::request(&path, &name, entry, &input_schema, problems);
                tools.requests.extend(request.map(|request| (name.clone(), request)));
            }
            let def = ToolDef { name: name.clone(), description, input_schema };
            if tools.defs.insert(name.clone(), def).is_some() {
                problems.push(Problem::new(&path, format!("{name} is defined twice")));
            }
        }
    }
    tools
}

/// The alphabet that all vendors allow.
fn is_tool_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    !name.is_empty() && name.len() <= 64 && name.bytes().all(allowed)
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
        if !has_handler(name) && !tools.declared.contains(name) {
            problems.push(Problem::new(path, format!("no tool {name} can run")));
        }
    }
    let mut offered = Vec::with_capacity(file.tools.len());
    for name in &file.tools {
        match tools.defs.get(name) {
            // Vendors refuse a request in which two tools have the same name.
            Some(def) if offered.iter().any(|other: &OfferedTool| *other.def == *def) => {
                problems.push(Problem::new(path, format!("{name} is listed twice")))
            }
            Some(def) => {
                offered.push(OfferedTool { def: Arc::new(def.clone()), policy: Policy::default(), samples: Vec::new() })
            }
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
