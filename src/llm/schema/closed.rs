//! Schemas that an answer is held to token by token. Vendors take few keywords there, and objects that are closed.
//!
//! | function | what is taken | by |
//! |---|---|---|
//! | [`is_strict`] | closed objects, each property required | chat completions with `strict` |
//! | [`closed`] | closed objects, no circles, few optional properties | Claude's structured outputs |
//!
//! <https://platform.openai.com/docs/guides/structured-outputs#supported-schemas>,
//! <https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations>.

use serde_json::{Map, Value, json};

use super::{fits, merge, refs, words};

/// Keywords that are taken with `strict`.
const STRICT: [&str; 21] = [
    "$schema",
    "$defs",
    "definitions",
    "$ref",
    "type",
    "title",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "enum",
    "const",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
];

/// 24 properties may be left out of one answer.
const MOST_OPTIONAL: usize = 24;

/// 16 of its values may be of several types.
const MOST_UNIONS: usize = 16;

/// 100 000 steps in search of circles.
const MAX_STEPS: usize = 100_000;

/// The formats that texts are held to.
const FORMATS: [&str; 9] = ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6"];

/// The formats that are taken with `strict`.
const STRICT_FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// Whether `schema` is taken with `strict`.
pub(crate) fn is_strict(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object") && schema.get("anyOf").is_none() && is_strict_part(schema)
}

fn is_strict_part(schema: &Value) -> bool {
    let Some(map) = schema.as_object() else { return false };
    if map.contains_key("$ref") {
        return map.len() == 1;
    }
    let is_of = |name: &str| match map.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == name),
        kind => kind.is_some_and(|kind| kind == name),
    };
    let says_what = ["type", "anyOf", "enum", "const"].iter().any(|keyword| map.contains_key(*keyword));
    let is_object = is_of("object") || map.contains_key("properties");
    says_what
        && is_object.then(|| is_whole(map)) != Some(false)
        && (!is_of("array") || map.contains_key("items"))
        && map.iter().all(|(keyword, value)| match (keyword.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(parts)) => parts.values().all(is_strict_part),
            ("items", part) => is_strict_part(part),
            ("anyOf", Value::Array(parts)) => parts.iter().all(is_strict_part),
            ("format", format) => format.as_str().is_some_and(|format| STRICT_FORMATS.contains(&format)),
            (keyword, _) => STRICT.contains(&keyword),
        })
}

/// Whether an object is closed and has all its properties.
fn is_whole(map: &Map<String, Value>) -> bool {
    let names = map.get("properties").and_then(Value::as_object).into_iter().flat_map(|named| named.keys());
    let required = map.get("required").and_then(Value::as_array);
    map.get("additionalProperties") == Some(&Value::Bool(false))
        && names.into_iter().all(|name| required.is_some_and(|required| required.iter().any(|known| known == name)))
}

/// `schema` as Claude's structured outputs take it; `None` where they take nothing like it: objects with any names, schemas
/// that are in themselves, and those with too many choices. What has no keyword there is said in words.
pub(crate) fn closed(schema: &Value) -> Option<Value> {
    if !fits(schema) || is_circular(schema) {
        return None;
    }
    let mut closing = Closing { root: schema, optional: 0, unions: 0 };
    let mut top = match closing.part(&merge::merged(schema, schema.as_object()?).into())? {
        Value::Object(top) => top,
        _ => return None,
    };
    for key in refs::KEYS {
        for (name, part) in schema.get(key).and_then(Value::as_object).into_iter().flatten() {
            let part = closing.part(part)?;
            let name = refs::name_in_defs(schema, (key, name)).into_owned();
            if let Some(named) = top.entry("$defs").or_insert_with(|| json!({})).as_object_mut() {
                named.insert(name, part);
            }
        }
    }
    (closing.optional <= MOST_OPTIONAL && closing.unions <= MOST_UNIONS).then_some(Value::Object(top))
}

/// Whether some part of the schema is in itself.
fn is_circular(root: &Value) -> bool {
    let mut steps = MAX_STEPS;
    let definitions = refs::KEYS.iter().flat_map(|key| {
        let named = root.get(*key).and_then(Value::as_object).into_iter().flatten();
        named.map(|(name, part)| ((*key, name.as_str()), part))
    });
    definitions
        .into_iter()
        .any(|(definition, part)| refs::leads_to(root, part, definition, &mut Vec::new(), &mut steps) || steps == 0)
}

struct Closing<'a> {
    root: &'a Value,
    optional: usize,
    unions: usize,
}

