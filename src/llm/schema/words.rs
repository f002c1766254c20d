//! Keywords in words, for the description of the schema that had them.

use serde_json::{Map, Value};

/// Stands where a schema is cut.
pub(super) const TOO_LARGE: &str = "Any value: its schema is too large to be shown.";

/// Stands where the schemas inside a schema are cut.
pub(super) const CUT: &str = "The schemas inside are too large to be shown.";

/// 400 characters of a keyword's value: enough for a pattern or a small schema.
const MAX_CHARS: usize = 400;

/// Keywords that say nothing about values.
const SILENT: [&str; 9] =
    ["$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "$vocabulary", "$dynamicAnchor", "deprecated"];

/// Adds a sentence to the schema's description.
pub(super) fn add(schema: &mut Map<String, Value>, sentence: &str) {
    if sentence.is_empty() {
        return;
    }
    match schema.get_mut("description") {
        Some(Value::String(text)) if !text.trim().is_empty() => {
            let end = text.trim_end().len();
            text.truncate(end);
            if !text.ends_with(['.', '!', '?', ':', ';']) {
                text.push('.');
            }
            text.push(' ');
            text.push_str(sentence);
        }
        Some(description) => *description = sentence.into(),
        None => {
            schema.insert("description".to_owned(), sentence.into());
        }
    }
}

/// What `keyword` with `value` demands, as a sentence; empty when it demands nothing.
pub(super) fn describe(keyword: &str, value: &Value) -> String {
    let value_text = display_value(value);
    match (keyword, value) {
        (silent, _) if SILENT.contains(&silent) => String::new(),
        ("additionalProperties" | "unevaluatedProperties" | "additionalItems" | "unevaluatedItems", Value::Bool(true))
        | ("uniqueItems" | "nullable" | "readOnly" | "writeOnly", Value::Bool(false))
        // As it is in old drafts, beside a bound that is described itself.
        | ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(false)) => String::new(),
        ("title", Value::String(title)) => format!("{}.", title.trim_end_matches('.')),
        ("const", _) => format!("Must be {value_text}."),
        ("enum", Value::Array(values)) => format!("One of: {}.", list(values)),
        ("default", _) => format!("Default: {value_text}."),
        ("example", _) => format!("Example: {value_text}."),
        ("examples", Value::Array(values)) => format!("Examples: {}.", list(values)),
        ("format", _) => format!("Format: {value_text}."),
        ("pattern", Value::String(pattern)) => format!("Must match the pattern {}.", cut(pattern)),
        ("minimum", _) => format!("At least {value_text}."),
        ("maximum", _) => format!("At most {value_text}."),
        ("exclusiveMinimum", Value::Bool(true)) => "The minimum itself is not allowed.".to_owned(),
        ("exclusiveMaximum", Value::Bool(true)) => "The maximum itself is not allowed.".to_owned(),
        ("exclusiveMinimum", _) => format!("Greater than {value_text}."),
        ("exclusiveMaximum", _) => format!("Less than {value_text}."),
        ("multipleOf", _) => format!("A multiple of {value_text}."),
        ("minLength", _) => format!("At least {value_text} characters."),
        ("maxLength", _) => format!("At most {value_text} characters."),
        ("minItems", _) => format!("At least {value_text} items."),
        ("maxItems", _) => format!("At most {value_text} items."),
        ("minProperties", _) => format!("At least {value_text} properties."),
        ("maxProperties", _) => format!("At most {value_text} properties."),
        ("uniqueItems", Value::Bool(true)) => "No item twice.".to_owned(),
        ("nullable", Value::Bool(true)) => "May be null.".to_owned(),
        ("additionalProperties" | "unevaluatedProperties", Value::Bool(false)) => "No other properties.".to_owned(),
        ("additionalProperties", _) => format!("Other properties must match {value_text}."),
        ("prefixItems" | "items", Value::Array(_)) => format!("Items in this order: {value_text}."),
        ("not", _) => format!("Must not match {value_text}."),
        ("contains", _) => format!("At least one item must match {value_text}."),
        ("propertyNames", _) => format!("Property names must match {value_text}."),
        ("oneOf", _) => format!("Must match exactly one of {value_text}."),
        ("anyOf", _) => format!("Must match one of {value_text}."),
        ("required", Value::Array(names)) => format!("Also required: {}.", list(names)),
        _ => format!("{}: {value_text}.", cut(keyword)),
    }
}

/// That one of the parts that were put together has only the properties `names`.
pub(super) fn closed<'n>(names: impl Iterator<Item = &'n String>) -> String {
    let names: Vec<Value> = names.map(|name| name.as_str().into()).collect();
    match names.is_empty() {
        true => "One part of it allows no properties.".to_owned(),
        false => format!("One part of it allows no properties but {}.", list(&names)),
    }
}

/// How large `value` is written, about: its names and texts, and 8 bytes for anything else.
pub(super) fn bytes(value: &Value) -> usize {
    match value {
        Value::Array(items) => 8 + items.iter().map(bytes).sum::<usize>(),
        Value::Object(map) => 8 + map.iter().map(|(key, value)| key.len() + bytes(value)).sum::<usize>(),
        Value::String(text) => 8 + text.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

/// Values as JSON, strings without their quotes where nothing is lost by it.
fn list(values: &[Value]) -> String {
    cut(&values.iter().map(display_value).collect::<Vec<_>>().join(", "))
}

fn display_value(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() && !text.contains([',', '"']) && text.trim() == text => cut(text),
        other => cut(&other.to_string()),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
