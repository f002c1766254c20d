//! Fields that some servers write in a shape of their own. None of them is worth an answer: what cannot be read says
//! nothing, or is read for what it means.

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _};
use serde_json::value::RawValue;

use super::failure::ErrorField;

/// A field that is as good as missing when it has another type.
pub(super) fn or_nothing<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_str(<&RawValue>::deserialize(from)?.get()).ok())
}

/// A whole number, in quotes or not.
pub(super) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    Ok(<&RawValue>::deserialize(from)?.get().trim_matches('"').parse().ok())
}

/// A name, which may be a number.
pub(super) fn name<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let json = <&RawValue>::deserialize(from)?.get();
    Ok(match json.bytes().next() {
        Some(b'"') => Some(serde_json::from_str(json).map_err(D::Error::custom)?),
        Some(b'0'..=b'9' | b'-') => Some(json.to_owned()),
        Some(_) | None => None,
    })
}

/// An error, unless the field only says that there is none.
pub(super) fn error<'de, D: Deserializer<'de>>(from: D) -> Result<Option<ErrorField>, D::Error> {
    match <&RawValue>::deserialize(from)?.get() {
        "null" | "false" | r#""""# | "{}" | "[]" | "0" => Ok(None),
        json => serde_json::from_str(json).map(Some).map_err(D::Error::custom),
    }
}
