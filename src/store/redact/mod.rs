//! Takes secrets out of texts for the trail: values of fields that are named like secrets, and pieces of text that look
//! like them, also in JSON that stands inside a text, as results of tools do.
//!
//! It knows patterns, not secrets: a value with neither the name nor the look of one stays.

mod cut;
mod json;
mod name;
mod prose;
mod quote;
mod shape;
#[cfg(test)]
mod tests;
mod text;

use std::borrow::Cow;

use serde_json::{Map, Value};

use cut::REDACTED;

/// Values within values, those in texts too: more than is read of any. What is deeper in a value goes, and in a text is
/// text.
const DEPTH: u32 = 160;

/// Whether a field or header of that name holds a secret.
pub fn names_a_secret(name: &str) -> bool {
    name::kind(name).is_some() || name::is_header(name)
}

/// The first name that is that of a secret, at any depth.
pub(in crate::store) fn a_secret(fields: &Map<String, Value>) -> Option<String> {
    fields.iter().find_map(|(name, value)| match names_a_secret(name) {
        true => Some(name.clone()),
        false => secret_within(value),
    })
}

fn secret_within(value: &Value) -> Option<String> {
    match value {
        Value::Object(fields) => a_secret(fields),
        Value::Array(items) => items.iter().find_map(secret_within),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Takes secrets out of `value`.
pub(super) fn redact(value: &mut Value) {
    within(value, DEPTH);
}

fn within(value: &mut Value, depth: u32) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => {
            if let Cow::Owned(cleaned) = text::clean(text, depth) {
                *text = cleaned;
            }
        }
        Value::Array(items) => match depth.checked_sub(1) {
            Some(depth) => items.iter_mut().for_each(|item| within(item, depth)),
            None => *value = Value::String(REDACTED.to_owned()),
        },
        Value::Object(fields) => match depth.checked_sub(1) {
            Some(depth) => within_fields(fields, depth),
            None => *value = Value::String(REDACTED.to_owned()),
        },
    }
}

fn within_fields(fields: &mut Map<String, Value>, depth: u32) {
    let is_secret = |name: &str| name::kind(name).is_some();
    let has_secret_name =
        fields.iter().any(|(name, field)| name::is_pair_name(name) && field.as_str().is_some_and(is_secret));
    for (name, field) in fields {
        let is_value = has_secret_name && name::is_pair_value(name);
        if (is_value || is_secret(name)) && has_content(field) {
            *field = Value::String(REDACTED.to_owned());
        } else {
            within(field, depth);
        }
    }
}

/// Whether there is anything to hide: whether a password is set is no secret.
fn has_content(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::String(text) => !text.is_empty(),
        Value::Number(_) | Value::Array(_) | Value::Object(_) => true,
    }
}
