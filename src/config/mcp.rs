//! `[mcp.NAME]`: servers of tools by a name of the operator's choice. Values of headers and variables may come from the
//! environment or a file, and so may an address, so that no key need stand in the settings.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use super::fitting::PREFIX;
use super::{Config, Problem};

/// What a program gets of our own environment: enough to be found and to run, and none of our keys.
const INHERITED: [&str; 9] =
    ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/// 32 characters of a name: it stands before every name of a tool, which has 64.
const NAME_CHARS: usize = 32;

/// Adds to `defaults` what each server's settings are by default, and puts the values in its `layer` where they are
/// asked from elsewhere.
pub(super) fn prepare(
    layer: &mut Table,
    defaults: &mut Table,
    env: &BTreeMap<String, String>,
    problems: &mut Vec<Problem>,
) {
    let mut names = BTreeSet::new();
    if let Some(Value::Table(servers)) = layer.get_mut("mcp") {
        servers.retain(|name, section| {
            let path = format!("mcp.{name}");
            let Value::Table(section) = section else {
                problems.push(Problem::new(path, "must be a section"));
                return false;
            };
            for key in ["headers", "env"] {
                if let Some(Value::Table(values)) = section.get_mut(key) {
                    fetch(values, &format!("{path}.{key}"), env, problems);
                }
            }
            if let Some(url @ Value::Table(_)) = section.get_mut("url") {
                let mut one = Table::from_iter([("url".to_owned(), url.clone())]);
                fetch(&mut one, &path, env, problems);
                *url = one.remove("url").unwrap_or(Value::String(String::new()));
            }
            names.insert(name.to_owned());
            true
        });
    }
    let variables = env.keys().filter_map(|variable| Some(variable.strip_prefix(PREFIX)?.to_lowercase()));
    let of_servers = variables.filter_map(|path| Some(path.strip_prefix("mcp__")?.split_once("__")?.0.to_owned()));
    names.extend(of_servers);
    let Some(Value::Table(servers)) = defaults.get_mut("mcp") else { return };
    for name in names {
        let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if name.is_empty() || name.len() > NAME_CHARS || !name.bytes().all(is_plain) {
            let reason = format!("a server's name must be 1 to {NAME_CHARS} of a-z 0-9 -");
            problems.push(Problem::new(format!("mcp.{name}"), reason));
        }
        servers.insert(name, Value::Table(server()));
    }
}

/// A server's settings before anybody has said anything.
fn server() -> Table {
    let default = crate::tools::mcp::McpConfig::default();
    let number = |seconds: u64| Value::Integer(i64::try_from(seconds).unwrap_or(i64::MAX));
    let mut table = Table::new();
    for key in ["url", "command"] {
        table.insert(key.to_owned(), Value::String(String::new()));
    }
    for key in ["args", "tools", "roles", "read_only"] {
        table.insert(key.to_owned(), Value::Array(Vec::new()));
    }
    for key in ["env", "headers", "pins"] {
        table.insert(key.to_owned(), Value::Table(Table::new()));
    }
    table.insert("approval".to_owned(), Value::String(default.approval));
    table.insert("not_requester".to_owned(), Value::Boolean(default.not_requester));
    table.insert("timeout_s".to_owned(), number(default.timeout_s));
    table.insert("connect_timeout_s".to_owned(), number(default.connect_timeout_s));
    table
}

/// Replaces `{ env = "NAME" }` and `{ file = "PATH" }`, each with a `prefix` if there is one, by the text they name.
fn fetch(values: &mut Table, path: &str, env: &BTreeMap<String, String>, problems: &mut Vec<Problem>) {
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

/// Gives the programs of `config` what they get of our own environment.
pub(super) fn inherit(config: &mut Config, env: &BTreeMap<String, String>) {
    let inherited: BTreeMap<_, _> =
        INHERITED.iter().filter_map(|name| Some(((*name).to_owned(), env.get(*name)?.clone()))).collect();
    for server in config.mcp.values_mut() {
        server.inherited.clone_from(&inherited);
    }
}
