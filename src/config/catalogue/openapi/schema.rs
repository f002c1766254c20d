//! A document's schemas as plain JSON Schemas: references written out, the words of OpenAPI 3.0 translated, examples and
//! extensions left away.
//!
//! **Invariant:** bounded. A schema that contains itself is cut where it comes for the second time, and one that becomes too
//! large or too deep is refused.

use serde_json::{Map, Value, json};

use super::refs;

/// 3,000 schemas in one tool's arguments: more than a model reads.
const MAX_NODES: usize = 3000;

/// How deep schemas may stand in each other.
const MAX_DEPTH: usize = 40;

/// Words whose value is a schema.
const ONE: [&str; 11] = [
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "additionalItems",
];

/// Words whose value is a list of schemas.
const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];

/// Words whose value is an object of schemas.
const OBJECTS: [&str; 3] = ["properties", "patternProperties", "dependentSchemas"];

/// Words that say nothing about what fits.
const SILENT: [&str; 16] = [
    "example",
    "examples",
    "externalDocs",
    "xml",
    "discriminator",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$schema",
    "$id",
    "$anchor",
    "$comment",
    "$defs",
    "definitions",
    "contentMediaType",
    "contentEncoding",
];

/// Writes schemas out.
pub(super) struct Writer<'d> {
    root: &'d Value,
    /// The references that are being written out.
    open: Vec<String>,
    nodes: usize,
}

impl<'d> Writer<'d> {
    /// Of the document `root`.
    pub(super) fn new(root: &'d Value) -> Self {
        Self { root, open: Vec::new(), nodes: 0 }
    }

    /// `schema` as a plain one.
    ///
    /// # Errors
    /// Why it cannot be.
    pub(super) fn write(&mut self, schema: &'d Value) -> Result<Value, String> {
        self.at(schema, 0)
    }

    fn at(&mut self, schema: &'d Value, depth: usize) -> Result<Value, String> {
        self.nodes += 1;
        if self.nodes > MAX_NODES || depth > MAX_DEPTH {
            return Err(format!("its schemas are too large: more than {MAX_NODES}, or {MAX_DEPTH} in each other"));
        }
        let Value::Object(fields) = schema else { return Ok(schema.clone()) };
        if fields.contains_key("$dynamicRef") || fields.contains_key("$recursiveRef") {
            return Err("its schemas have dynamic references".to_owned());
        }
        match refs::reference(schema) {
            None => self.fields(fields, depth),
            Some(reference) => {
                let mut written = self.referred(reference, depth)?;
                // What stands beside a reference adds to it.
                if let (Value::Object(written), true) = (&mut written, fields.len() > 1) {
                    let beside: Map<String, Value> =
                        fields.iter().filter(|(key, _)| *key != "$ref").map(|(k, v)| (k.clone(), v.clone())).collect();
                    for key in ["description", "title", "default"] {
                        if let Some(value) = beside.get(key) {
                            written.insert(key.to_owned(), value.clone());
                        }
                    }
                }
                Ok(written)
            }
        }
    }

    fn referred(&mut self, reference: &str, depth: usize) -> Result<Value, String> {
        let target = refs::find(self.root, reference)?;
        if self.open.iter().any(|open| open == reference) {
            let name = reference.rsplit('/').next().unwrap_or(reference);
            let mut cut = Map::new();
            if let Some(kind) = target.get("type") {
                cut.insert("type".to_owned(), kind.clone());
            }
            cut.insert("description".to_owned(), json!(format!("another {name}, of the same form")));
            return Ok(Value::Object(cut));
        }
        self.open.push(reference.to_owned());
        let written = self.at(target, depth + 1);
        self.open.pop();
        written
    }