impl Closing<'_> {
    fn part(&mut self, schema: &Value) -> Option<Value> {
        let schema = schema.as_object()?;
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let name = refs::name_in_defs(self.root, refs::definition(self.root, reference)?);
            return Some(json!({"$ref": format!("#/$defs/{name}")}));
        }
        let merged;
        let schema = match schema.contains_key("allOf") {
            true => {
                merged = merge::merged(self.root, schema);
                &merged
            }
            false => schema,
        };
        let mut closed = Map::new();
        let mut sentences = Vec::new();
        for (keyword, value) in schema {
            match (keyword.as_str(), value) {
                ("$defs" | "definitions" | "title" | "default", _) => {}
                ("description", Value::String(_)) | ("type", Value::String(_)) => {
                    drop(closed.insert(keyword.clone(), value.clone()))
                }
                ("type", Value::Array(_)) => {
                    self.unions += 1;
                    closed.insert(keyword.clone(), value.clone());
                }
                ("enum", Value::Array(values)) => drop(closed.insert(keyword.clone(), scalars(values)?)),
                ("const", value) => drop(closed.insert("enum".to_owned(), scalars(std::slice::from_ref(value))?)),
                ("anyOf" | "oneOf", Value::Array(parts)) if !closed.contains_key("anyOf") => {
                    self.unions += 1;
                    let parts: Option<Vec<Value>> = parts.iter().map(|part| self.part(part)).collect();
                    closed.insert("anyOf".to_owned(), Value::Array(parts?));
                }
                ("items", Value::Object(_)) => drop(closed.insert(keyword.clone(), self.part(value)?)),
                ("properties", Value::Object(properties)) => {
                    let required = schema.get("required").and_then(Value::as_array).map_or(0, Vec::len);
                    self.optional += properties.len().saturating_sub(required);
                    let part = |(name, part): (&String, &Value)| Some((name.clone(), self.part(part)?));
                    let parts: Option<Map<String, Value>> = properties.iter().map(part).collect();
                    closed.insert(keyword.clone(), Value::Object(parts?));
                }
                ("required", Value::Array(_)) => drop(closed.insert(keyword.clone(), value.clone())),
                ("additionalProperties", Value::Bool(false)) => {}
                ("additionalProperties" | "patternProperties" | "prefixItems", _) => return None,
                ("minItems", Value::Number(least)) if least.as_u64().is_some_and(|least| least <= 1) => {
                    drop(closed.insert(keyword.clone(), value.clone()))
                }
                ("format", Value::String(format)) if FORMATS.contains(&format.as_str()) => {
                    drop(closed.insert(keyword.clone(), value.clone()))
                }
                _ => sentences.push(words::describe(keyword, value)),
            }
        }
        let is_object = |kind: &Value| {
            kind == "object" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "object"))
        };
        if closed.get("type").is_some_and(is_object) || closed.contains_key("properties") {
            // An object of any names.
            closed.get("properties")?;
            closed.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
        sentences.iter().for_each(|sentence| words::add(&mut closed, sentence));
        Some(Value::Object(closed))
    }
}

/// Values of which none holds others.
fn scalars(values: &[Value]) -> Option<Value> {
    let are_plain = values.iter().all(|value| !value.is_object() && !value.is_array());
    are_plain.then(|| Value::Array(values.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_schema_is_held_to_and_what_has_no_keyword_is_said() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Trip",
            "type": "object",
            "properties": {
                "days": {"type": "integer", "minimum": 1},
                "kind": {"const": "trip"},
                "stops": {"type": "array", "items": {"$ref": "#/$defs/Stop"}, "minItems": 2},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
            },
            "required": ["days"],
            "$defs": {"Stop": {"type": "object", "properties": {"at": {"type": "string", "format": "date"}}}},
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "days": {"type": "integer", "description": "At least 1."},
                "kind": {"enum": ["trip"]},
                "stops": {"type": "array", "items": {"$ref": "#/$defs/Stop"}, "description": "At least 2 items."},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
            "required": ["days"],
            "additionalProperties": false,
            "$defs": {
                "Stop": {
                    "type": "object",
                    "properties": {"at": {"type": "string", "format": "date"}},
                    "additionalProperties": false,
                },
            },
        });
        assert_eq!(closed(&schema), Some(expected));
        let many: Map<String, Value> = (0..25).map(|at| (at.to_string(), json!({"type": "string"}))).collect();
        let node = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}});
        for (schema, reason) in [
            (json!({"type": "object"}), "any names"),
            (json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}), "more names"),
            (json!({"type": "object", "properties": {"pair": {"prefixItems": [{"type": "string"}]}}}), "a pair"),
            (json!({"type": "object", "properties": many}), "too many that may be left out"),
            (json!({"$ref": "#/$defs/Node", "$defs": {"Node": node}}), "one that is in itself"),
            (json!({"type": "object", "properties": {"all": {"$ref": "#"}}}), "the whole in itself"),
            (json!({"type": "object", "properties": {"one": {"enum": [{"a": 1}]}}}), "objects as values"),
        ] {
            assert_eq!(closed(&schema), None, "{reason}");
        }
    }

    #[test]
    fn strict_is_for_objects_that_are_closed_and_whole() {
        let object = |property: Value| json!({"type": "object", "properties": {"a": property}, "required": ["a"], "additionalProperties": false});
        let inner = json!({"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": false});
        for (schema, expected, reason) in [
            (object(json!({"type": "string"})), true, "one"),
            (object(json!({"anyOf": [{"type": "string"}, {"type": "null"}]})), true, "one that may be null"),
            (object(object(json!({"type": "array", "items": {"type": "string"}}))), true, "one in another"),
            (object(inner), false, "one inside has a property that may be left out"),
            (object(json!({"type": "object"})), false, "one inside is open"),
            (object(json!({"type": "string", "default": "x"})), false, "a keyword that is not taken"),
            (json!({"anyOf": [object(json!({"type": "string"}))]}), false, "alternatives at the top"),
            (json!({"type": "object", "properties": {"a": {"type": "string"}}}), false, "open"),
        ] {
            assert_eq!(is_strict(&schema), expected, "{reason}");
        }
    }
}
