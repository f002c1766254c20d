//! Lists whose items no keyword describes: chat completions refuse them, so they get `items` that take any.

use serde_json::{Map, Value, json};

/// Keywords with one schema; `items` was a list of schemas in older drafts.
const ONE: [&str; 11] = [
    "items",
    "additionalItems",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
];

/// Keywords with a list of schemas.
const LISTED: [&str; 5] = ["items", "prefixItems", "anyOf", "oneOf", "allOf"];

/// Keywords with schemas by name.
const NAMED: [&str; 5] = ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];

/// Whether each list in `schema` has items.
pub(super) fn have_items(schema: &Value) -> bool {
    let Some(map) = schema.as_object() else { return true };
    !lacks_items(map)
        && map.iter().all(|(keyword, value)| match value {
            Value::Object(one) if NAMED.contains(&keyword.as_str()) => one.values().all(have_items),
            Value::Object(_) if ONE.contains(&keyword.as_str()) => have_items(value),
            Value::Array(parts) if LISTED.contains(&keyword.as_str()) => parts.iter().all(have_items),
            _ => true,
        })
}

/// Gives each list in `schema` its items.
pub(super) fn give_items(schema: &mut Map<String, Value>) {
    if lacks_items(schema) {
        schema.insert("items".to_owned(), json!({}));
    }
    for (keyword, value) in schema.iter_mut() {
        match value {
            Value::Object(named) if NAMED.contains(&keyword.as_str()) => {
                named.values_mut().filter_map(Value::as_object_mut).for_each(give_items);
            }
            Value::Object(one) if ONE.contains(&keyword.as_str()) => give_items(one),
            Value::Array(parts) if LISTED.contains(&keyword.as_str()) => {
                parts.iter_mut().filter_map(Value::as_object_mut).for_each(give_items);
            }
            _ => {}
        }
    }
}

fn lacks_items(schema: &Map<String, Value>) -> bool {
    let is_list = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
        Some(kind) => kind == "array",
        None => false,
    };
    is_list && !schema.contains_key("items")
}