    fn fields(&mut self, fields: &'d Map<String, Value>, depth: usize) -> Result<Value, String> {
        let mut written = Map::new();
        let mut left_out = Vec::new();
        for (key, value) in fields {
            let word = key.as_str();
            if SILENT.contains(&word) || word.starts_with("x-") || word == "nullable" {
                continue;
            }
            let value = if ONE.contains(&word) {
                self.at(value, depth + 1)?
            } else if LISTS.contains(&word) {
                let mut branches = Vec::new();
                for item in value.as_array().into_iter().flatten() {
                    let mut branch = self.at(item, depth + 1)?;
                    if let (true, Some(discriminator)) = (word != "allOf", fields.get("discriminator")) {
                        tell_apart(discriminator, item, &mut branch);
                    }
                    branches.push(branch);
                }
                Value::Array(branches)
            } else if OBJECTS.contains(&word) {
                let mut properties = Map::new();
                for (name, schema) in value.as_object().into_iter().flatten() {
                    // What only answers have is not for a request.
                    if word == "properties" && is_read_only(self.root, schema) {
                        left_out.push(name.as_str());
                        continue;
                    }
                    properties.insert(name.clone(), self.at(schema, depth + 1)?);
                }
                Value::Object(properties)
            } else {
                value.clone()
            };
            written.insert(key.clone(), value);
        }
        if let Some(required) = written.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| name.as_str().is_none_or(|name| !left_out.contains(&name)));
        }
        exclusive(&mut written, "exclusiveMinimum", "minimum");
        exclusive(&mut written, "exclusiveMaximum", "maximum");
        match fields.get("nullable") {
            Some(Value::Bool(true)) => Ok(nullable(written)),
            _ => Ok(Value::Object(written)),
        }
    }
}

/// Says in `branch`, which is `item` written out, by which values of the discriminator it is meant: nothing else tells a model.
fn tell_apart(discriminator: &Value, item: &Value, branch: &mut Value) {
    let name = discriminator.get("propertyName").and_then(Value::as_str);
    let mapping = discriminator.get("mapping").and_then(Value::as_object);
    let (Some(name), Some(mapping), Some(reference), Value::Object(branch)) =
        (name, mapping, refs::reference(item), branch)
    else {
        return;
    };
    let means_it = |target: &str| target == reference || reference.rsplit('/').next() == Some(target);
    let values = mapping.iter().filter(|(_, target)| target.as_str().is_some_and(means_it)).map(|(value, _)| value);
    let values: Vec<&String> = values.collect();
    if values.is_empty() {
        return;
    }
    let properties = branch.entry("properties").or_insert_with(|| json!({})).as_object_mut();
    let property = properties.map(|fields| fields.entry(name).or_insert_with(|| json!({"type": "string"})));
    match property {
        Some(Value::Object(words))
            if words.get("type").is_none_or(|kind| kind == "string")
                && !words.contains_key("enum")
                && !words.contains_key("const") =>
        {
            words.insert("enum".to_owned(), json!(values));
        }
        _ => return,
    }
    if let Value::Array(required) = branch.entry("required").or_insert_with(|| json!([]))
        && !required.iter().any(|known| known == name)
    {
        required.push(json!(name));
    }
}

fn is_read_only(root: &Value, schema: &Value) -> bool {
    let says = |schema: &Value| schema.get("readOnly") == Some(&Value::Bool(true));
    says(schema) || refs::target(root, schema).is_ok_and(says)
}

/// 3.0 says `minimum: 0, exclusiveMinimum: true`, JSON Schema `exclusiveMinimum: 0`.
fn exclusive(schema: &mut Map<String, Value>, word: &str, bound: &str) {
    let Some(Value::Bool(truth)) = schema.get(word) else { return };
    let is_exclusive = *truth;
    schema.shift_remove(word);
    if is_exclusive && let Some(value) = schema.shift_remove(bound) {
        schema.insert(word.to_owned(), value);
    }
}

