//! `[mcp.NAME]`: servers of tools by a name of the operator's choice. Values of headers and variables, and an address, may
//! come from the environment or a file.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::{Config, Problem, named};

/// What a program gets of our own environment: enough to be found and to run, and none of our keys.
const INHERITED: [&str; 9] =
    ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Adds to `defaults` what each server's settings are by default, and puts the values in its `layer` where they are
/// asked from elsewhere.
pub(super) fn prepare(
    layer: &mut Table,
    defaults: &mut Table,
    env: &BTreeMap<String, String>,
    problems: &mut Vec<Problem>,
) {
    let names = named::names(layer, &["mcp"], env, problems);
    for (name, section) in named::below(layer, &["mcp"]).into_iter().flatten() {
        let (path, Value::Table(section)) = (format!("mcp.{name}"), section) else { continue };
        for key in ["headers", "env"] {
            if let Some(Value::Table(values)) = section.get_mut(key) {
                named::fetch(values, &format!("{path}.{key}"), env, problems);
            }
        }
        named::fetch_one(section, "url", &path, env, problems);
        named::fetch_one(section, "client_secret", &path, env, problems);
    }
    named::check_plain("mcp", &names, problems);
    named::add(defaults, &["mcp"], names, &server());
}

/// A server's default settings.
fn server() -> Table {
    let default = crate::tools::mcp::McpConfig::default();
    let number = |seconds: u64| Value::Integer(i64::try_from(seconds).unwrap_or(i64::MAX));
    let mut table = Table::new();
    for key in ["url", "command", "backend", "token_url", "client_id", "client_secret", "scope", "audience"] {
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
    table.insert("send_resource".to_owned(), Value::Boolean(default.send_resource));
    table.insert("timeout_s".to_owned(), number(default.timeout_s));
    table.insert("connect_timeout_s".to_owned(), number(default.connect_timeout_s));
    table
}

/// Gives the programs of `config` what they get of our own environment.
pub(super) fn inherit(config: &mut Config, env: &BTreeMap<String, String>) {
    let inherited: BTreeMap<_, _> =
        INHERITED.iter().filter_map(|name| Some(((*name).to_owned(), env.get(*name)?.clone()))).collect();
    for server in config.mcp.values_mut() {
        server.inherited.clone_from(&inherited);
    }
}

/// Gives the servers of `config` that name a backend what it presents.
pub(super) fn lend(config: &mut Config) {
    for server in config.mcp.values_mut() {
        if let Some(backend) = config.backends.get(&server.backend) {
            server.take(backend);
        }
    }
}
