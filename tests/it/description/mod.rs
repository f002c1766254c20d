//! The API's description: that all of the server is in it, that it is true, and what a tool that we did not write finds out
//! with it.

mod document;
mod errors;
mod events;
mod page;
mod schemathesis;

use serde_json::{Value, json};
use switchboard::http::description::{self, Version};

/// The document that tools read.
fn document() -> Value {
    description::document(Version::V31)
}

/// Every operation: its method, its path, itself.
pub fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let paths = document["paths"].as_object().unwrap();
    let of = |(path, item): (&String, &Value)| {
        let item = item.as_object().unwrap().clone();
        let path = path.clone();
        item.into_iter().map(move |(method, operation)| (method, path.clone(), operation)).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of).collect()
}

/// What is wrong with `value` by a schema that may refer to the document's own.
fn mistakes(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let schema = json!({"components": document["components"], "allOf": [schema]});
    let validator = jsonschema::validator_for(&schema).unwrap();
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}
