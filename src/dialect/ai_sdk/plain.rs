//! JSON of others (arguments, results, payloads) as text that fits on one line and that every client takes: they refuse
//! a whole answer when a key in it could change an object's prototype, so such a value goes as text.

use std::borrow::Cow;

use crate::bounded::json::{parse, value};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// The keys that clients refuse.
const REFUSED_KEYS: [&str; 2] = [r#""__proto__""#, r#""constructor""#];

/// A value that can be sent.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Plain {
    /// JSON on one line.
    Json(Box<RawValue>),
    /// Any text.
    Text(String),
}

impl Plain {
    /// The value itself.
    pub(super) fn from_value<T: Serialize>(value: &T) -> Self {
        match to_raw_value(value) {
            Ok(json) if has_refused_key(json.get()) => Self::Text(json.get().to_owned()),
            Ok(json) => Self::Json(json),
            // A map of text and numbers always serialises.
            Err(_) => Self::Text(String::new()),
        }
    }

    /// The JSON that `text` is, or the text where it is none.
    pub(super) fn read(text: &str) -> Self {
        let has_hidden = text.contains(['\n', '\r']) || text.contains("\\u");
        if has_hidden {
            // Written anew it has no line breaks, and its keys are spelled out.
            return match value(text) {
                Ok(value) => Self::from_value(&value),
                Err(_) => Self::Text(text.to_owned()),
            };
        }
        match parse::<Box<RawValue>>(text) {
            Ok(json) if !has_refused_key(text) => Self::Json(json),
            Ok(_) | Err(_) => Self::Text(text.to_owned()),
        }
    }
}

fn has_refused_key(json: &str) -> bool {
    let is_key =
        |key: &str| json.match_indices(key).any(|(at, _)| json[at + key.len()..].trim_start().starts_with(':'));
    REFUSED_KEYS.into_iter().any(is_key)
}

/// The words of a failed call: those in `{"error": words}`, or the whole text.
pub(super) fn error_words(result: &str) -> Cow<'_, str> {
    #[derive(Deserialize)]
    struct ErrorResult<'a> {
        #[serde(borrow)]
        error: Cow<'a, str>,
    }
    match parse::<ErrorResult<'_>>(result) {
        Ok(result) => result.error,
        Err(_) => Cow::Borrowed(result),
    }
}

/// The name of the part that shows an artifact or payload of that kind: `data-` and what of it every client can use in a
/// type.
pub(super) fn part_name(kind: &str) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '-' };
    let name: String = kind.chars().map(legal).take(64).collect();
    match name.as_str() {
        "" => "data-part".to_owned(),
        // What is ours must not be taken for theirs.
        "progress" | "suggestions" | "approval" | "place" | "plan" | "agent" | "context-usage" | "recap"
        | "operation" | "clarification" => {
            format!("data-{name}-part")
        }
        _ => format!("data-{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Plain, error_words, part_name};

    #[test]
    fn json_stays_json_and_everything_else_is_text() {
        let rows = [
            (r#"{"a": 1}"#, r#"{"a": 1}"#, "as it is"),
            ("[1,\n2]", "[1,2]", "a line break would end the frame"),
            ("no json", r#""no json""#, "text"),
            ("", r#""""#, "nothing is an empty text"),
            (r#"{"__proto__": {"x": 1}}"#, r#""{\"__proto__\": {\"x\": 1}}""#, "a client would refuse the answer"),
            (r#"{"\u005f_proto__": 1}"#, r#""{\"__proto__\":1}""#, "also when it is hidden"),
            (
                r#"{"a": {"constructor": {"prototype": 1}}}"#,
                r#""{\"a\": {\"constructor\": {\"prototype\": 1}}}""#,
                "the other one",
            ),
            (r#"["constructor"]"#, r#"["constructor"]"#, "a value is no key"),
            (r#""said: \"__proto__\": no key""#, r#""said: \"__proto__\": no key""#, "in a text it does no harm"),
        ];
        for (text, expected, reason) in rows {
            assert_eq!(serde_json::to_string(&Plain::read(text)).unwrap(), expected, "{reason}");
        }
    }

    #[test]
    fn the_words_of_an_error_are_taken_out() {
        let rows = [
            (r#"{"error": "no such \"rule\""}"#, r#"no such "rule""#),
            (r#"{"error": 7}"#, r#"{"error": 7}"#),
            ("broken", "broken"),
        ];
        for (result, expected) in rows {
            assert_eq!(error_words(result), expected);
        }
    }

    #[test]
    fn any_kind_becomes_a_legal_part() {
        let rows = [
            ("workflow_preview", "data-workflow_preview"),
            ("a b/ü", "data-a-b--"),
            ("", "data-part"),
            ("progress", "data-progress-part"),
        ];
        for (kind, expected) in rows {
            assert_eq!(part_name(kind), expected);
        }
    }
}
