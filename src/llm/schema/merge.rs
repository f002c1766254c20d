//! Schemas put together: `allOf` folded into the schema it stands in, references followed on the way.

use serde_json::{Map, Value, json};

use super::{refs::resolve, words};

/// 16 steps from reference to reference, or from `allOf` to `allOf`; more is a circle.
const MAX_STEPS: usize = 16;

/// `schema` as one object: its own reference followed, its `allOf` merged into it.
pub(super) fn merged(root: &Value, schema: &Map<String, Value>) -> Map<String, Value> {
    merge(root, schema.clone(), &mut { MAX_STEPS })
}

fn merge(root: &Value, mut schema: Map<String, Value>, steps: &mut usize) -> Map<String, Value> {
    while let Some(reference) = schema.shift_remove("$ref") {
        let target = reference.as_str().and_then(|reference| resolve(root, reference)).and_then(Value::as_object);
        match target {
            Some(target) if *steps > 0 => {
                *steps -= 1;
                combine(&mut schema, target.clone());
            }
            Some(_) => words::add(&mut schema, words::TOO_LARGE),
            None => words::add(&mut schema, &words::describe("$ref", &reference)),
        }
    }
    let Some(Value::Array(parts)) = schema.shift_remove("allOf") else { return schema };
    for part in parts {
        match part {
            Value::Object(part) if *steps > 0 => {
                *steps -= 1;
                let part = merge(root, part, steps);
                combine(&mut schema, part);
            }
            Value::Object(_) => words::add(&mut schema, words::TOO_LARGE),
            // `true` demands nothing, and what is no schema neither.
            _ => {}
        }
    }
    schema
}

/// Adds to `schema` what `other` demands besides.
pub(super) fn combine(schema: &mut Map<String, Value>, other: Map<String, Value>) {
    let closed: Vec<String> = [closed_to(schema, &other), closed_to(&other, schema)].into_iter().flatten().collect();
    for (key, theirs) in other {
        let Some(ours) = schema.get_mut(&key) else {
            schema.insert(key, theirs);
            continue;
        };
        if *ours == theirs {
            continue;
        }
        match (key.as_str(), ours, theirs) {
            ("properties", Value::Object(ours), Value::Object(theirs)) => {
                for (name, theirs) in theirs {
                    match ours.get_mut(&name) {
                        Some(ours) if *ours == theirs => {}
                        Some(ours) => *ours = json!({"allOf": [ours.take(), theirs]}),
                        None => drop(ours.insert(name, theirs)),
                    }
                }
            }
            ("$defs" | "definitions", Value::Object(ours), Value::Object(theirs)) => ours.extend(theirs),
            ("required", Value::Array(ours), Value::Array(theirs)) => {
                for name in theirs {
                    if !ours.contains(&name) {
                        ours.push(name);
                    }
                }
            }
            ("allOf", Value::Array(ours), Value::Array(theirs)) => ours.extend(theirs),
            ("enum", Value::Array(ours), Value::Array(theirs)) if ours.iter().any(|value| theirs.contains(value)) => {
                ours.retain(|value| theirs.contains(value));
            }
            ("type", ours, theirs) if *ours == "number" && theirs == "integer" => *ours = theirs,
            ("type", ours, theirs) if *ours == "integer" && theirs == "number" => {}
            // Our own name for it is the nearer one.
            ("title", ..) => {}
            ("description", _, Value::String(theirs)) => words::add(schema, &theirs),
            (keyword, _, theirs) => {
                let sentence = words::describe(keyword, &theirs);
                words::add(schema, &sentence);
            }
        }
    }
    closed.iter().for_each(|sentence| words::add(schema, sentence));
}

/// That `part` does not allow all properties of `other`, in words: together they could be read as if it did.
fn closed_to(part: &Map<String, Value>, other: &Map<String, Value>) -> Option<String> {
    let none = Map::new();
    let is_closed = part.get("additionalProperties") == Some(&Value::Bool(false));
    let own = part.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let theirs = other.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let is_described = is_closed && theirs.keys().any(|name| !own.contains_key(name));
    is_described.then(|| words::closed(own.keys()))
}
