//! The layers of settings: built-in defaults, a file, the environment. The built-in `default.toml` is also the list of keys:
//! it tells unknown keys from known ones, and what type a text from the environment has to become.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::fitting::{DEFAULT_PREFIX, PREFIX, find, fit_by, lookup};
use super::providers::Named;
use super::{Config, Problem, Sources, assets, backends, issuers, launch, mcp, models, otel, prices, subscribers};
use crate::aws::Variables;
use crate::llm::{UsualSetting, Vendor};

/// The merged settings; problems are noted and skipped, so that all of them are found. `None` only when not even the defaults
/// can be read.
pub(super) fn read(sources: &Sources, problems: &mut Vec<Problem>) -> Option<Config> {
    let mut defaults: Table = match assets::built_in("default.toml").map(|text| text.parse()) {
        Some(Ok(table)) => table,
        Some(Err(_)) | None => {
            problems.push(Problem::new("default.toml", "the built-in defaults cannot be read"));
            return None;
        }
    };
    let mut layer = file_layer(sources, problems);
    let (prices, models) = (prices::take(&mut layer, problems), models::take(&mut layer, problems));
    let named = Named::find(&mut layer, &sources.env, problems);
    named.add_defaults(&mut defaults);
    issuers::prepare(&mut layer, &mut defaults, &sources.env, problems);
    backends::prepare(&mut layer, &mut defaults, &sources.env, problems);
    subscribers::prepare(&mut layer, &mut defaults, &sources.env, problems);
    mcp::prepare(&mut layer, &mut defaults, &sources.env, problems);
    let mut merged = defaults.clone();
    if let Some(launch) = &sources.launch {
        launch.check(problems);
        let state = launch::state(&layer, &defaults, sources.env.get(&format!("{PREFIX}WORKSPACE__STATE")));
        overlay(&mut merged, launch.defaults(&state), "", problems);
    }
    defaults_of_environment(&mut merged, &defaults, sources, problems);
    overlay(&mut merged, layer, "", problems);
    let otel::Besides { unusable, logs_headers } = otel::fill(&mut merged, &sources.env);
    environment(&mut merged, &defaults, sources, &named, problems);
    if let Some(launch) = &sources.launch {
        overlay(&mut merged, launch.demands(), "", problems);
    }
    let providers = named.take(&mut merged, &defaults, problems);
    let mut config: Config = fit(&mut merged, &defaults, "", problems)?;
    providers.put(&mut config.llm);
    mcp::inherit(&mut config, &sources.env);
    (config.prices, config.llm.models) = (prices, models);
    config.launch = sources.launch.clone();
    config.telemetry.unusable = unusable;
    config.telemetry.logs_headers = logs_headers;
    let aws = Variables::of(&sources.env);
    (config.files.aws, config.llm.aws) = (aws.clone(), aws);
    Some(config)
}

/// `--config`, or `default.toml` of the folder, or nothing.
fn file_layer(sources: &Sources, problems: &mut Vec<Problem>) -> Table {
    let in_folder = sources.dir.as_ref().map(|dir| dir.join("default.toml")).filter(|path| path.is_file());
    let Some(path): Option<PathBuf> = sources.file.clone().or(in_folder) else { return Table::new() };
    let name = path.display().to_string();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            problems.push(Problem::new(name, format!("cannot be read: {error}")));
            return Table::new();
        }
    };
    text.parse().unwrap_or_else(|error: toml::de::Error| {
        let line = error.span().map_or(0, |span| 1 + text[..span.start].matches('\n').count());
        problems.push(Problem::new(name, format!("line {line}: {}", error.message())));
        Table::new()
    })
}

/// Puts `layer` over `base`; a key that `base` does not have is unknown.
fn overlay(base: &mut Table, layer: Table, path: &str, problems: &mut Vec<Problem>) {
    for (key, value) in layer {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match (base.get_mut(&key), value) {
            (None, _) => problems.push(Problem::new(path, "is not a known setting")),
            (Some(slot @ Value::Table(_)), layer @ Value::Table(_)) if has_free_keys(&path) => *slot = layer,
            (Some(Value::Table(base)), Value::Table(layer)) => overlay(base, layer, &path, problems),
            (Some(Value::Table(_)), _) => problems.push(Problem::new(path, "must be a section")),
            (Some(slot), value) => *slot = value,
        }
    }
}

/// Whether the section takes whatever keys the operator needs.
fn has_free_keys(path: &str) -> bool {
    let of_server = path.starts_with("mcp.") && [".env", ".headers", ".pins"].iter().any(|key| path.ends_with(key));
    let of_backend = path.starts_with("backends.") && path.ends_with(".headers");
    of_server || of_backend || [".extra_headers", ".extra_body"].iter().any(|section| path.ends_with(section))
}

