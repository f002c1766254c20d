//! `[signals.subscribers.NAME]`: who hears of signals, by a name of the operator's choice. Address and secrets may come
//! from the environment or a file.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::{Problem, named};

/// Where they stand.
const PATH: [&str; 2] = ["signals", "subscribers"];

/// Adds to `defaults` what each subscriber's settings are by default, and puts the values in its `layer` that stand
/// elsewhere.
pub(super) fn prepare(
    layer: &mut Table,
    defaults: &mut Table,
    env: &BTreeMap<String, String>,
    problems: &mut Vec<Problem>,
) {
    let names = named::names(layer, &PATH, env, problems);
    for (name, section) in named::below(layer, &PATH).into_iter().flatten() {
        let (path, Value::Table(section)) = (format!("signals.subscribers.{name}"), section) else { continue };
        for key in ["url", "secret", "previous_secret"] {
            named::fetch_one(section, key, &path, env, problems);
        }
    }
    named::check_plain("signals.subscribers", &names, problems);
    let text = |text: &str| Value::String(text.to_owned());
    let default = Table::from_iter([
        ("url".to_owned(), text("")),
        ("events".to_owned(), Value::Array(Vec::new())),
        ("secret".to_owned(), text("")),
        ("previous_secret".to_owned(), text("")),
        ("tenants".to_owned(), Value::Array(Vec::new())),
        ("private".to_owned(), Value::Boolean(false)),
        ("timeout_s".to_owned(), Value::Integer(10)),
        ("max_attempts".to_owned(), Value::Integer(60)),
    ]);
    named::add(defaults, &PATH, names, &default);
}
