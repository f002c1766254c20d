//! Arguments as models really write them: blanks for "not given", numbers as text, objects as text of JSON.

use serde_json::{Map, Value};

use crate::bounded::json;
use crate::tools::ToolError;
pub use crate::tools::args::optional_text;

/// `text` as a required argument.
///
/// # Errors
/// [`ToolError::BadParams`] when it is absent.
pub fn required(name: &str, text: Option<String>) -> Result<String, ToolError> {
    text.ok_or_else(|| ToolError::BadParams(format!("{name} is required")))
}

/// 100 characters: what the backend's columns hold. Its validation lets more pass, and the save then fails.
const MAX_NAME_CHARS: usize = 100;

/// Checks the length of the name of a workflow or an action.
///
/// # Errors
/// [`ToolError::BadParams`] when it is too long to be saved.
pub fn check_name(path: &str, name: &str) -> Result<(), ToolError> {
    if name.chars().count() > MAX_NAME_CHARS {
        return Err(ToolError::BadParams(format!("{path} is longer than {MAX_NAME_CHARS} characters; shorten it")));
    }
    Ok(())
}

/// The object in `value`, which may be the text of one.
///
/// # Errors
/// [`ToolError::BadParams`] when it is no object.
pub fn object(name: &str, value: Value) -> Result<Map<String, Value>, ToolError> {
    let value = match value {
        Value::String(text) => json::value(&text).unwrap_or(Value::String(text)),
        other => other,
    };
    match value {
        Value::Object(map) => Ok(map),
        _ => Err(ToolError::BadParams(format!("{name} must be a JSON object"))),
    }
}

/// The whole number in `value`, which may be text; `None` when it is absent, null or blank.
///
/// # Errors
/// [`ToolError::BadParams`] when it is something else or outside of 1 to `max`.
pub fn count(name: &str, value: Option<&Value>, max: u64) -> Result<Option<u64>, ToolError> {
    let number = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) if text.trim().is_empty() => return Ok(None),
        Some(Value::String(text)) => text.trim().parse::<f64>().ok(),
        Some(Value::Number(number)) => number.as_f64(),
        Some(_) => None,
    };
    // Models write 2.0 as readily as 2. Whole numbers of this size are exact in both types.
    let whole = number.filter(|n| n.fract() == 0.0 && *n >= 1.0).map(|n| n as u64);
    match whole {
        Some(whole) if whole <= max => Ok(Some(whole)),
        _ => Err(ToolError::BadParams(format!("{name} must be a whole number from 1 to {max}"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_count_may_be_a_number_or_text() {
        let rows = [
            (json!(25), Ok(Some(25)), "a number"),
            (json!("25"), Ok(Some(25)), "text"),
            (json!(25.0), Ok(Some(25)), "a whole float"),
            (json!(null), Ok(None), "null"),
            (json!(""), Ok(None), "blank"),
            (json!(0), Err(()), "too small"),
            (json!(1001), Err(()), "too large"),
            (json!(-1), Err(()), "negative"),
            (json!(1.5), Err(()), "a fraction"),
            (json!(1e300), Err(()), "absurd"),
            (json!("NaN"), Err(()), "not a number"),
            (json!("50&status=x"), Err(()), "text with more in it"),
            (json!([1]), Err(()), "a list"),
        ];
        for (value, expected, reason) in rows {
            assert_eq!(count("rows", Some(&value), 1000).map_err(|_| ()), expected, "{reason}");
        }
    }

    #[test]
    fn an_object_may_be_the_text_of_one() {
        let expected = json!({"a": 1}).as_object().cloned();
        assert_eq!(object("x", json!({"a": 1})).ok(), expected);
        assert_eq!(object("x", json!("{\"a\": 1}")).ok(), expected);
        for value in [json!("a"), json!("[1]"), json!([1]), json!(null)] {
            assert!(object("x", value).is_err());
        }
    }
}
