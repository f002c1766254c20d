//! Expressions in schemas, and what a check of a stranger's schema costs. Pure.
//!
//! **Invariant:** every expression runs in time that grows with the text alone. One that needs an engine which goes back and
//! tries again, or that becomes too large, is refused where the schema is the operator's, and left out where it is not.

use std::collections::HashMap;

use jsonschema::{PatternOptions, ValidationOptions};
use serde_json::{Map, Value, json};

/// Bytes that one expression of the operator's may take once it is compiled.
const OPERATORS_BYTES: usize = 1 << 20;

/// Bytes of a stranger's, smallest first: what it costs to run goes by the first that is enough.
const STRANGERS_BYTES: [usize; 5] = [1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10];

/// The bytes of a compiled expression that cost as much as one value of a schema.
const BYTES_PER_STEP: usize = 16;

/// The steps that a stranger's schema may take at one position of a value, its references followed: a few hundred small
/// expressions, or a second with the longest arguments.
const STRANGERS_STEPS: usize = 20_000;

/// Keywords whose values are data and no schemas.
const DATA: [&str; 5] = ["const", "enum", "default", "examples", "example"];

/// Keywords whose fields are names.
const NAMED: [&str; 4] = ["properties", "$defs", "definitions", "dependentSchemas"];

/// Keywords that demand more when what is in them demands less: they go as a whole.
const CONTRARY: [&str; 4] = ["not", "if", "oneOf", "contains"];

/// How all schemas are compiled: expressions in linear time, of bounded size. `format: regex` says nothing: the checked
/// value would bring the expression.
pub(super) fn options() -> ValidationOptions<'static> {
    options_of(OPERATORS_BYTES)
}

fn options_of(bytes: usize) -> ValidationOptions<'static> {
    let patterns = PatternOptions::regex().size_limit(bytes).dfa_size_limit(bytes.max(256 << 10));
    jsonschema::options().with_pattern_options(patterns).with_format("regex", |_: &str| true)
}

fn is_fit(pattern: &str, bytes: usize) -> bool {
    options_of(bytes).build(&json!({"pattern": pattern})).is_ok()
}

/// The first expression in the operator's `schema` that cannot be run, with its path.
pub(super) fn unfit(schema: &Value) -> Option<String> {
    let left_out = without(schema, &|pattern| is_fit(pattern, OPERATORS_BYTES)).1;
    left_out.into_iter().next()
}

/// A stranger's `schema` without the expressions that cannot be run, and the paths of those. It demands nothing that
/// `schema` does not.
pub fn without_unfit(schema: &Value) -> (Value, Vec<String>) {
    without(schema, &|pattern| is_fit(pattern, STRANGERS_BYTES[STRANGERS_BYTES.len() - 1]))
}

fn without(schema: &Value, is_fit: &dyn Fn(&str) -> bool) -> (Value, Vec<String>) {
    let mut leaving = Leaving { is_fit, left_out: Vec::new(), has_names: false };
    let mut kept = leaving.part(schema, "");
    if leaving.has_names {
        forget(&mut kept, "unevaluatedProperties");
    }
    (kept, leaving.left_out)
}

struct Leaving<'a> {
    is_fit: &'a dyn Fn(&str) -> bool,
    left_out: Vec<String>,
    /// Whether names are described by something that was left out.
    has_names: bool,
}

impl Leaving<'_> {
    /// A schema, or a list of such.
    fn part(&mut self, schema: &Value, path: &str) -> Value {
        let fields = match schema {
            Value::Object(fields) => fields,
            Value::Array(items) => return items.iter().map(|item| self.part(item, path)).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return schema.clone(),
        };
        let mut kept = Map::new();
        let mut has_names = false;
        for (name, value) in fields {
            let path = format!("{path}/{name}");
            let before = self.left_out.len();
            let part = match (name.as_str(), value) {
                (name, value) if DATA.contains(&name) => value.clone(),
                ("pattern", Value::String(pattern)) if !self.fits(pattern, &path) => continue,
                ("patternProperties", Value::Object(patterns)) => {
                    let mut named = Map::new();
                    for (pattern, part) in patterns {
                        match self.fits(pattern, &path) {
                            true => drop(named.insert(pattern.clone(), self.part(part, &path))),
                            false => has_names = true,
                        }
                    }
                    Value::Object(named)
                }
                (name, Value::Object(parts)) if NAMED.contains(&name) => {
                    let part = |(name, part): (&String, &Value)| {
                        let at = format!("{path}/{name}");
                        (name.clone(), self.part(part, &at))
                    };
                    parts.iter().map(part).collect()
                }
                (_, value) => self.part(value, &path),
            };
            if self.left_out.len() == before || !CONTRARY.contains(&name.as_str()) {
                kept.insert(name.clone(), part);
            }
        }
        if has_names {
            // An expression that was left out decided which other names there may be.
            kept.shift_remove("additionalProperties");
            self.has_names = true;
        }
        Value::Object(kept)
    }

    fn fits(&mut self, pattern: &str, path: &str) -> bool {
        let is_fit = (self.is_fit)(pattern);
        if !is_fit {
            let short: String = pattern.chars().take(100).collect();
            self.left_out.push(format!("{}: {short:?}", path.trim_start_matches('/')));
        }
        is_fit
    }
}

