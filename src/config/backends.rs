//! `[backends.NAME]`: further REST APIs by a name of the operator's choice. Address, key and headers may come from the
//! environment or a file.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::{Problem, named};

/// Adds to `defaults` what each backend's settings are by default, and puts the values in its `layer` that stand
/// elsewhere.
pub(super) fn prepare(
    layer: &mut Table,
    defaults: &mut Table,
    env: &BTreeMap<String, String>,
    problems: &mut Vec<Problem>,
) {
    let names = named::names(layer, &["backends"], env, problems);
    for (name, section) in named::below(layer, &["backends"]).into_iter().flatten() {
        let (path, Value::Table(section)) = (format!("backends.{name}"), section) else { continue };
        if let Some(Value::Table(headers)) = section.get_mut("headers") {
            named::fetch(headers, &format!("{path}.headers"), env, problems);
        }
        for key in ["base_url", "api_key", "token_url", "client_id", "client_secret"] {
            named::fetch_one(section, key, &path, env, problems);
        }
        if let Some(Value::Table(service)) = section.get_mut("service") {
            for key in ["token", "token_url", "client_id", "client_secret"] {
                named::fetch_one(service, key, &format!("{path}.service"), env, problems);
            }
        }
    }
    named::check_plain("backends", &names, problems);
    let text = |text: &str| Value::String(text.to_owned());
    let default = Table::from_iter([
        ("base_url".to_owned(), text("")),
        ("timeout_s".to_owned(), Value::Integer(30)),
        ("credentials".to_owned(), text("caller")),
        ("api_key".to_owned(), text("")),
        ("token_url".to_owned(), text("")),
        ("client_id".to_owned(), text("")),
        ("client_secret".to_owned(), text("")),
        ("scope".to_owned(), text("")),
        ("audience".to_owned(), text("")),
        ("headers".to_owned(), Value::Table(Table::new())),
        ("service".to_owned(), service_defaults(defaults)),
    ]);
    named::add(defaults, &["backends"], names, &default);
}

/// What `[backend.service]` is by default, each of them is.
fn service_defaults(defaults: &Table) -> Value {
    let of_main = defaults.get("backend").and_then(|backend| backend.get("service"));
    of_main.cloned().unwrap_or_else(|| Value::Table(Table::new()))
}
