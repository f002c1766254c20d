//! The body of an operation: the fields of an object become arguments; any other body is the argument `body`.

use serde_json::{Map, Value, json};

use super::super::super::request;
use super::super::document::Operation;
use super::super::refs;
use super::super::schema::Writer;
use super::{Arguments, described, placeholder};

/// The argument of a body that is no object.
const WHOLE: &str = "body";

/// What stands before a field's name where a parameter has the name already.
const PREFIX: &str = "body_";

/// The [`rank`] of a list of changes (RFC 6902).
const PATCHES: u8 = 3;

/// The template of the body, and its media type where that is not `application/json`; nothing where there is no body.
///
/// # Errors
/// Why it cannot be made of arguments.
pub(super) fn read<'d>(
    root: &'d Value,
    operation: &Operation<'d>,
    writer: &mut Writer<'d>,
    arguments: &mut Arguments,
) -> Result<Option<(Value, Option<String>)>, String> {
    let Some(body) = operation.value.get("requestBody") else { return Ok(None) };
    let body = refs::target(root, body)?;
    let content = body.get("content").and_then(Value::as_object);
    let Some(content) = content.filter(|content| !content.is_empty()) else { return Ok(None) };
    // The first of those that are sent most plainly.
    let preferred = content.iter().filter(|(kind, _)| is_json(kind)).min_by_key(|(kind, _)| rank(kind));
    let Some((kind, media)) = preferred else {
        let kinds: Vec<&str> = content.keys().map(String::as_str).collect();
        return Err(format!("its body is {}, and only JSON can be sent", kinds.join(" or ")));
    };
    let is_patches = rank(kind) == PATCHES;
    let kind =
        Some(kind.trim()).filter(|kind| request::is_json(kind) && !kind.eq_ignore_ascii_case("application/json"));
    let kind = kind.map(str::to_owned);
    let is_required = body.get("required") == Some(&Value::Bool(true));
    // Most documents that say nothing of it mean a body that has to be there, but for what has none as a rule.
    let is_expected = is_required || body.get("required").is_none() && operation.verb.has_body();
    let schema = match media.get("schema") {
        Some(schema) => merged(writer.write(schema)?),
        None => json!({}),
    };
    let may_be_list = |kind: &Value| kind == "array" || kind.is_array();
    if is_patches && !schema.get("type").map_or(schema.get("properties").is_none(), may_be_list) {
        return Err("its body is application/json-patch+json, a list, and its schema is of another type".to_owned());
    }
    match fields(&schema) {
        Some((properties, required)) => {
            let mut template = Map::new();
            for (name, schema) in properties {
                let needed = is_expected && required.iter().any(|required| *required == name);
                let wanted = if arguments.has(name) { format!("{PREFIX}{name}") } else { name.clone() };
                let argument = arguments.add(&wanted, schema.clone(), needed);
                template.insert(name.clone(), json!(format!("{{{{ {} }}}}", placeholder(&argument))));
            }
            Ok(Some((Value::Object(template), kind)))
        }
        None => {
            let schema = described(schema, body.get("description"));
            let argument = arguments.add(WHOLE, schema, is_required);
            Ok(Some((json!(format!("{{{{ {} }}}}", placeholder(&argument))), kind)))
        }
    }
}

/// Whether the operation does nothing without a body.
pub(super) fn is_required(root: &Value, operation: &Operation<'_>) -> bool {
    let body = operation.value.get("requestBody").and_then(|body| refs::target(root, body).ok());
    body.and_then(|body| body.get("required")) == Some(&Value::Bool(true))
}

/// How a kind of JSON is preferred, 0 most.
fn rank(kind: &str) -> u8 {
    match kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "application/json" => 0,
        "application/merge-patch+json" => 1,
        "application/json-patch+json" => PATCHES,
        _ => 2,
    }
}

/// Whether a media type is JSON, or lets JSON be sent.
pub(super) fn is_json(kind: &str) -> bool {
    request::is_json(kind) || matches!(kind.split(';').next().unwrap_or_default().trim(), "*/*" | "application/*")
}

/// The fields of an object whose fields are all known, and the names of those that must be there.
fn fields(schema: &Value) -> Option<(&Map<String, Value>, Vec<&str>)> {
    let Value::Object(words) = schema else { return None };
    let properties = words.get("properties").and_then(Value::as_object).filter(|fields| !fields.is_empty())?;
    let is_object = words.get("type").is_none_or(|kind| kind == "object");
    let is_open = words.get("additionalProperties").is_some_and(|others| *others != Value::Bool(false));
    let is_plain = ["allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "dependentSchemas"]
        .iter()
        .all(|word| !words.contains_key(*word));
    if !is_object || is_open || !is_plain {
        return None;
    }
    let required = words.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    Some((properties, required.iter().filter_map(Value::as_str).collect()))
}

/// `allOf` of objects as one object, where they do not contradict each other.
fn merged(schema: Value) -> Value {
    let Some(parts) = schema.get("allOf").and_then(Value::as_array) else { return schema };
    let mut own = schema.clone();
    if let Value::Object(own) = &mut own {
        own.shift_remove("allOf");
    }
    let parts: Vec<Value> = parts.iter().cloned().map(merged).chain([own]).collect();
    let mut properties = Map::new();
    let mut required: Vec<Value> = Vec::new();
    for part in &parts {
        let Value::Object(words) = part else { return schema };
        let known = ["type", "properties", "required", "description", "title", "additionalProperties"];
        if words.keys().any(|word| !known.contains(&word.as_str())) || words.get("type").is_some_and(|t| t != "object")
        {
            return schema;
        }
        if words.get("additionalProperties").is_some_and(|others| *others != Value::Bool(false)) {
            return schema;
        }
        for (name, value) in words.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if properties.insert(name.clone(), value.clone()).is_some_and(|other| other != *value) {
                return schema;
            }
        }
        let names = words.get("required").and_then(Value::as_array).into_iter().flatten();
        required.extend(names.filter(|name| !required.contains(name)).cloned().collect::<Vec<_>>());
    }
    json!({"type": "object", "properties": properties, "required": required})
}
