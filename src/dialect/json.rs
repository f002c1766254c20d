//! Reading request bodies: JSON text with a bounded depth, and fields that are checked one by one.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{DecodeError, FieldError};

/// The deepest nesting a body may have.
const MAX_DEPTH: usize = 64;

/// The body as JSON text.
///
/// # Errors
/// [`DecodeError::NotJson`] when it is not UTF-8, not JSON, nested deeper than 64 levels, or has an object with the same name
/// twice: whoever reads it next could take the other value.
fn text(body: &[u8]) -> Result<&str, DecodeError> {
    let text = std::str::from_utf8(body)
        .map_err(|error| DecodeError::NotJson(format!("invalid UTF-8 at byte {}", error.valid_up_to())))?;
    if depth(text) > MAX_DEPTH {
        return Err(DecodeError::NotJson(format!("nested deeper than {MAX_DEPTH} levels")));
    }
    serde_json::from_str::<Distinct>(text).map_err(|error| DecodeError::NotJson(error.to_string()))?;
    Ok(text)
}

/// A value whose objects have no name twice; reading it is all that it is for.
struct Distinct;

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DistinctVisitor)
    }
}

struct DistinctVisitor;

impl<'de> Visitor<'de> for DistinctVisitor {
    type Value = Distinct;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_str<E>(self, _: &str) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Distinct, A::Error> {
        while let Some(Distinct) = items.next_element()? {}
        Ok(Distinct)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Distinct, A::Error> {
        let mut names = Names::default();
        while let Some(name) = fields.next_key::<Name<'de>>()? {
            if !names.add(name.0) {
                return Err(A::Error::custom("an object has the same name twice"));
            }
            fields.next_value::<Distinct>()?;
        }
        Ok(Distinct)
    }
}

/// A field's name, lent by the text where nothing in it is escaped.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// 16 names are compared one by one, which is quicker than hashing them.
const FEW_NAMES: usize = 16;

/// The names of an object so far.
#[derive(Default)]
struct Names<'a> {
    few: Vec<Cow<'a, str>>,
    many: HashSet<Cow<'a, str>>,
}

impl<'a> Names<'a> {
    /// Whether `name` is new.
    fn add(&mut self, name: Cow<'a, str>) -> bool {
        if self.few.contains(&name) || self.many.contains(&name) {
            return false;
        }
        match self.few.len() < FEW_NAMES {
            true => self.few.push(name),
            false => drop(self.many.insert(name)),
        }
        true
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
    fn an_object_with_the_same_name_twice_is_no_body() {
        let twice = "an object has the same name twice";
        let many = (0..40).map(|n| format!("\"k{n}\":{n}")).collect::<Vec<_>>().join(",");
        let rows = [
            (r#"{"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]}"#.to_owned(), None, "the same name in several objects"),
            (r#"{"a":1,"A":2,"a ":3,"":4}"#.to_owned(), None, "names that are alike"),
            (format!("{{{many}}}"), None, "many names"),
            (r#"{"a":1,"a":1}"#.to_owned(), Some(twice), "twice, the same value"),
            (r#"{"a":1,"b":2,"\u0061":3}"#.to_owned(), Some(twice), "once spelt otherwise"),
            (r#"{"x":[0,{"y":{"a":1,"a":2}}]}"#.to_owned(), Some(twice), "far inside"),
            (format!("{{{many},\"k39\":0}}"), Some(twice), "one of many"),
            (format!("{{{many},\"k3\":0}}"), Some(twice), "one of the first of many"),
            (r#"{"a":"\ud800"}"#.to_owned(), Some("hex escape"), "no text"),
            (r#"{"a":1e400}"#.to_owned(), Some("number out of range"), "no number"),
            (r#"{"a":1}{"a":1}"#.to_owned(), Some("trailing characters"), "two values"),
        ];
        for (body, expected, reason) in rows {
            let read = object(body.as_bytes()).map_err(|error| error.to_string());
            match expected {
                None => assert_eq!(read, Ok(body.as_str()), "{reason}"),
                Some(words) => assert!(read.clone().is_err_and(|error| error.contains(words)), "{reason}: {read:?}"),
            }
        }
    }

    #[test]
    fn depth_counts_brackets_outside_of_strings() {
        let rows = [("", 0), ("{}", 1), (r#"{"a":[1,{"b":2}]}"#, 3), (r#"["{{{[[","\"[["]"#, 1), ("]]][", 1)];
        for (text, expected) in rows {
            assert_eq!(depth(text), expected, "{text}");
        }
    }
}
