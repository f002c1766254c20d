//! A tool's JSON Schema as each vendor takes it. Vendors drop or refuse what they do not know, so what one cannot take as
//! a keyword goes into the nearest `description`: the meaning stays, and nothing is lost in silence.
//!
//! | function | what is taken | by |
//! |---|---|---|
//! | [`with_object_top`] | everything, but the top must be an object without alternatives | Claude |
//! | [`with_object_top_and_items`] | the same, and lists must have `items` | chat completions |
//! | [`with_references`] | the keywords that Gemini's API documents for JSON Schema; references to `$defs` | Gemini |
//! | [`without_references`] | what the types of Ollama's server have fields for; no references | Ollama |
//!
//! **Invariant:** pure and bounded. Whatever the schema is, the result is an object schema of bounded size. A schema that
//! a vendor takes as it is costs one walk and no copy.

mod closed;
mod lists;
mod merge;
mod refs;
mod rewrite;
mod top;
mod words;

use std::borrow::Cow;

use serde_json::{Map, Value, json};

pub(crate) use self::closed::{closed, is_strict};
use self::rewrite::{Rewriter, Subset};

/// 64 levels of JSON: real schemas have a dozen.
const MAX_LEVELS: usize = 64;

/// 20 000 JSON values in one schema: a hundred times the largest real one.
const MAX_VALUES: usize = 20_000;

/// 256 KiB of names, texts and values in one schema: more than many a model can read.
const MAX_BYTES: usize = 256 << 10;

/// `schema` whose top is an object without alternatives.
pub(crate) fn with_object_top(schema: &Value) -> Cow<'_, Value> {
    if top::is_plain(schema) && fits(schema) {
        return Cow::Borrowed(schema);
    }
    Cow::Owned(Value::Object(sound(schema).map_or_else(too_large, |schema| top::flat(&schema))))
}

/// `schema` for `parametersJsonSchema`; `None` for a tool without arguments, which must not have one.
pub(crate) fn with_references(schema: &Value) -> Option<Cow<'_, Value>> {
    let schema = for_subset(schema, Subset::WithReferences);
    let says_nothing = |map: &Map<String, Value>| {
        let is_empty = map.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty);
        let is_closed = matches!(map.get("additionalProperties"), None | Some(Value::Bool(false)));
        is_empty && is_closed && !map.contains_key("description")
    };
    (!schema.as_object().is_some_and(says_nothing)).then_some(schema)
}

/// A tool's description and schema where a schema has no description at the top.
pub(crate) fn without_references<'a>(description: &'a str, schema: &'a Value) -> (Cow<'a, str>, Cow<'a, Value>) {
    let mut schema = for_subset(schema, Subset::WithoutReferences);
    if schema.get("description").is_none() {
        return (Cow::Borrowed(description), schema);
    }
    let top = schema.to_mut().as_object_mut().and_then(|schema| schema.shift_remove("description"));
    let mut described = Map::new();
    words::add(&mut described, description);
    words::add(&mut described, top.as_ref().and_then(Value::as_str).unwrap_or_default());
    match described.remove("description") {
        Some(Value::String(text)) => (Cow::Owned(text), schema),
        _ => (Cow::Borrowed(description), schema),
    }
}

/// The same with `items` in each list.
pub(crate) fn with_object_top_and_items(schema: &Value) -> Cow<'_, Value> {
    if top::is_plain(schema) && fits(schema) && lists::have_items(schema) {
        return Cow::Borrowed(schema);
    }
    let mut schema = sound(schema).map_or_else(too_large, |schema| top::flat(&schema));
    lists::give_items(&mut schema);
    Cow::Owned(Value::Object(schema))
}

fn for_subset<'a>(schema: &'a Value, subset: Subset) -> Cow<'a, Value> {
    if top::is_plain(schema) && fits(schema) && rewrite::is_plain(schema, subset) {
        return Cow::Borrowed(schema);
    }
    let rewritten = sound(schema).map(|schema| {
        let flat = Value::Object(top::flat(&schema));
        Rewriter::new(&flat, subset).document()
    });
    Cow::Owned(Value::Object(rewritten.unwrap_or_else(too_large)))
}

/// The schema as an object, without the key that names its dialect; `None` when it is over a bound. What is no object
/// says nothing about arguments.
fn sound(schema: &Value) -> Option<Map<String, Value>> {
    if !fits(schema) {
        return None;
    }
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    schema.shift_remove("$schema");
    Some(schema)
}

fn too_large() -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), json!({}));
    words::add(&mut schema, words::TOO_LARGE);
    schema
}

/// Whether `schema` is within the bounds.
fn fits(schema: &Value) -> bool {
    fn walk(value: &Value, levels: usize, values: &mut usize) -> bool {
        if levels == 0 || *values == 0 {
            return false;
        }
        *values -= 1;
        match value {
            Value::Array(items) => items.iter().all(|item| walk(item, levels - 1, values)),
            Value::Object(map) => map.values().all(|value| walk(value, levels - 1, values)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        }
    }
    walk(schema, MAX_LEVELS, &mut { MAX_VALUES }) && words::bytes(schema) <= MAX_BYTES
}

#[cfg(test)]
mod tests;
