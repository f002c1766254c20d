//! JSON Schemas, compiled once: what arguments and payloads are held to.
//!
//! **Invariant:** checking fetches nothing. A schema that refers to another place is refused when it is read.

use std::sync::Arc;

use jsonschema::Validator;
use serde_json::Value;

/// How many mistakes are told at once: a model that is wrong about everything need not read all of it.
const MOST_TOLD: usize = 5;

/// The longest single mistake, in characters: messages repeat the value that is wrong.
const MISTAKE_CHARS: usize = 300;

/// A schema that values are checked against.
#[derive(Debug, Clone)]
pub struct Schema(Arc<Validator>);

impl Schema {
    /// The schema in `schema`.
    ///
    /// # Errors
    /// When it is none, or refers to another document; in words for the operator.
    pub fn parse(schema: &Value) -> Result<Self, String> {
        jsonschema::validator_for(schema).map(|validator| Self(Arc::new(validator))).map_err(|error| error.to_string())
    }

    /// Checks `value`.
    ///
    /// # Errors
    /// What is wrong with it, each with its place, a few at most.
    pub fn check(&self, value: &Value) -> Result<(), Vec<String>> {
        let mistakes: Vec<String> = self
            .0
            .iter_errors(value)
            .take(MOST_TOLD)
            .map(|error| {
                let place = error.instance_path().to_string();
                let reason: String = error.to_string().chars().take(MISTAKE_CHARS).collect();
                if place.is_empty() { reason } else { format!("{}: {reason}", place.trim_start_matches('/')) }
            })
            .collect();
        if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mistakes_are_told_with_their_places() {
        let schema = Schema::parse(&json!({
            "type": "object",
            "properties": {"n": {"type": "integer"}, "list": {"type": "array", "items": {"enum": ["a", "b"]}}},
            "required": ["n"],
            "additionalProperties": false
        }))
        .unwrap();
        assert_eq!(schema.check(&json!({"n": 1, "list": ["a"]})), Ok(()));
        let mistakes = schema.check(&json!({"list": ["a", "c"], "x": 1})).unwrap_err();
        assert_eq!(
            mistakes,
            [
                "list/1: \"c\" is not one of \"a\" or \"b\"",
                "Additional properties are not allowed ('x' was unexpected)",
                "\"n\" is a required property",
            ]
        );
    }

    #[test]
    fn a_schema_that_is_none_or_points_elsewhere_is_refused() {
        for schema in [
            json!({"type": 7}),
            json!({"$ref": "http://localhost:1/schema.json"}),
            json!({"$ref": "file:///etc/passwd"}),
        ] {
            assert!(Schema::parse(&schema).is_err(), "{schema}");
        }
    }
}
