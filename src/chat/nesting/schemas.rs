//! How deep a schema takes whoever checks a value with it.
//!
//! One without references goes as deep as it is written. With references it can begin anew at each depth of the value, and
//! pass all its parts each time: some kilobytes from a stranger, and a value that a model writes, are a full stack.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Keywords that lead to another part.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// How many steps a check may take in each other. A step takes some 80 bytes of stack (350 unoptimized), and a thread has
/// 2 MiB; fifty parts of five steps, for a value that is twenty deep, are 5,000.
const MAX_STEPS: usize = 6000;

/// The steps that a schema with references can take at one depth of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    steps: usize,
    /// Whether some part of it refers back to itself.
    is_circular: bool,
}

impl Reach {
    /// The reach of `schema`; `None` where it refers to nothing, so that no value takes it deeper than it is written.
    pub fn from_schema(schema: &Value) -> Option<Self> {
        let mut references = BTreeSet::new();
        gather(schema, &mut references);
        if references.is_empty() {
            return None;
        }
        // At one depth of a value no part is passed twice, or the check would have no end.
        let part = |reference: &&str| {
            let part = reference.strip_prefix('#').and_then(|pointer| schema.pointer(pointer));
            depth(part.unwrap_or(schema))
        };
        let steps = references.iter().map(part).fold(depth(schema), usize::saturating_add);
        Some(Self { steps, is_circular: leads_back(schema, &references) })
    }

    /// Whether some part of the schema refers back to itself: what such a part finds wrong may be twice as much with each depth
    /// of a value.
    pub fn is_circular(self) -> bool {
        self.is_circular
    }

    /// Whether a check of `value` stays within the stack.
    pub fn allows(self, value: &Value) -> bool {
        self.steps.saturating_mul(depth(value)) <= MAX_STEPS
    }
}

/// Whether one of these references of `schema` leads back to itself.
fn leads_back<'s>(schema: &'s Value, references: &BTreeSet<&'s str>) -> bool {
    let part = |reference: &str| reference.strip_prefix('#').and_then(|pointer| schema.pointer(pointer));
    let mut waiting: BTreeMap<&str, usize> = BTreeMap::new();
    let mut used_by: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for reference in references {
        let mut inside = BTreeSet::new();
        gather(part(reference).unwrap_or(schema), &mut inside);
        waiting.insert(reference, inside.len());
        inside.into_iter().for_each(|used| used_by.entry(used).or_default().push(reference));
    }
    // Whatever uses nothing that is left can be set aside; in the end only circles, and what uses them, are left.
    let mut free: Vec<&str> = waiting.iter().filter(|(_, left)| **left == 0).map(|(name, _)| *name).collect();
    let mut aside = 0;
    while let Some(used) = free.pop() {
        aside += 1;
        for user in used_by.get(used).into_iter().flatten() {
            if let Some(left) = waiting.get_mut(user) {
                *left -= 1;
                if *left == 0 {
                    free.push(user);
                }
            }
        }
    }
    aside < references.len()
}

/// The schema's references, each once.
fn gather<'s>(schema: &'s Value, references: &mut BTreeSet<&'s str>) {
    match schema {
        Value::Object(fields) => {
            for (name, part) in fields {
                match part {
                    Value::String(reference) if REFERENCES.contains(&name.as_str()) => {
                        references.insert(reference);
                    }
                    other => gather(other, references),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, references)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// How many values stand in each other; 1 for one that holds none. Whatever was read as JSON has at most 128.
fn depth(value: &Value) -> usize {
    let inner = match value {
        Value::Object(fields) => fields.values().map(depth).max(),
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    };
    1 + inner.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chat::schema::Schema;

    fn deep(depth: usize) -> Value {
        (0..depth).fold(json!(1), |value, _| json!({"a": value}))
    }

    /// Parts that lead from one to the next, and from the last to the first for what is in the value.
    fn ring(parts: usize) -> Value {
        let mut schema = json!({"type": "object", "$ref": "#/$defs/0", "$defs": {}});
        for part in 0..parts {
            schema["$defs"][part.to_string()] = json!({"allOf": [{"$ref": format!("#/$defs/{}", part + 1)}]});
        }
        schema["$defs"][parts.to_string()] = json!({"properties": {"a": {"$ref": "#/$defs/0"}}});
        schema
    }

    #[test]
    fn a_schema_reaches_as_far_as_all_that_it_refers_to() {
        let plain = json!({"properties": {"a": {"type": "string"}}});
        assert_eq!(Reach::from_schema(&plain), None);
        let refers = json!({"properties": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"type": "string"}}});
        assert_eq!(Reach::from_schema(&refers), Some(Reach { steps: 4 + 2, is_circular: false }));
        let whole = json!({"properties": {"a": {"$dynamicRef": "#node"}}});
        let everything = Reach { steps: 4 + 4, is_circular: true };
        assert_eq!(Reach::from_schema(&whole), Some(everything), "what is not found is everything");
        assert!(Reach::from_schema(&ring(3)).is_some_and(Reach::is_circular), "by way of others");
        let property = json!({"properties": {"$ref": {"type": "string"}}});
        assert_eq!(Reach::from_schema(&property), None, "a property of that name");
    }

    #[test]
    fn a_value_that_takes_a_schema_too_deep_is_a_mistake_and_no_end_of_the_process() {
        let rows = [
            (ring(5), 20, true, "a schema that refers to itself, for a value as they are"),
            (ring(5), 120, true, "for a deep value"),
            (ring(40), 30, true, "one of many parts"),
            (ring(40), 120, false, "one of many parts for a deep value"),
            (ring(1000), 3, false, "one of very many parts"),
            (json!({"type": "object"}), 120, true, "one that refers to nothing"),
        ];
        // An unoptimized check takes more stack than a test has.
        let checked = std::thread::Builder::new().stack_size(16 << 20).spawn(move || {
            for (schema, depth, is_checked, reason) in rows {
                let expected = match is_checked {
                    true => Ok(()),
                    false => Err(vec!["the value is nested too deep for its schema".to_owned()]),
                };
                assert_eq!(Schema::parse(&schema).unwrap().check(&deep(depth)), expected, "{reason}");
            }
        });
        checked.unwrap().join().unwrap();
    }
}
