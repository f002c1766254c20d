//! Sections by a name of the operator's choice, such as `[mcp.NAME]`: what each has by default, and values that stand
//! elsewhere, so that no key need stand in the settings.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use super::Problem;
use super::fitting::PREFIX;

/// 32 characters of a name.
const NAME_CHARS: usize = 32;

/// The names of sections below `path` in a file's `layer` and in the environment. What is no section is noted and
/// removed.
pub(super) fn names(
    layer: &mut Table,
    path: &[&str],
    env: &BTreeMap<String, String>,
    problems: &mut Vec<Problem>,
) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    if let Some(sections) = below(layer, path) {
        sections.retain(|name, section| {
            let is_section = section.is_table();
            match is_section {
                true => drop(names.insert(name.to_owned())),
                false => problems.push(Problem::new(format!("{}.{name}", path.join(".")), "must be a section")),
            }
            is_section
        });
    }
    let prefix = format!("{}__", path.join("__"));
    let variables = env.keys().filter_map(|variable| Some(variable.strip_prefix(PREFIX)?.to_lowercase()));
    names.extend(variables.filter_map(|path| Some(path.strip_prefix(&*prefix)?.split_once("__")?.0.to_owned())));
    names
}

/// Adds the section `default` below `path` to `defaults`, once for each of `names`.
pub(super) fn add(defaults: &mut Table, path: &[&str], names: BTreeSet<String>, default: &Table) {
    if let Some(sections) = below(defaults, path) {
        sections.extend(names.into_iter().map(|name| (name, Value::Table(default.clone()))));
    }
}

/// Notes each of `names` that is not 1 to 32 of a-z 0-9 -.
pub(super) fn check_plain(path: &str, names: &BTreeSet<String>, problems: &mut Vec<Problem>) {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    for name in names {
        if name.is_empty() || name.len() > NAME_CHARS || !name.bytes().all(is_plain) {
            let reason = format!("the name of a section must be 1 to {NAME_CHARS} of a-z 0-9 -");
            problems.push(Problem::new(format!("{path}.{name}"), reason));
        }
    }
}

/// The table at `path`.
pub(super) fn below<'a>(table: &'a mut Table, path: &[&str]) -> Option<&'a mut Table> {
    path.iter().try_fold(table, |table, key| table.get_mut(*key)?.as_table_mut())
}

/// As [`fetch`] of the value at `key` of `section`, where it is such a table.
pub(super) fn fetch_one(
    section: &mut Table,
    key: &str,
    path: &str,
    env: &BTreeMap<String, String>,
    problems: &mut Vec<Problem>,
) {
    if let Some(value @ Value::Table(_)) = section.get_mut(key) {
        let mut one = Table::from_iter([(key.to_owned(), value.clone())]);
        fetch(&mut one, path, env, problems);
        *value = one.remove(key).unwrap_or(Value::String(String::new()));
    }
}

/// Replaces `{ env = "NAME" }` and `{ file = "PATH" }`, each with a `prefix` if there is one, by the text they name.
pub(super) fn fetch(values: &mut Table, path: &str, env: &BTreeMap<String, String>, problems: &mut Vec<Problem>) {
    values.retain(|name, value| {
        let text = match value {
            Value::Table(source) => fetched(source, env),
            Value::String(text) => Ok(text.clone()),
            // The value may be a secret: it is not repeated.
            _ => Err("must be text, or a table with env or file".to_owned()),
        };
        match text {
            Ok(text) => {
                *value = Value::String(text);
                true
            }
            Err(reason) => {
                problems.push(Problem::new(format!("{path}.{name}"), reason));
                false
            }
        }
    });
}

fn fetched(source: &Table, env: &BTreeMap<String, String>) -> Result<String, String> {
    if let Some(key) = source.keys().find(|key| !["env", "file", "prefix"].contains(&key.as_str())) {
        return Err(format!("{key} is not a known key; there are env, file and prefix"));
    }
    let text = |key: &str| source.get(key).map(|value| value.as_str().ok_or_else(|| format!("{key} must be text")));
    let prefix = text("prefix").transpose()?.unwrap_or_default();
    let value = match (text("env").transpose()?, text("file").transpose()?) {
        (Some(name), None) => env.get(name).cloned().ok_or_else(|| format!("there is no variable {name}"))?,
        (None, Some(path)) => {
            std::fs::read_to_string(path).map_err(|error| format!("{path} cannot be read: {error}"))?
        }
        (Some(_), Some(_)) | (None, None) => return Err("must have one of env and file".to_owned()),
    };
    Ok(format!("{prefix}{}", value.trim()))
}
