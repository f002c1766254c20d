//! JSON Schemas, compiled once, to check arguments and payloads.
//!
//! **Invariant:** checking fetches nothing. A schema that refers to another document is refused when it is read.
//! **Invariant:** no value takes a check deeper than the stack is, whoever wrote the schema.
//! **Invariant:** the cost of a stranger's schema grows with its length alone; see [`Schema::of_stranger`]. One that a
//! request brings for its answer is bounded instead, and refused beyond that; see [`Schema::of_request`].
//! **Invariant:** no expression of a schema runs longer than its text is long, whoever wrote it ([`super::patterns`]).

use std::sync::Arc;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::nesting::schemas::Reach;
use super::patterns;

/// The most mistakes that are reported at once: a model that is wrong about everything need not read all of it.
const MOST_REPORTED: usize = 5;

/// The longest single mistake, in characters: messages repeat the value that is wrong.
const MISTAKE_CHARS: usize = 300;

/// The most values that a stranger's schema may hold, in all its depths.
const STRANGERS_VALUES: usize = 4000;

/// Bytes that one expression may take once it is compiled: a belt, since a stranger's schema has none.
const PATTERN_BYTES: usize = 16 * 1024;

/// The most values that the schema of an answer may hold, in all its depths.
const ANSWERS_VALUES: usize = 10_000;

/// 1 MiB of paths of all its values together: a compiled schema keeps them.
const ANSWERS_PATHS: usize = 1 << 20;

/// The most expressions in it: each is compiled before anything is known of it.
const ANSWERS_EXPRESSIONS: usize = 100;

/// Keywords that the schema of an answer may not have: what they check again at each depth cannot be counted, or they make
/// a reference mean something else than its path.
const UNCOUNTED: [&str; 7] = [
    "$dynamicRef",
    "$recursiveRef",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "unevaluatedProperties",
    "unevaluatedItems",
];

/// Keywords that a stranger's schema may not hold: a reference can go round without end, a short expression can become
/// megabytes of states, and a keyword about values that no other one has checked checks everything again at each depth.
const COSTLY: [&str; 7] = [
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "pattern",
    "patternProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
];

/// A schema that values are checked against.
#[derive(Debug, Clone)]
pub struct Schema {
    validator: Arc<Validator>,
    reach: Option<Reach>,
    /// The schema itself, where it has defaults.
    with_defaults: Option<Arc<Value>>,
}

/// References that are followed in a row at most: real schemas have one.
const MAX_REFERENCES: usize = 8;

impl Schema {
    /// The operator's schema in `schema`.
    ///
    /// # Errors
    /// When it is none, refers to another document, or has an expression that cannot be run in linear time or is too
    /// large; in words for the operator, with its path.
    pub fn parse(schema: &Value) -> Result<Self, String> {
        if let Some(unfit) = patterns::unfit(schema) {
            return Err(format!(
                "{unfit} cannot be run in linear time, or is too large; what looks around or refers back cannot"
            ));
        }
        Self::compiled(schema)
    }

    /// The schema in `schema`, which a server or a document brought that the operator has configured, without the
    /// expressions in it that cannot be run; and the paths of those, for the log.
    ///
    /// # Errors
    /// When it is none, refers to another document, or a check of it would take too many steps; in words for the operator.
    pub fn of_server(schema: &Value) -> Result<(Self, Vec<String>), String> {
        let (schema, left_out) = patterns::without_unfit(schema);
        match patterns::is_bounded(&schema) {
            true => Ok((Self::compiled(&schema)?, left_out)),
            false => Err("a check of it would take too many steps".to_owned()),
        }
    }

    /// The schema in `schema`, which a request brings for its answer, without the expressions in it that cannot be run; and
    /// the paths of those.
    ///
    /// # Errors
    /// When it is none, refers to another document or to nothing, or may take too long to read or to check with; in words
    /// for its sender.
    pub fn of_request(schema: &Value) -> Result<(Self, Vec<String>), String> {
        let mut left = Left { values: ANSWERS_VALUES, expressions: ANSWERS_EXPRESSIONS, paths: ANSWERS_PATHS };
        left.take((schema, schema), 0, true)?;
        Self::of_server(schema)
    }

