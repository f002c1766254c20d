//! Whether each action's config has what its type needs: the type's schema, and the one condition no schema can say.
//!
//! A text with a template variable (`{{…}}`) fits everywhere, since its value is only known when the rule runs.

use serde_json::{Map, Value};

use super::duration;
use crate::demo::backend::records::action_types::{ActionTypes, Format, Kind, Schema};
use crate::demo::backend::records::rules::input::ActionInput;

/// Upstream's longest delay.
const MAX_DELAY_HOURS: f64 = 720.0;

/// Nothing, when every config fits.
///
/// # Errors
/// The first problem: `action[i] (name): …`.
pub fn check(actions: &[ActionInput], types: &ActionTypes) -> Result<(), String> {
    for (index, action) in actions.iter().enumerate() {
        let Some(known) = types.named(&action.action_type) else {
            continue;
        };
        check_object(&action.config, &known.schema, "")
            .and_then(|()| check_items(&action.action_type, &action.config))
            .map_err(|problem| format!("action[{index}] ({}): {problem}", action.name))?;
    }
    Ok(())
}

/// Stock is allocated for listed items or for those of the line item that triggered the rule.
fn check_items(action_type: &str, config: &Map<String, Value>) -> Result<(), String> {
    let from_line_item = config.get("source_from_line_item").and_then(Value::as_bool).unwrap_or(false);
    let has_items = match config.get("inventory_items") {
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::String(text)) => is_template(text),
        _ => false,
    };
    if action_type == "allocate_inventory" && !from_line_item && !has_items {
        return Err("inventory_items is required unless source_from_line_item is true".to_owned());
    }
    Ok(())
}

fn check_object(object: &Map<String, Value>, schema: &Schema, path: &str) -> Result<(), String> {
    let at = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    for name in &schema.required {
        if object.get(name).is_none_or(|value| value.as_str() == Some("")) {
            return Err(format!("{} is required", at(name)));
        }
    }
    for (name, property) in &schema.properties {
        if let Some(value) = object.get(name) {
            check_value(value, property, schema.required.contains(name), &at(name))?;
        }
    }
    Ok(())
}

fn check_value(value: &Value, schema: &Schema, required: bool, path: &str) -> Result<(), String> {
    match value {
        Value::Null if !required => return Ok(()),
        Value::String(text) if is_template(text) => return Ok(()),
        _ => {}
    }
    let Some(kind) = schema.kind else {
        return Ok(());
    };
    match (kind, value) {
        (Kind::Object, Value::Object(object)) => check_object(object, schema, path),
        (Kind::Array, Value::Array(items)) => {
            if items.len() < schema.min_items {
                return Err(format!("{path} must not be empty"));
            }
            let Some(item) = &schema.items else {
                return Ok(());
            };
            let mut numbered = items.iter().enumerate();
            numbered.try_for_each(|(index, value)| check_value(value, item, true, &format!("{path}[{index}]")))
        }
        (Kind::String, Value::String(text)) => check_text(text, schema, required, path),
        (Kind::Number, Value::Number(_)) | (Kind::Boolean, Value::Bool(_)) => Ok(()),
        (Kind::Integer, Value::Number(number)) if number.is_i64() || number.is_u64() => Ok(()),
        (Kind::Object, _) => Err(format!("{path} must be an object")),
        (Kind::Array, _) => Err(format!("{path} must be an array")),
        (Kind::String, _) => Err(format!("{path} must be a text")),
        (Kind::Number, _) => Err(format!("{path} must be a number")),
        (Kind::Integer, _) => Err(format!("{path} must be a whole number")),
        (Kind::Boolean, _) => Err(format!("{path} must be true or false")),
    }
}

fn check_text(text: &str, schema: &Schema, required: bool, path: &str) -> Result<(), String> {
    if text.is_empty() && !required {
        return Ok(());
    }
    if !schema.allowed.is_empty() && schema.allowed.iter().all(|allowed| allowed != text) {
        return Err(format!("{path} must be one of {}", schema.allowed.join(", ")));
    }
    match schema.format {
        None => Ok(()),
        Some(Format::Duration) => match duration::hours(text) {
            Some(hours) if hours > 0.0 && hours <= MAX_DELAY_HOURS => Ok(()),
            Some(_) => Err(format!("{path} must be more than 0 and at most {MAX_DELAY_HOURS}h")),
            None => Err(format!("{path} must be a duration such as 30m or 1h30m")),
        },
    }
}

fn is_template(text: &str) -> bool {
    text.contains("{{")
}
