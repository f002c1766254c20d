//! Reading request bodies: JSON text with a bounded depth, and fields that are checked one by one.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{DecodeError, FieldError};

/// The deepest nesting a body may have.
const MAX_DEPTH: usize = 64;

/// The body as JSON text.
///
/// # Errors
/// [`DecodeError::NotJson`] when it is not UTF-8 or nested deeper than 64 levels.
fn text(body: &[u8]) -> Result<&str, DecodeError> {
    let text = std::str::from_utf8(body)
        .map_err(|error| DecodeError::NotJson(format!("invalid UTF-8 at byte {}", error.valid_up_to())))?;
    match depth(text) > MAX_DEPTH {
        true => Err(DecodeError::NotJson(format!("nested deeper than {MAX_DEPTH} levels"))),
        false => Ok(text),
    }
}

/// The body as the text of a JSON object.
///
/// # Errors
/// [`DecodeError::NotJson`] when it is something else.
pub(super) fn object(body: &[u8]) -> Result<&str, DecodeError> {
    let text = text(body)?;
    match text.trim_start().starts_with('{') {
        true => Ok(text),
        false => Err(DecodeError::NotJson("must be a JSON object".to_owned())),
    }
}

/// The deepest nesting of brackets outside of strings; also right for text that is not JSON.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The field, unless it says that it is absent: by `null` or an empty text.
pub(super) fn given(raw: Option<&RawValue>) -> Option<&RawValue> {
    raw.filter(|raw| !matches!(raw.get(), "null" | r#""""#))
}

/// The fields of an object; `None` of anything else. A list would pass for the fields in their order.
pub(super) fn fields<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    Some(raw.get()).filter(|text| text.starts_with('{')).and_then(|text| serde_json::from_str(text).ok())
}

/// The field's value, `None` when it is absent, `null` or an empty text. A value of another type is noted in `errors`.
pub(super) fn optional<'a, T: Deserialize<'a>>(
    raw: Option<&'a RawValue>,
    field: &'static str,
    expected: &str,
    errors: &mut Vec<FieldError>,
) -> Option<T> {
    let raw = given(raw)?;
    match serde_json::from_str(raw.get()) {
        Ok(value) => Some(value),
        Err(_) => {
            errors.push(FieldError { field, reason: format!("must be {expected}") });
            None
        }
    }
}

/// The field's non-blank text; a missing, blank or other value is noted in `errors`.
pub(super) fn required_text(
    raw: Option<&RawValue>,
    field: &'static str,
    errors: &mut Vec<FieldError>,
) -> Option<String> {
    let noted = errors.len();
    let text: Option<String> = optional(raw, field, "a string", errors);
    let text = text.filter(|text| !text.trim().is_empty());
    if text.is_none() && errors.len() == noted {
        errors.push(FieldError { field, reason: "is required and must not be empty".to_owned() });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_brackets_outside_of_strings() {
        let rows = [("", 0), ("{}", 1), (r#"{"a":[1,{"b":2}]}"#, 3), (r#"["{{{[[","\"[["]"#, 1), ("]]][", 1)];
        for (text, expected) in rows {
            assert_eq!(depth(text), expected, "{text}");
        }
    }
}