/// Variables below the settings file, for whoever makes an image: what the file says wins.
fn defaults_of_environment(merged: &mut Table, defaults: &Table, sources: &Sources, problems: &mut Vec<Problem>) {
    for (name, text) in &sources.env {
        let Some(path) = name.strip_prefix(DEFAULT_PREFIX).map(str::to_lowercase) else { continue };
        let keys: Vec<&str> = path.split("__").collect();
        match lookup(defaults, &keys) {
            Some(template) => set(merged, &keys, template, text, name, problems),
            None => problems.push(Problem::new(name, "is not a known setting")),
        }
    }
}

fn environment(merged: &mut Table, defaults: &Table, sources: &Sources, named: &Named, problems: &mut Vec<Problem>) {
    for vendor in Vendor::ALL {
        let Some(name) = vendor.usual_key() else { continue };
        let keys = ["llm", vendor.name(), "api_key"];
        let Some(slot) = find(merged, &keys).filter(|slot| slot.as_str() == Some("")) else { continue };
        let file = format!("{name}_FILE");
        let key = match (sources.env.get(name).filter(|key| !key.is_empty()), sources.env.get(&file)) {
            (Some(key), _) => Some(key.clone()),
            (None, Some(path)) => file_text(&file, path, problems),
            (None, None) => None,
        };
        if let Some(key) = key {
            *slot = Value::String(key);
        }
    }
    for (keys, vendor) in named.sections() {
        for usual in vendor.usual_settings() {
            let keys: Vec<&str> = keys.iter().copied().chain([usual.key]).collect();
            let Some(slot) = find(merged, &keys).filter(|slot| slot.as_str() == Some("")) else { continue };
            if let Some(text) = usual_text(usual, &sources.env) {
                *slot = Value::String(text);
            }
        }
    }
    let ours = sources.env.iter().filter(|(name, _)| name.starts_with(PREFIX) && !named.has_read(name));
    for (name, text) in ours {
        let path = name[PREFIX.len()..].to_lowercase();
        let keys: Vec<&str> = path.split("__").collect();
        if let Some(template) = lookup(defaults, &keys) {
            set(merged, &keys, template, text, name, problems);
            continue;
        }
        // `…_FILE` of a known text setting names a file that holds it.
        let of_file = path.strip_suffix("_file").map(|path| path.split("__").collect::<Vec<_>>());
        match of_file.and_then(|keys| Some((lookup(defaults, &keys)?, keys))) {
            Some((template @ Value::String(_), keys)) => {
                if let Some(text) = file_text(name, text, problems) {
                    set(merged, &keys, template, &text, name, problems);
                }
            }
            Some(_) | None => problems.push(Problem::new(name, "is not a known setting")),
        }
    }
}

/// What is usual for a vendor's setting: the text of its variable, else the path of its file, where there is one.
fn usual_text(usual: &UsualSetting, env: &BTreeMap<String, String>) -> Option<String> {
    let of = |name: &str| env.get(name).filter(|text| !text.is_empty());
    if let Some(text) = of(usual.variable) {
        return Some(text.clone());
    }
    let path = Path::new(of("HOME")?).join(usual.file_at_home?);
    path.is_file().then(|| path.to_str().map(str::to_owned)).flatten()
}

fn file_text(name: &str, path: &str, problems: &mut Vec<Problem>) -> Option<String> {
    match std::fs::read_to_string(path) {
        // Some editors begin a file with a mark of its encoding.
        Ok(text) => Some(text.strip_prefix('\u{feff}').unwrap_or(&text).trim().to_owned()),
        Err(error) => {
            problems.push(Problem::new(name, format!("{path} cannot be read: {error}")));
            None
        }
    }
}

/// Sets a key from a variable's text, read as the type that the default has.
fn set(merged: &mut Table, keys: &[&str], template: &Value, text: &str, name: &str, problems: &mut Vec<Problem>) {
    let value = match template {
        Value::Integer(_) => text.trim().parse().map(Value::Integer).map_err(|_| "must be a whole number"),
        Value::Float(_) => text.trim().parse().map(Value::Float).map_err(|_| "must be a number"),
        Value::Boolean(_) => text.trim().parse().map(Value::Boolean).map_err(|_| "must be true or false"),
        Value::Array(_) => {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            Ok(Value::Array(items.map(|item| Value::String(item.to_owned())).collect()))
        }
        Value::String(_) | Value::Datetime(_) | Value::Table(_) => Ok(Value::String(text.to_owned())),
    };
    match value {
        Ok(value) => {
            if let Some(slot) = find(merged, keys) {
                *slot = value;
            }
        }
        Err(reason) => problems.push(Problem::new(name, reason)),
    }
}

/// The settings at `path` as types. A value that does not fit is noted and replaced by its default, until all fit.
pub(super) fn fit<T: DeserializeOwned>(
    merged: &mut Table,
    defaults: &Table,
    path: &str,
    problems: &mut Vec<Problem>,
) -> Option<T> {
    fit_by(|table| serde_path_to_error::deserialize(Value::Table(table)), merged, defaults, path, problems)
}
