//! `[tool.values.ARGUMENT]`: what is made of what a model gives for an argument.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::config::document::{Location, Table};
use crate::tools::rest::rules::{Edge, Rule, key};

/// The rules in `table`, by argument and with their places; what is wrong is noted.
pub(super) fn read(mut table: Table<'_>) -> Vec<(Location<'_>, String, Vec<Rule>)> {
    let mut found = Vec::new();
    for argument in table.keys() {
        let Some(mut table) = table.table(&argument) else { continue };
        let place = table.location();
        let mut rules = Vec::new();
        for (name, rule) in [("trim", Rule::Trim), ("json", Rule::Json), ("uuid", Rule::Uuid)] {
            if table.flag(name).unwrap_or_default() {
                rules.push(rule);
            }
        }
        rules.extend(map(&mut table).map(Rule::Map));
        rules.extend(table.one_of("date", &[("start", Edge::Start), ("end", Edge::End)]).map(Rule::Date));
        table.finish();
        found.push((place, argument, rules));
    }
    found
}

/// The rules of `found` for `argument`: those of its name, else the first of `*` and its end.
pub(super) fn find<'f, 'a>(
    found: &'f [(Location<'a>, String, Vec<Rule>)],
    argument: &str,
) -> Option<&'f (Location<'a>, String, Vec<Rule>)> {
    let ends = |name: &str| name.strip_prefix('*').is_some_and(|end| argument.ends_with(end));
    let exact = found.iter().find(|(_, name, _)| name == argument);
    exact.or_else(|| found.iter().find(|(_, name, _)| ends(name)))
}

/// The values of `map` by the texts that mean them. What a value is itself need not be among them.
fn map(table: &mut Table<'_>) -> Option<BTreeMap<String, String>> {
    let entry = table.take("map")?;
    let place = entry.location();
    let Value::Object(fields) = entry.json()? else {
        place.wrong("must be a table");
        return None;
    };
    let mut values = BTreeMap::new();
    for (value, texts) in fields {
        let texts = match texts {
            Value::String(text) => vec![Value::String(text)],
            Value::Array(texts) => texts,
            _ => Vec::new(),
        };
        let known = texts.iter().filter_map(Value::as_str).chain([value.as_str()]);
        for text in known.map(key).collect::<Vec<_>>() {
            if values.insert(text.clone(), value.clone()).is_some_and(|other| other != value) {
                place.wrong(format_args!("has {text:?} for two values"));
            }
        }
        if texts.iter().any(|text| !text.is_string()) {
            place.wrong(format_args!("{value} must be a list of texts"));
        }
    }
    Some(values)
}