    fn compiled(schema: &Value) -> Result<Self, String> {
        let validator = patterns::options().build(schema).map_err(|error| error.to_string())?;
        let with_defaults = has_defaults(schema).then(|| Arc::new(schema.clone()));
        Ok(Self { validator: Arc::new(validator), reach: Reach::from_schema(schema), with_defaults })
    }

    /// The schema in `schema`, which came with a request and which nothing has checked yet; `None` where it is none, or
    /// a check with it might take long: then there is no check. A name that is costly as a keyword counts wherever it
    /// stands, so a schema with a property of that name is not checked either.
    pub fn of_stranger(schema: &Value) -> Option<Self> {
        let mut budget = STRANGERS_VALUES;
        if !is_cheap(schema, &mut budget) {
            return None;
        }
        // A format may be an expression too, one that the checked value brings.
        let options = jsonschema::options().should_validate_formats(false);
        let options = options.with_pattern_options(PatternOptions::regex().size_limit(PATTERN_BYTES));
        options.build(schema).ok().map(|validator| Self {
            validator: Arc::new(validator),
            reach: None,
            with_defaults: None,
        })
    }

    /// `value` with the defaults of the schema instead of `null`, wherever a property has one: a model that reads of
    /// every property writes `null` for those that it leaves out.
    pub fn with_defaults(&self, mut value: Value) -> Value {
        if let Some(schema) = &self.with_defaults {
            fill(schema, schema, &mut value);
        }
        value
    }

    /// Checks `value`.
    ///
    /// # Errors
    /// Its mistakes, each with its path, a few at most.
    pub fn check(&self, value: &Value) -> Result<(), Vec<String>> {
        if self.reach.is_some_and(|reach| !reach.allows(value)) {
            return Err(vec!["the value is nested too deep for its schema".to_owned()]);
        }
        // This is quick whatever the schema, and most values fit.
        if self.validator.is_valid(value) {
            return Ok(());
        }
        if self.reach.is_some_and(Reach::is_circular) {
            return Err(vec!["the value does not fit its schema".to_owned()]);
        }
        let mistakes: Vec<String> = self
            .validator
            .iter_errors(value)
            .take(MOST_REPORTED)
            .map(|error| {
                let path = error.instance_path().to_string();
                let reason: String = error.to_string().chars().take(MISTAKE_CHARS).collect();
                if path.is_empty() { reason } else { format!("{}: {reason}", path.trim_start_matches('/')) }
            })
            .collect();
        Err(mistakes)
    }
}

/// What a request's schema may still hold.
struct Left {
    values: usize,
    expressions: usize,
    /// Bytes of the paths of its values.
    paths: usize,
}