/// The schema with `null` let in.
fn nullable(mut schema: Map<String, Value>) -> Value {
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => json!([kind, "null"]),
        Some(other) => other.clone(),
        None => {
            let nothing = json!({"type": "null"});
            return if schema.is_empty() { json!({}) } else { json!({"anyOf": [schema, nothing]}) };
        }
    };
    schema.insert("type".to_owned(), kind);
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    Value::Object(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(root: &Value, schema: &Value) -> Result<Value, String> {
        Writer::new(root).write(schema)
    }

    #[test]
    fn schemas_are_written_out_in_plain_words() {
        let root = json!({"components": {"schemas": {
            "Tag": {"type": "string", "example": "x", "x-internal": true},
            "a/b": {"type": "integer"},
            "Node": {"type": "object", "properties": {
                "id": {"type": "integer", "readOnly": true},
                "children": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}}
            }, "required": ["id", "children"]}
        }}});
        let rows = [
            (json!({"$ref": "#/components/schemas/Tag"}), json!({"type": "string"}), "a reference"),
            (json!({"$ref": "#/components/schemas/a~1b"}), json!({"type": "integer"}), "an escaped one"),
            (json!({"$ref": "#/components/schemas/a%7E1b"}), json!({"type": "integer"}), "an encoded one"),
            (
                json!({"$ref": "#/components/schemas/Tag", "description": "A tag"}),
                json!({"type": "string", "description": "A tag"}),
                "words beside a reference",
            ),
            (
                json!({"type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false}),
                json!({"type": "number", "maximum": 9, "exclusiveMinimum": 0}),
                "bounds of 3.0",
            ),
            (
                json!({"type": "string", "nullable": true, "enum": ["a"]}),
                json!({"type": ["string", "null"], "enum": ["a", null]}),
                "null of 3.0",
            ),
            (
                json!({"allOf": [{"$ref": "#/components/schemas/Tag"}], "nullable": true}),
                json!({"anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}]}),
                "null of 3.0 without a type",
            ),
            (
                json!({"$ref": "#/components/schemas/Node"}),
                json!({
                    "type": "object",
                    "properties": {"children": {
                        "type": "array",
                        "items": {"type": "object", "description": "another Node, of the same form"}
                    }},
                    "required": ["children"]
                }),
                "one that contains itself, without what only answers have",
            ),
        ];
        for (schema, expected, reason) in rows {
            assert_eq!(written(&root, &schema), Ok(expected), "{reason}");
        }
    }

    #[test]
    fn a_branch_says_by_which_value_it_is_meant() {
        let root = json!({"components": {"schemas": {
            "Cat": {"type": "object", "properties": {"kind": {"type": "string"}, "lives": {"type": "integer"}}},
            "Dog": {"allOf": [{"type": "object"}]},
            "Fish": {"type": "object", "properties": {"kind": {"type": "string", "enum": ["fish"]}}, "required": ["kind"]}
        }}});
        let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
        let of = |mapping: Value| {
            json!({
                "oneOf": [reference("Cat"), reference("Dog"), reference("Fish"), {"type": "string"}],
                "discriminator": {"propertyName": "kind", "mapping": mapping}
            })
        };
        let mapping = json!({"cat": "#/components/schemas/Cat", "tom": "Cat", "dog": "Dog", "fish": "Fish"});
        let expected = json!({"oneOf": [
            {
                "type": "object",
                "properties": {"kind": {"type": "string", "enum": ["cat", "tom"]}, "lives": {"type": "integer"}},
                "required": ["kind"]
            },
            {
                "allOf": [{"type": "object"}],
                "properties": {"kind": {"type": "string", "enum": ["dog"]}},
                "required": ["kind"]
            },
            {"type": "object", "properties": {"kind": {"type": "string", "enum": ["fish"]}}, "required": ["kind"]},
            {"type": "string"}
        ]});
        assert_eq!(written(&root, &of(mapping)), Ok(expected));
        let unnamed = written(&root, &of(json!({"cat": "Cat"}))).unwrap();
        assert_eq!(unnamed["oneOf"][1], json!({"allOf": [{"type": "object"}]}), "nothing is said of what has no name");
    }

    #[test]
    fn what_leads_elsewhere_or_has_no_end_is_refused() {
        let wide: Map<String, Value> = (0..4000).map(|n| (format!("p{n}"), json!({}))).collect();
        let deep = (0..50).fold(json!({}), |schema, _| json!({"items": schema}));
        let root = json!({"a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}});
        for schema in [
            json!({"$ref": "other.json#/a"}),
            json!({"$ref": "https://example.com/a"}),
            json!({"$ref": "#/nowhere"}),
            json!({"$dynamicRef": "#a"}),
            json!({"properties": wide}),
            deep,
        ] {
            assert!(written(&root, &schema).is_err(), "{schema}");
        }
        assert_eq!(written(&root, &json!({"$ref": "#/a"})), Ok(json!({"description": "another a, of the same form"})));
    }
}
