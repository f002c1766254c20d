//! The top of a schema: the arguments themselves, always an object. Most vendors take no alternatives there, so these
//! become one object that allows them all, and words that say which go together.

use serde_json::{Map, Value, json};

use super::merge;
use super::words;

/// 24 alternatives are described one by one; more are hardly ever meant.
const MAX_ALTERNATIVES: usize = 24;

/// Whether the schema is an object with `properties`.
pub(super) fn is_object(schema: &Value) -> bool {
    let Some(map) = schema.as_object() else { return false };
    map.get("type").is_some_and(|kind| kind == "object")
        && map.get("properties").is_some_and(Value::is_object)
        && !map.contains_key("$schema")
}

/// Whether it also has nothing that [`flat`] would change.
pub(super) fn is_plain(schema: &Value) -> bool {
    is_object(schema) && ["$ref", "allOf", "anyOf", "oneOf", "enum", "not"].iter().all(|key| schema.get(key).is_none())
}

/// `schema` as an object with `properties`.
fn object(schema: &Map<String, Value>) -> Map<String, Value> {
    let mut schema = schema.clone();
    if schema.get("type").is_none_or(|kind| kind != "object") {
        match schema.insert("type".to_owned(), json!("object")) {
            // Arguments are never null, so a type that allows it says the same.
            Some(Value::Array(kinds)) if kinds.contains(&json!("object")) => {}
            Some(kind) => words::add(&mut schema, &words::describe("type", &kind)),
            None => {}
        }
    }
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema.insert("properties".to_owned(), json!({}));
    }
    schema
}

/// `schema` as one object: references and `allOf` of the top merged, alternatives united, the rest described.
pub(super) fn flat(schema: &Map<String, Value>) -> Map<String, Value> {
    let root = Value::Object(schema.clone());
    let mut flat = merge::merged(&root, schema);
    for keyword in ["oneOf", "anyOf"] {
        if let Some(alternatives) = flat.shift_remove(keyword) {
            unite(&root, &mut flat, keyword, &alternatives);
        }
    }
    for keyword in ["enum", "not"] {
        if let Some(value) = flat.shift_remove(keyword) {
            words::add(&mut flat, &words::describe(keyword, &value));
        }
    }
    object(&flat)
}

/// Adds the properties of all alternatives, and requires what all of them require.
fn unite(root: &Value, schema: &mut Map<String, Value>, keyword: &str, alternatives: &Value) {
    let parts = alternatives.as_array().into_iter().flatten().filter_map(Value::as_object);
    let parts: Vec<_> = parts.take(MAX_ALTERNATIVES).map(|part| merge::merged(root, part)).collect();
    let Some((first, others)) = parts.split_first() else { return };

    let mut properties: Map<String, Value> = Map::new();
    for (name, property) in parts.iter().filter_map(|part| part.get("properties")?.as_object()).flatten() {
        match properties.get_mut(name) {
            Some(known) if known == property => {}
            Some(known) => match known.as_object_mut().and_then(united) {
                Some(variants) if variants.contains(property) => {}
                Some(variants) => variants.push(property.clone()),
                None => *known = json!({"anyOf": [known.take(), property]}),
            },
            None => drop(properties.insert(name.clone(), property.clone())),
        }
    }
    let all_require = |name: &&Value| others.iter().all(|part| required(part).contains(name));
    let required_by_all: Vec<Value> = required(first).iter().filter(all_require).cloned().collect();

    let which = if keyword == "oneOf" { "Exactly one" } else { "At least one" };
    let mut sentence = format!("{which} of these forms:");
    for (number, part) in (1..).zip(&parts) {
        let separator = if number == parts.len() { "." } else { ";" };
        sentence.push_str(&format!(" ({number}) {}{separator}", described(part)));
    }
    let count = alternatives.as_array().map_or(0, Vec::len);
    if count > parts.len() {
        sentence.push_str(&format!(" And {} more.", count - parts.len()));
    }
    let mut demanded = Map::new();
    demanded.insert("properties".to_owned(), Value::Object(properties));
    if !required_by_all.is_empty() {
        demanded.insert("required".to_owned(), Value::Array(required_by_all));
    }
    merge::combine(schema, demanded);
    words::add(schema, &sentence);
}

/// The alternatives of a property that [`unite`] has put together.
fn united(property: &mut Map<String, Value>) -> Option<&mut Vec<Value>> {
    if property.len() != 1 {
        return None;
    }
    property.get_mut("anyOf")?.as_array_mut()
}

/// An alternative in words: what it is called, which properties it has, and what else it demands.
fn described(part: &Map<String, Value>) -> String {
    let text = |key: &str| part.get(key).and_then(Value::as_str).map(|text| text.trim_end_matches('.').to_owned());
    let mut pieces: Vec<String> = text("description").or_else(|| text("title")).into_iter().collect();
    let required = required(part);
    let none = Map::new();
    let properties = part.get("properties").and_then(Value::as_object).unwrap_or(&none);
    for (name, property) in properties {
        let value = property.get("const").map(|value| format!(" = {value}")).unwrap_or_default();
        let must = if required.iter().any(|required| required == name) { " (required)" } else { "" };
        pieces.push(format!("{name}{value}{must}"));
    }
    let names = required.iter().filter_map(Value::as_str).filter(|name| !properties.contains_key(*name));
    pieces.extend(names.map(|name| format!("{name} (required)")));
    let described = ["type", "title", "description", "properties", "required"];
    let others = part.iter().filter(|(key, _)| !described.contains(&key.as_str()));
    pieces.extend(others.map(|(key, value)| words::describe(key, value).trim_end_matches('.').to_owned()));
    pieces.retain(|piece| !piece.is_empty());
    if pieces.is_empty() { "nothing in particular".to_owned() } else { pieces.join(", ") }
}

fn required(part: &Map<String, Value>) -> &[Value] {
    part.get("required").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
