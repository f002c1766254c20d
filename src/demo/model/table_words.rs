//! Table configurations, reference data and database schemas in words.

use serde_json::{Map, Value};

use super::columns;
use super::errors;
use super::words;

/// The configurations there are.
pub(super) fn configs(found: &Value) -> String {
    let listed = words::items(found, &["configs"]);
    if listed.is_empty() {
        return "There are no table configurations.".to_owned();
    }
    let lines = listed.iter().map(|config| {
        let name = words::bold(words::str_at(config, &["name"]).unwrap_or("(unnamed)"));
        match words::str_at(config, &["description"]) {
            Some(text) => format!("{name}: {}", words::plain(text).trim_end_matches('.')),
            None => name,
        }
    });
    let are = if listed.len() == 1 { "There is" } else { "There are" };
    format!("{are} {}:\n\n{}", words::count(listed.len(), "table configuration"), words::bullets(lines, None))
}

/// What a configuration shows.
pub(super) fn config(name: Option<&str>, config: &Value) -> String {
    let title = name.or_else(|| words::str_at(config, &["title"])).unwrap_or("This table");
    let mut text = words::bold(title);
    match columns::source(config) {
        Some((schema, table)) => {
            text.push_str(&format!(" shows records of {}.", words::code(&format!("{schema}.{table}"))))
        }
        None => text.push_str(" is a table configuration."),
    }
    let all = columns::columns(config);
    let lines = all.iter().map(|column| {
        let kind = column.kind.as_deref().map(|kind| format!(", {}", words::plain(kind))).unwrap_or_default();
        let hidden = if column.hidden { ", hidden" } else { "" };
        format!("{} ({}{kind}{hidden})", words::bold(&column.header), words::code(&column.key))
    });
    match all.len() {
        0 => text.push_str(" It has no columns."),
        n => text.push_str(&format!(" It has {}:\n\n{}", words::count(n, "column"), words::bullets(lines, None))),
    }
    let list = |path: &str| config.pointer(path).map_or(&[][..], |list| words::items(list, &[]));
    let filters: Vec<String> = list("/data_source/0/filters").iter().take(10).map(filter).collect();
    if !filters.is_empty() {
        text.push_str(&format!("\n\nIt is filtered: {}.", words::joined(&filters)));
    }
    let sort: Vec<String> = list("/data_source/0/sort").iter().take(10).map(sort_key).collect();
    if !sort.is_empty() {
        text.push_str(&format!("\n\nIt is sorted by {}.", words::joined(&sort)));
    }
    text
}

fn filter(filter: &Value) -> String {
    let column = words::str_at(filter, &["column"]).unwrap_or("a column");
    let operator = words::str_at(filter, &["operator"]).unwrap_or("eq");
    let (operator, is_unary) = match operator {
        "eq" => ("is", false),
        "neq" => ("is not", false),
        "gt" => ("is greater than", false),
        "gte" => ("is at least", false),
        "lt" => ("is less than", false),
        "lte" => ("is at most", false),
        "like" | "ilike" => ("matches", false),
        "in" => ("is one of", false),
        "is_null" => ("is empty", true),
        "is_not_null" => ("is not empty", true),
        other => (other, false),
    };
    let value = filter.get("value").filter(|value| !is_unary && !value.is_null()).map(words::brief);
    let value = value.map(|value| format!(" {}", words::code(&value))).unwrap_or_default();
    format!("{} {}{value}", words::code(column), words::plain(operator))
}

fn sort_key(key: &Value) -> String {
    let column = words::code(words::str_at(key, &["column"]).unwrap_or("a column"));
    match words::str_at(key, &["direction"]) {
        Some("desc" | "DESC") => format!("{column} descending"),
        Some(_) | None => format!("{column} ascending"),
    }
}

/// The reference data, a line for each of its parts.
pub(super) fn reference(found: &Value) -> String {
    let lines: Vec<String> = match found {
        Value::Object(parts) => {
            parts
                .iter()
                .map(|(key, value)| {
                    // Where a part says more than its list, the list is what was asked for.
                    let list = ["all", "tokens"].iter().find_map(|key| value.get(key)).unwrap_or(value);
                    let said = match list.as_object() {
                        Some(map) if key == "pg_types" => shown_as(map),
                        Some(map) => listed(map),
                        None => words::brief(list),
                    };
                    let title = if key == "pg_types" { "Database Types".to_owned() } else { words::titled(key) };
                    format!("**{title}**: {said}")
                })
                .collect()
        }
        other => vec![words::brief(other)],
    };
    format!("Tables can use the following:\n\n{}", words::bullets(lines, None))
}

/// Which column type shows which database types.
fn shown_as(part: &Map<String, Value>) -> String {
    let shown = part.get("shown_as").and_then(Value::as_object);
    let types = shown.into_iter().flatten();
    types.map(|(shown, names)| format!("{} as {shown}", words::brief(names))).collect::<Vec<_>>().join("; ")
}

/// The keys of a part whose members explain them.
fn listed(part: &Map<String, Value>) -> String {
    let keys: Vec<String> = part.keys().take(40).map(|key| words::code(key)).collect();
    words::joined(&keys)
}

/// What the database schema search found.
pub(super) fn schema(schema: Option<&str>, table: Option<&str>, found: &Value) -> String {
    let (noun, place, listed) = match (schema, table) {
        (Some(schema), Some(table)) => {
            ("column", format!(" in {}", words::code(&format!("{schema}.{table}"))), words::items(found, &["columns"]))
        }
        (Some(schema), None) => {
            ("table", format!(" in the schema {}", words::code(schema)), words::items(found, &["tables"]))
        }
        (None, _) => ("schema", String::new(), words::items(found, &["schemas"])),
    };
    if listed.is_empty() {
        return format!("I found no {noun}{place}.");
    }
    let lines = listed.iter().map(|entry| {
        let name = words::code(entry.as_str().or_else(|| words::str_at(entry, &["name"])).unwrap_or("(unnamed)"));
        let kind = words::str_at(entry, &["data_type"]).map(|kind| format!(" ({})", words::plain(kind)));
        format!("{name}{}", kind.unwrap_or_default())
    });
    let mut text = format!("I found {}{place}:\n\n{}", words::count(listed.len(), noun), words::bullets(lines, None));
    let links: Vec<String> = words::items(found.get("relationships").unwrap_or(&Value::Null), &[])
        .iter()
        .take(20)
        .filter_map(|link| {
            let to = words::str_at(link, &["referenced_table"])?;
            Some(format!("{} (by {})", words::code(to), words::code(words::str_at(link, &["column_name"])?)))
        })
        .collect();
    if !links.is_empty() {
        text.push_str(&format!("\n\nIt refers to {}.", words::joined(&links)));
    }
    text
}

/// What a validation said.
pub(super) fn verdict(found: &Value) -> String {
    match found.get("valid").and_then(Value::as_bool) {
        Some(false) => format!("The configuration is not valid:\n\n{}", words::bullets(errors::problems(found), None)),
        Some(true) | None => "The configuration is valid.".to_owned(),
    }
}