fn forget(schema: &mut Value, keyword: &str) {
    match schema {
        Value::Object(fields) => {
            fields.shift_remove(keyword);
            fields.values_mut().for_each(|part| forget(part, keyword));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| forget(item, keyword)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether a stranger's schema takes few enough steps at one position of a value: a part to which many others refer is
/// taken as often as they do, and parts that refer to two others each are soon taken a million times.
pub(super) fn is_bounded(schema: &Value) -> bool {
    let mut steps = Steps { root: schema, left: STRANGERS_STEPS, open: Vec::new(), known: HashMap::new() };
    steps.take(schema)
}

struct Steps<'s> {
    root: &'s Value,
    left: usize,
    /// References that are being followed: whoever comes back to one has gone down in the value.
    open: Vec<&'s str>,
    known: HashMap<&'s str, usize>,
}

impl<'s> Steps<'s> {
    fn take(&mut self, schema: &'s Value) -> bool {
        if !self.spend(1) {
            return false;
        }
        match schema {
            Value::Object(fields) => fields.iter().all(|(name, value)| match (name.as_str(), value) {
                ("pattern", Value::String(pattern)) => self.run(pattern),
                ("patternProperties", Value::Object(patterns)) => {
                    patterns.iter().all(|(pattern, part)| self.run(pattern) && self.take(part))
                }
                ("$ref", Value::String(reference)) => self.follow(reference),
                // A definition costs nothing until it is referred to.
                ("$defs" | "definitions", _) => true,
                (_, value) => self.take(value),
            }),
            Value::Array(items) => items.iter().all(|item| self.take(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        }
    }

    fn follow(&mut self, reference: &'s str) -> bool {
        let Some(part) = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) else {
            return true;
        };
        if self.open.contains(&reference) {
            return true;
        }
        self.open.push(reference);
        let taken = self.take(part);
        self.open.pop();
        taken
    }

    fn run(&mut self, pattern: &'s str) -> bool {
        let cost = *self.known.entry(pattern).or_insert_with(|| {
            let enough = STRANGERS_BYTES.into_iter().find(|bytes| is_fit(pattern, *bytes));
            enough.unwrap_or(OPERATORS_BYTES) / BYTES_PER_STEP
        });
        self.spend(cost)
    }

    fn spend(&mut self, steps: usize) -> bool {
        let left = self.left.checked_sub(steps);
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_run_is_left_out_and_nothing_else_is_demanded_for_it() {
        let back = r"^(?=a)b";
        let rows = [
            (json!({"pattern": "^a+$"}), json!({"pattern": "^a+$"}), "one that can be run"),
            (json!({"type": "string", "pattern": back}), json!({"type": "string"}), "one that looks ahead"),
            (json!({"pattern": r"(.)\1"}), json!({}), "one that refers back"),
            (json!({"pattern": r"(\d{1000}){1000}"}), json!({}), "one that becomes large"),
            (json!({"not": {"pattern": back}}), json!({}), "nothing is not everything"),
            (
                json!({"anyOf": [{"pattern": back}, {"type": "null"}]}),
                json!({"anyOf": [{}, {"type": "null"}]}),
                "any other way is still open",
            ),
            (
                json!({"patternProperties": {back: {}, "^x": {}}, "additionalProperties": false}),
                json!({"patternProperties": {"^x": {}}}),
                "names without a description may be there",
            ),
            (
                json!({"properties": {"pattern": {"type": "string"}, "not": {"pattern": back}}}),
                json!({"properties": {"pattern": {"type": "string"}, "not": {}}}),
                "names are no keywords",
            ),
            (json!({"const": {"pattern": back}}), json!({"const": {"pattern": back}}), "data is data"),
        ];
        for (schema, expected, reason) in rows {
            let (kept, left_out) = without_unfit(&schema);
            assert_eq!(kept, expected, "{reason}");
            assert_eq!(left_out.is_empty(), schema == expected, "{reason}: {left_out:?}");
        }
        let nested = json!({"properties": {"a": {"items": {"pattern": back}}}});
        assert_eq!(unfit(&nested).unwrap(), r#"properties/a/items/pattern: "^(?=a)b""#);
    }

    #[test]
    fn parts_that_are_taken_again_and_again_are_counted_each_time() {
        let mut laughs = json!({"$ref": "#/$defs/0", "$defs": {"20": {"type": "string"}}});
        for part in 0..20 {
            let next = json!({"$ref": format!("#/$defs/{}", part + 1)});
            laughs["$defs"][part.to_string()] = json!({"allOf": [next, next]});
        }
        let tree = json!({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}});
        let many = json!({"allOf": vec![json!({"pattern": "^[a-z]+$"}); 200]});
        let large = json!({"allOf": vec![json!({"pattern": r"^\w{300}$"}); 200]});
        for (schema, expected) in [(laughs, false), (tree, true), (many, true), (large, false)] {
            assert_eq!(is_bounded(&schema), expected, "{schema:.80}");
        }
    }
}
