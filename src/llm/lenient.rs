//! Fields that some servers write in a shape of their own. None of them is worth an answer: what cannot be read counts as
//! absent, or is read for what it means.

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _};
use serde_json::value::RawValue;

use super::failure::ErrorField;
use crate::bounded::json::{self, parse};

/// A field that may be of another shape than promised: absent then. For token counts, which some gateways write as
/// fractions or below zero.
///
/// # Errors
/// When it is no JSON at all.
pub(super) fn or_absent<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: DeserializeOwned,
    D: Deserializer<'de>,
{
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(parse(raw.get()).ok())
}

/// A whole number, in quotes or not.
pub(super) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    Ok(<&RawValue>::deserialize(from)?.get().trim_matches('"').parse().ok())
}

/// A name, which may be a number.
pub(super) fn name<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let json = <&RawValue>::deserialize(from)?.get();
    Ok(match json.bytes().next() {
        Some(b'"') => Some(parse(json).map_err(D::Error::custom)?),
        Some(b'0'..=b'9' | b'-') => Some(json.to_owned()),
        Some(_) | None => None,
    })
}

/// An error, unless the field only says that there is none.
pub(super) fn error<'de, D: Deserializer<'de>>(from: D) -> Result<Option<ErrorField>, D::Error> {
    match <&RawValue>::deserialize(from)?.get() {
        "null" | "false" | r#""""# | "{}" | "[]" | "0" => Ok(None),
        json => parse(json).map(Some).map_err(D::Error::custom),
    }
}

/// The JSON of `text` where that is good but for a key that stands twice in one object, of which the last one counts, and for halves
/// of characters (`\udcaf`), which nobody can read. NVIDIA's and other servers write so.
pub(super) fn mended(text: &str) -> Option<String> {
    json::value(&json::without_halves(text)).ok().map(|value| value.to_string())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Counts {
        #[serde(default, deserialize_with = "or_absent")]
        read: Option<u64>,
        #[serde(default, deserialize_with = "or_absent")]
        inner: Option<Inner>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Inner {
        #[serde(default, deserialize_with = "or_absent")]
        count: Option<u64>,
    }

    #[test]
    fn what_stands_twice_and_half_a_character_are_mended_and_nothing_else() {
        for (text, expected) in [
            (r#"{"a":1,"b":2,"a":3}"#, Some(r#"{"a":3,"b":2}"#)),
            (r#"{"a":"x \udcaf y \ud83d"}"#, Some("{\"a\":\"x \u{fffd} y \u{fffd}\"}")),
            (r#"{"a":"\ud83d\ude00 \ud83d\ud83d\ude00"}"#, Some("{\"a\":\"😀 \u{fffd}😀\"}")),
            (r#"{"a":"\\udcaf \\\udcaf"}"#, Some("{\"a\":\"\\\\udcaf \\\\\u{fffd}\"}")),
            (r#"{"a":"\u"#, None),
            (r#"{"a":"\ud8é0"}"#, None),
            ("{", None),
        ] {
            assert_eq!(mended(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_absent_and_the_rest_stays() {
        for (json, read, inner) in [
            (r#"{"read":3,"inner":{"count":4}}"#, Some(3), Some(Some(4))),
            (r#"{}"#, None, None),
            (r#"{"read":null,"inner":null}"#, None, None),
            (r#"{"read":3.5,"inner":{"count":4}}"#, None, Some(Some(4))),
            (r#"{"read":-1,"inner":{"count":"many"}}"#, None, Some(None)),
            (r#"{"read":3,"inner":"none"}"#, Some(3), None),
        ] {
            let expected = Counts { read, inner: inner.map(|count| Inner { count }) };
            assert_eq!(serde_json::from_str::<Counts>(json).unwrap(), expected, "{json}");
        }
    }
}
