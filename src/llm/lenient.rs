//! Fields that nobody's answer may be lost over: what cannot be read in them counts as absent.

use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::value::RawValue;

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
    Ok(serde_json::from_str(raw.get()).ok())
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
