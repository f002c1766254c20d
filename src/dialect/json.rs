//! Reading request bodies: JSON text with a bounded depth, and fields that are checked one by one.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{DecodeError, FieldError};
use crate::bounded::json::{self, JsonError};
use crate::chat::screen::ScreenState;

/// The body as JSON text: its parts stay text until a value is needed.
///
/// # Errors
/// [`DecodeError::NotJson`] when it is not UTF-8, not JSON, nested deeper than 64 levels, or has an object with the same name
/// twice: whoever reads it next could take the other value.
fn text(body: &[u8]) -> Result<&str, DecodeError> {
    let not_json = |error: JsonError| DecodeError::NotJson(error.to_string());
    let text = json::utf8(body).map_err(not_json)?;
    json::check(text).map_err(not_json)?;
    Ok(text)
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

/// The fields of an object by their names, each as its text.
pub(super) struct Members<'a>(BTreeMap<Cow<'a, str>, &'a RawValue>);

impl<'a> Members<'a> {
    /// Those of the object that `text` is.
    ///
    /// # Errors
    /// [`DecodeError::NotJson`] when it is none.
    pub(super) fn of(text: &'a str) -> Result<Self, DecodeError> {
        json::parse(text).map(Self).map_err(|error| DecodeError::NotJson(error.to_string()))
    }

    /// That field, unless it is `null`.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.get(name).copied().filter(|raw| raw.get() != "null")
    }
}

/// The field, unless it says that it is absent: by `null` or an empty text.
pub(super) fn given(raw: Option<&RawValue>) -> Option<&RawValue> {
    raw.filter(|raw| !matches!(raw.get(), "null" | r#""""#))
}

/// The fields of an object; `None` of anything else. A list would pass for the fields in their order.
pub(super) fn fields<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    Some(raw.get()).filter(|text| text.starts_with('{')).and_then(|text| json::parse(text).ok())
}

/// The longest list of objects. `{}` has two bytes and takes up to some hundred as fields.
const MOST_OBJECTS: usize = 50_000;

/// The elements of a list by their fields; `None` of one that is no object, or whose fields are others.
///
/// # Errors
/// What it must be: `what`, where it is no list, else shorter.
pub(super) fn objects<'a, T: Deserialize<'a>>(raw: &'a RawValue, what: &str) -> Result<Vec<Option<T>>, String> {
    // Long lists are read once, and only those in which something is wrong are read piece by piece.
    if let Ok(Objects(all)) = json::parse::<Objects<T>>(raw.get()) {
        return Ok(all);
    }
    let list: Vec<&RawValue> = json::parse(raw.get()).map_err(|_| format!("must be {what}"))?;
    match list.len() > MOST_OBJECTS {
        true => Err(format!("must have at most {MOST_OBJECTS} items")),
        false => Ok(list.into_iter().map(fields).collect()),
    }
}

/// A list of objects and nothing else, which is not too long.
struct Objects<T>(Vec<Option<T>>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Objects<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ObjectsOf(PhantomData))
    }
}

struct ObjectsOf<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectsOf<T> {
    type Value = Objects<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Objects<T>, A::Error> {
        let mut all = Vec::new();
        while let Some(fields) = list.next_element_seed(ObjectOf(PhantomData))? {
            if all.len() == MOST_OBJECTS {
                return Err(A::Error::custom("too long"));
            }
            all.push(Some(fields));
        }
        Ok(Objects(all))
    }
}

/// The fields of an object. A list would pass for them in their order.
struct ObjectOf<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for ObjectOf<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectOf<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

/// Reads a field that is there, be it `null`: for fields in which that means something else than nothing.
///
/// # Errors
/// When it is no JSON.
pub(super) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The field's value, `None` when it is absent, `null` or an empty text. A value of another type is noted in `errors`.
pub(super) fn optional<'a, T: Deserialize<'a>>(
    raw: Option<&'a RawValue>,
    field: &'static str,
    expected: &str,
    errors: &mut Vec<FieldError>,
) -> Option<T> {
    let raw = given(raw)?;
    match json::parse(raw.get()) {
        Ok(value) => Some(value),
        Err(_) => {
            errors.push(FieldError { field, reason: format!("must be {expected}") });
            None
        }
    }
}