impl Left {
    /// Takes `schema`, a part of `root` whose path has `path` bytes.
    fn take(&mut self, (root, schema): (&Value, &Value), path: usize, is_top: bool) -> Result<(), String> {
        let left = self.paths.checked_sub(path);
        self.paths = left.ok_or("its names are too long for how deep it is".to_owned())?;
        self.values = self.values.checked_sub(1).ok_or(format!("it has more than {ANSWERS_VALUES} values"))?;
        match schema {
            Value::Object(fields) => fields.iter().try_for_each(|(name, value)| {
                let expressions = match (name.as_str(), value) {
                    (keyword, _) if UNCOUNTED.contains(&keyword) => return Err(format!("{keyword} is not taken")),
                    ("$id" | "id", Value::String(_)) if !is_top => {
                        return Err("a part of it may not be a document of its own".to_owned());
                    }
                    ("$schema", Value::String(draft)) if draft.contains("draft-04") => {
                        return Err("it is of a draft before 6".to_owned());
                    }
                    ("$ref", Value::String(target)) => {
                        let path = target.strip_prefix('#');
                        let found = path.and_then(|path| root.pointer(path));
                        return found.map(drop).ok_or_else(|| format!("$ref {target:.100?} names no part of it"));
                    }
                    ("pattern", Value::String(_)) => 1,
                    ("patternProperties", Value::Object(named)) => named.len(),
                    _ => 0,
                };
                let left = self.expressions.checked_sub(expressions);
                self.expressions = left.ok_or(format!("it has more than {ANSWERS_EXPRESSIONS} expressions"))?;
                self.take((root, value), path + name.len() + 1, false)
            }),
            Value::Array(items) => items.iter().try_for_each(|item| self.take((root, item), path + 2, false)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }
}

/// Whether the schema holds nothing that is costly, and at most `budget` values.
fn is_cheap(schema: &Value, budget: &mut usize) -> bool {
    let Some(left) = budget.checked_sub(1) else { return false };
    *budget = left;
    match schema {
        Value::Object(fields) => {
            fields.iter().all(|(name, value)| !COSTLY.contains(&name.as_str()) && is_cheap(value, budget))
        }
        Value::Array(items) => items.iter().all(|item| is_cheap(item, budget)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

fn has_defaults(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => fields.contains_key("default") || fields.values().any(has_defaults),
        Value::Array(items) => items.iter().any(has_defaults),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Puts defaults instead of `null` into `value`. Goes no deeper than the value does.
fn fill(root: &Value, schema: &Value, value: &mut Value) {
    let mut schema = schema;
    for _ in 0..MAX_REFERENCES {
        let referred = schema.get("$ref").and_then(Value::as_str).and_then(|at| root.pointer(at.strip_prefix('#')?));
        let Some(referred) = referred else { break };
        schema = referred;
    }
    match value {
        Value::Object(fields) => {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
            for (name, value) in fields {
                let Some(property) = properties.get(name) else { continue };
                match property.get("default") {
                    Some(default) if value.is_null() => value.clone_from(default),
                    Some(_) | None => fill(root, property, value),
                }
            }
        }
        Value::Array(items) => {
            let Some(of_items) = schema.get("items") else { return };
            items.iter_mut().for_each(|item| fill(root, of_items, item));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mistakes_are_reported_with_their_paths() {
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

    #[test]
    fn a_strangers_schema_that_may_take_long_is_not_checked() {
        let wrong = json!({"s": 7});
        let with = |keyword: &str, value: Value| {
            let mut schema = json!({"properties": {"s": {"type": "string"}}});
            schema[keyword] = value;
            schema
        };
        let rows = [
            (json!({"properties": {"s": {"type": "string", "minLength": 2}}}), true, "one that costs little"),
            (with("$schema", json!("http://json-schema.org/draft-07/schema#")), true, "of another draft"),
            (with("items", json!({"pattern": r"\w{300}"})), false, "an expression"),
            (
                with("dependentSchemas", json!({"properties": {"pattern": r"\w{300}"}})),
                false,
                "one that looks like a name",
            ),
            (with("patternProperties", json!({r"\w{300}": true})), false, "expressions for names"),
            (with("propertyNames", json!({"pattern": "a"})), false, "the same"),
            (with("$ref", json!("#")), false, "no end"),
            (with("anyOf", json!([{"not": {"$dynamicRef": "#"}}])), false, "no end, further in"),
            (with("$ref", json!("http://localhost:1/x")), false, "another document"),
            (with("unevaluatedProperties", json!({"not": {}})), false, "what looks at everything again"),
            (with("enum", json!(vec![0; STRANGERS_VALUES])), false, "too much of it"),
            (json!({"type": 7}), false, "a schema that is none"),
        ];
        for (schema, is_held, reason) in rows {
            let held = Schema::of_stranger(&schema).is_some_and(|schema| schema.check(&wrong).is_err());
            assert_eq!(held, is_held, "{reason}");
        }
        let format =
            Schema::of_stranger(&json!({"$schema": "http://json-schema.org/draft-07/schema#", "format": "regex"}));
        assert_eq!(format.unwrap().check(&json!("(")), Ok(()), "no expression is made of what is checked");
    }

    /// A schema of many values below twenty such names.
    fn deep(name: &str) -> Value {
        let inside = json!({"allOf": vec![json!({}); 3000]});
        (0..20).fold(inside, |part, _| json!({"properties": {name: part}}))
    }

    #[test]
    fn a_schema_that_is_twice_in_itself_is_checked_quickly() {
        let twice =
            |keyword: &str| json!({"type": "object", "properties": {"a": {keyword: [{"$ref": "#"}, {"$ref": "#"}]}}});
        for keyword in ["allOf", "anyOf"] {
            let (schema, _) = Schema::of_request(&twice(keyword)).unwrap();
            let nested = |inside: Value| (0..40).fold(inside, |value, _| json!({"a": value}));
            assert_eq!(schema.check(&nested(json!({}))), Ok(()), "{keyword}");
            let mistake = vec!["the value does not fit its schema".to_owned()];
            assert_eq!(schema.check(&nested(json!(7))), Err(mistake), "{keyword}");
        }
    }

    #[test]
    fn a_schema_for_an_answer_is_counted_and_its_references_are_paths_in_it() {
        let mut laughs = json!({"$ref": "#/$defs/0", "$defs": {"30": {"type": "string"}}});
        for part in 0..30 {
            let next = json!({"$ref": format!("#/$defs/{}", part + 1)});
            laughs["$defs"][part.to_string()] = json!({"allOf": [next, next]});
        }
        let rows = [
            (json!({"properties": {"a": {"$ref": "#"}}}), None, "one that is in itself"),
            (json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}), None, "a circle"),
            (
                json!({"properties": {"$ref": {"type": "string"}, "id": {"type": "string"}}}),
                None,
                "names are no keywords",
            ),
            (laughs, Some("too many steps"), "parts that are taken a million times"),
            (json!({"$ref": "http://localhost:1/a.json"}), Some("names no part of it"), "another document"),
            (json!({"$ref": "file:///etc/passwd"}), Some("names no part of it"), "a file"),
            (json!({"$ref": "#/%24defs/a", "$defs": {"a": {}}}), Some("names no part of it"), "another spelling"),
            (json!({"items": {"$id": "http://x.y/", "$ref": "#/z"}}), Some("a document of its own"), "a base in it"),
            (json!({"items": {"$id": "http://x.y/"}}), Some("a document of its own"), "a base in it, unused"),
            (json!({"items": {"$anchor": "a"}}), Some("$anchor is not taken"), "a name for a part"),
            (json!({"unevaluatedItems": false}), Some("is not taken"), "what is checked again at each depth"),
            (json!({"allOf": vec![json!({"pattern": "a"}); 101]}), Some("100 expressions"), "many expressions"),
            (json!({"enum": vec![0; 10_001]}), Some("10000 values"), "many values"),
            (deep(&"x".repeat(1200)), Some("too long"), "long names above many values"),
            (json!({"type": 7}), Some("is not valid"), "none"),
            (json!({"$schema": "http://json-schema.org/draft-04/schema#"}), Some("draft"), "an old draft"),
        ];
        for (schema, mistake, reason) in rows {
            match (Schema::of_request(&schema), mistake) {
                (Ok((_, left_out)), None) => assert_eq!(left_out, [""; 0], "{reason}"),
                (Err(error), Some(words)) => {
                    assert!(error.contains(words), "{reason}: {error}");
                }
                (read, _) => panic!("{reason}: {read:?}"),
            }
        }
        let looking = json!({"properties": {"price": {"type": "string", "pattern": r"^(?!-)\d+$"}}});
        let (schema, left_out) = Schema::of_request(&looking).unwrap();
        assert_eq!(left_out, [r#"properties/price/pattern: "^(?!-)\\d+$""#]);
        assert_eq!(schema.check(&json!({"price": "-1"})), Ok(()), "the rest of it is checked");
        assert!(schema.check(&json!({"price": 1})).is_err());
    }
}