/// The screen state in the field; what is none, or would take too much memory as a value, is noted in `errors`.
pub(super) fn screen(raw: Option<&RawValue>, field: &'static str, errors: &mut Vec<FieldError>) -> Option<ScreenState> {
    let state = state(given(raw)?);
    state.map_err(|reason| errors.push(FieldError { field, reason: format!("must be {reason}") })).ok()
}

/// The screen state in `raw`.
///
/// # Errors
/// The shape that it must have.
pub(super) fn state(raw: &RawValue) -> Result<ScreenState, String> {
    let state = ScreenState::parse(raw.get()).ok_or("an object")?;
    match json::fits(state.as_str(), 1) {
        Ok(()) => Ok(state),
        Err(error) => Err(format!("smaller: {error}")),
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
    fn elements_are_objects_whose_fields_fit_whichever_stand_beside_them() {
        #[derive(Deserialize)]
        struct Item<'a> {
            id: Option<String>,
            #[serde(borrow)]
            content: Option<&'a RawValue>,
        }
        let read = |json: &str| {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            let all = objects::<Item<'_>>(raw, "a list")?.into_iter();
            Ok(all.map(|item| Some((item.as_ref()?.id.clone(), item?.content?.get().to_owned()))).collect::<Vec<_>>())
        };
        let id = |id: &str| Some(id.to_owned());
        let rows = [
            (
                r#"[{"id":"a","content":[1, "\n"],"b":{}},{"content":"x"}]"#,
                Ok(vec![Some((id("a"), "[1, \"\\n\"]".to_owned())), Some((None, "\"x\"".to_owned()))]),
            ),
            (r#"[{"id":"a","content":1},["b",2]]"#, Ok(vec![Some((id("a"), "1".to_owned())), None])),
            (r#"[{"id":7,"content":1},{"id":"a","content":1}]"#, Ok(vec![None, Some((id("a"), "1".to_owned()))])),
            ("[null, 1, \"a\"]", Ok(vec![None; 3])),
            ("[]", Ok(Vec::new())),
            (r#"{"id":"a"}"#, Err("must be a list".to_owned())),
            ("null", Err("must be a list".to_owned())),
            (&format!("[{}{{}}]", "{},".repeat(MOST_OBJECTS)), Err("must have at most 50000 items".to_owned())),
        ];
        for (json, expected) in rows {
            assert_eq!(read(json), expected, "{json}");
        }
    }

    #[test]
    fn a_body_is_an_object_that_everybody_reads_alike() {
        let rows = [
            (r#"{"a":1,"b":{"a":2}}"#.to_owned(), None, "an object"),
            ("[1]".to_owned(), Some("must be a JSON object"), "a list"),
            (r#"{"a":1,"\u0061":1}"#.to_owned(), Some("an object has the same name twice"), "a name twice"),
            (r#"{"a":"\ud800"}"#.to_owned(), Some("hex escape"), "no text"),
            (r#"{"a":1e400}"#.to_owned(), Some("number out of range"), "no number"),
            (r#"{"a":1}{"a":1}"#.to_owned(), Some("trailing characters"), "two values"),
            (r#"{"a":"#.repeat(65), Some("nested deeper than 64 levels"), "deep"),
        ];
        for (body, expected, reason) in rows {
            let read = object(body.as_bytes()).map_err(|error| error.to_string());
            match expected {
                None => assert_eq!(read, Ok(body.as_str()), "{reason}"),
                Some(words) => assert!(read.clone().is_err_and(|error| error.contains(words)), "{reason}: {read:?}"),
            }
        }
        assert!(object(b"{\"\xff\":1}").is_err_and(|error| error.to_string().contains("invalid UTF-8 at byte 2")));
    }
}
