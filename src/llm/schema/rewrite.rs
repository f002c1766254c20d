//! A schema in the keywords of a vendor that knows only some: those that Gemini documents
//! (<https://ai.google.dev/api/generate-content#v1beta.GenerationConfig>, `responseJsonSchema`), and the fields of
//! Ollama's own types (<https://github.com/ollama/ollama/blob/main/api/types.go>).

use serde_json::{Map, Value, json};

use super::{merge, refs, words};

/// 256 KiB of names, texts and values in the result: references that are written out could multiply without end.
const MAX_RESULT: usize = 256 << 10;

/// 100 000 steps in search of circles.
const MAX_STEPS: usize = 100_000;

/// 48 schemas inside each other.
const MAX_DEPTH: usize = 48;

/// Which keywords there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subset {
    /// Those that Gemini documents; references to `$defs` stay.
    WithReferences,
    /// Those of Ollama's types, which have no references.
    WithoutReferences,
}

impl Subset {
    /// Whether `keyword` stays as it is, given its value.
    fn keeps(self, keyword: &str, value: &Value) -> bool {
        match (self, keyword) {
            (_, "description") => value.is_string(),
            (Self::WithReferences, "$id" | "$anchor" | "format" | "title") => value.is_string(),
            (Self::WithReferences, "minItems" | "maxItems" | "minimum" | "maximum") => value.is_number(),
            (Self::WithReferences, "propertyOrdering") => value.is_array(),
            (Self::WithReferences, "additionalProperties") => value.is_boolean(),
            (Self::WithReferences, "type") => value.is_string() || value.is_array(),
            (Self::WithoutReferences, "type") => value.is_string(),
            (Self::WithReferences, "enum") => is_list_of(value, |value| value.is_string() || value.is_number()),
            (Self::WithoutReferences, "enum") => value.is_array(),
            (Self::WithReferences | Self::WithoutReferences, _) => false,
        }
    }
}

fn is_list_of(value: &Value, fits: impl Fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|values| !values.is_empty() && values.iter().all(fits))
}

/// Whether the rewritten schema would be the same.
pub(super) fn is_plain(schema: &Value, subset: Subset) -> bool {
    let Some(schema) = schema.as_object() else { return false };
    // A kind of value that is not named would be added.
    let is_named = schema.contains_key("type")
        || !["properties", "items", "enum"].iter().any(|keyword| schema.contains_key(*keyword));
    is_named
        && schema.iter().all(|(keyword, value)| match keyword.as_str() {
            "properties" => value.as_object().is_some_and(|map| map.values().all(|value| is_plain(value, subset))),
            "items" => is_plain(value, subset),
            "anyOf" => is_list_of(value, |value| is_plain(value, subset)),
            "required" => is_list_of(value, |name| is_property(schema, name)),
            _ => subset.keeps(keyword, value),
        })
}

fn is_property(schema: &Map<String, Value>, name: &Value) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    name.as_str().is_some_and(|name| properties.is_some_and(|properties| properties.contains_key(name)))
}

/// Rewrites one document.
pub(super) struct Rewriter<'a> {
    root: &'a Value,
    subset: Subset,
    /// How many more bytes may be written.
    left: usize,
    /// How many more steps a search may take.
    steps: usize,
    depth: usize,
    /// The references that are being written out.
    open: Vec<String>,
    /// The definition that is being rewritten.
    definition: Option<refs::Definition<'a>>,
}

impl<'a> Rewriter<'a> {
    /// For the document `root`, an object.
    pub(super) fn new(root: &'a Value, subset: Subset) -> Self {
        Self { root, subset, left: MAX_RESULT, steps: MAX_STEPS, depth: 0, open: Vec::new(), definition: None }
    }

    /// The whole document.
    pub(super) fn document(mut self) -> Map<String, Value> {
        let root = self.root.as_object().cloned().unwrap_or_default();
        let mut document = self.object(&root);
        if self.subset == Subset::WithReferences {
            let mut definitions = Map::new();
            let root: &'a Value = self.root;
            for key in refs::KEYS {
                for (name, definition) in root.get(key).and_then(Value::as_object).into_iter().flatten() {
                    self.definition = Some((key, name));
                    let definition = self.schema(definition);
                    definitions.insert(refs::name_in_defs(root, (key, name)).into_owned(), definition);
                }
            }
            if !definitions.is_empty() {
                document.insert("$defs".to_owned(), Value::Object(definitions));
            }
        }
        document
    }

    fn schema(&mut self, schema: &Value) -> Value {
        match schema {
            // The schema that it is in says so, once.
            Value::Object(_) if self.left == 0 => json!({}),
            Value::Object(schema) => Value::Object(self.object(schema)),
            Value::Bool(false) => json!({"description": "Nothing is allowed here."}),
            // `true` allows everything, and what is no schema says nothing.
            _ => json!({}),
        }
    }

    fn object(&mut self, schema: &Map<String, Value>) -> Map<String, Value> {
        let mut rewritten = Map::new();
        if self.left == 0 || self.depth == MAX_DEPTH {
            words::add(&mut rewritten, words::TOO_LARGE);
            return rewritten;
        }
        self.left -= 1;
        self.depth += 1;
        match schema.get("$ref").and_then(Value::as_str) {
            Some(reference) => rewritten = self.reference(schema, reference),
            None if schema.contains_key("allOf") => rewritten = self.merged(schema),
            None => self.keywords(schema, &mut rewritten),
        }
        self.depth -= 1;
        rewritten
    }

    fn reference(&mut self, schema: &Map<String, Value>, reference: &str) -> Map<String, Value> {
        if self.subset == Subset::WithReferences
            && let Some(definition) = refs::definition(self.root, reference)
        {
            let name = refs::name_in_defs(self.root, definition);
            let kept = json!({"$ref": format!("#/$defs/{name}")});
            let mut beside = schema.clone();
            beside.shift_remove("$ref");
            // Nothing may stand beside a reference. Where alternatives do, it cannot stand there: it is written out.
            let mut beside = self.object(&beside);
            if beside.is_empty() {
                return kept.as_object().cloned().unwrap_or_default();
            }
            if !beside.contains_key("anyOf") {
                beside.insert("anyOf".to_owned(), json!([kept]));
                return beside;
            }
        }
        if self.open.iter().any(|open| open == reference) {
            let mut again = Map::new();
            let kind = refs::resolve(self.root, reference).and_then(|target| target.get("type"));
            again.extend(kind.filter(|kind| kind.is_string()).map(|kind| ("type".to_owned(), kind.clone())));
            let name = reference.rsplit('/').next().filter(|name| !name.is_empty() && *name != "#");
            words::add(&mut again, &format!("The same form again as {}.", name.unwrap_or("the whole")));
            return again;
        }
        self.open.push(reference.to_owned());
        let rewritten = self.merged(schema);
        self.open.pop();
        rewritten
    }

    /// The schema with its reference and its `allOf` written out, which costs what it copies.
    fn merged(&mut self, schema: &Map<String, Value>) -> Map<String, Value> {
        let merged = merge::merged(self.root, schema);
        self.left = self.left.saturating_sub(merged.values().map(words::bytes).sum());
        self.object(&merged)
    }

    fn keywords(&mut self, schema: &Map<String, Value>, rewritten: &mut Map<String, Value>) {
        let mut sentences: Vec<String> = Vec::new();
        self.left = self.left.saturating_sub(schema.iter().map(own_bytes).sum());
        for (keyword, value) in schema {
            match (keyword.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    let rewrite = |(name, value): (&String, &Value)| (name.clone(), self.schema(value));
                    let properties: Map<String, Value> = properties.iter().map(rewrite).collect();
                    rewritten.insert(keyword.clone(), Value::Object(properties));
                }
                ("items", Value::Object(_) | Value::Bool(_)) => {
                    drop(rewritten.insert(keyword.clone(), self.schema(value)))
                }
                ("additionalProperties", Value::Object(_)) if self.subset == Subset::WithReferences => {
                    rewritten.insert(keyword.clone(), self.schema(value));
                }
                ("prefixItems", Value::Array(items)) if self.subset == Subset::WithReferences => {
                    rewritten.insert(keyword.clone(), items.iter().map(|item| self.schema(item)).collect());
                }
                ("anyOf" | "oneOf", Value::Array(parts)) if !parts.is_empty() && !rewritten.contains_key("anyOf") => {
                    rewritten.insert("anyOf".to_owned(), parts.iter().map(|part| self.schema(part)).collect());
                    if keyword == "oneOf" {
                        sentences.push("Exactly one of the alternatives must match.".to_owned());
                    }
                }
                ("required", Value::Array(names)) => {
                    let (known, unknown): (Vec<_>, Vec<_>) = names
                        .iter()
                        .cloned()
                        .partition(|name| is_property(schema, name) && !self.is_circle(schema, name));
                    if !known.is_empty() {
                        rewritten.insert(keyword.clone(), Value::Array(known));
                    }
                    if !unknown.is_empty() {
                        sentences.push(words::describe("required", &Value::Array(unknown)));
                    }
                }
                ("type", Value::Array(kinds)) if self.subset == Subset::WithoutReferences => {
                    let others: Vec<&Value> = kinds.iter().filter(|kind| **kind != "null").collect();
                    if others.len() < kinds.len() && !others.is_empty() {
                        sentences.push("May be null.".to_owned());
                    }
                    let kind = match others[..] {
                        [] => json!("null"),
                        [kind] => kind.clone(),
                        _ => json!(others),
                    };
                    rewritten.insert(keyword.clone(), kind);
                }
                ("const", value) => self.values(std::slice::from_ref(value), rewritten, &mut sentences),
                ("enum", Value::Array(values)) => self.values(values, rewritten, &mut sentences),
                ("exclusiveMinimum" | "exclusiveMaximum", Value::Number(bound))
                    if self.subset == Subset::WithReferences =>
                {
                    match inclusive(schema, keyword, bound.as_i64()) {
                        Some((keyword, bound)) => drop(rewritten.insert(keyword.to_owned(), bound)),
                        None => sentences.push(words::describe(keyword, value)),
                    }
                }
                // Written by the exclusive bound, where that is the narrower one.
                ("minimum" | "maximum", _) if rewritten.contains_key(keyword) => {}
                ("title", _) if self.subset == Subset::WithoutReferences && schema.contains_key("description") => {}
                _ if self.subset.keeps(keyword, value) => drop(rewritten.insert(keyword.clone(), value.clone())),
                _ => sentences.push(words::describe(keyword, value)),
            }
        }
        if !rewritten.contains_key("type")
            && let Some(kind) = kind_of(rewritten)
        {
            rewritten.insert("type".to_owned(), kind);
        }
        if self.left == 0 {
            sentences.push(words::CUT.to_owned());
        }
        sentences.iter().for_each(|sentence| words::add(rewritten, sentence));
    }

    /// Writes `enum`, as far as its values are allowed there.
    fn values(&self, values: &[Value], rewritten: &mut Map<String, Value>, sentences: &mut Vec<String>) {
        let as_enum = Value::Array(values.to_vec());
        let others = Value::Array(values.iter().filter(|value| !value.is_null()).cloned().collect());
        if rewritten.contains_key("enum") {
            sentences.push(words::describe("enum", &as_enum));
        } else if self.subset.keeps("enum", &as_enum) {
            rewritten.insert("enum".to_owned(), as_enum);
        } else if self.subset.keeps("enum", &others) && !rewritten.contains_key("anyOf") {
            let mut some = Map::new();
            some.insert("enum".to_owned(), others);
            if let Some(kind) = kind_of(&some) {
                some.insert("type".to_owned(), kind);
            }
            rewritten.insert("anyOf".to_owned(), json!([some, {"type": "null"}]));
        } else {
            let has_null = others.as_array().is_some_and(|others| others.len() < values.len());
            let some = Map::from_iter([("enum".to_owned(), others)]);
            if let Some(kind) = kind_of(&some) {
                let kind = if has_null { json!([kind, "null"]) } else { kind };
                rewritten.entry("type").or_insert(kind);
            }
            sentences.push(words::describe("enum", &as_enum));
        }
    }

    /// Whether the required property `name` leads back to the definition it is in: Gemini unrolls circles a little, and
    /// can do so only where they may end.
    fn is_circle(&mut self, schema: &Map<String, Value>, name: &Value) -> bool {
        let property = name.as_str().and_then(|name| schema.get("properties")?.get(name));
        match (self.definition, property) {
            (Some(definition), Some(property)) => {
                refs::leads_to(self.root, property, definition, &mut Vec::new(), &mut self.steps)
            }
            _ => false,
        }
    }
}

/// What a keyword writes, without the schemas in it.
fn own_bytes((keyword, value): (&String, &Value)) -> usize {
    let own = match value {
        Value::Array(values) => values.iter().filter(|value| !value.is_object()).map(words::bytes).sum(),
        Value::Object(map) => map.keys().map(String::len).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => words::bytes(value),
    };
    keyword.len() + own
}

/// An exclusive bound of whole numbers as an inclusive one, no wider than the inclusive one beside it.
fn inclusive(schema: &Map<String, Value>, keyword: &str, bound: Option<i64>) -> Option<(&'static str, Value)> {
    let bound = bound.filter(|_| schema.get("type").is_some_and(|kind| kind == "integer"))?;
    let beside = |keyword: &str| schema.get(keyword).and_then(Value::as_i64);
    match keyword {
        "exclusiveMinimum" => {
            let bound = bound.checked_add(1)?;
            Some(("minimum", json!(beside("minimum").map_or(bound, |other| other.max(bound)))))
        }
        _ => {
            let bound = bound.checked_sub(1)?;
            Some(("maximum", json!(beside("maximum").map_or(bound, |other| other.min(bound)))))
        }
    }
}

/// The type that a schema without one can only mean.
fn kind_of(schema: &Map<String, Value>) -> Option<Value> {
    if schema.contains_key("properties") {
        return Some(json!("object"));
    }
    if schema.contains_key("items") {
        return Some(json!("array"));
    }
    let values = schema.get("enum")?;
    let kind = match values {
        strings if is_list_of(strings, Value::is_string) => "string",
        whole if is_list_of(whole, |value| value.is_i64() || value.is_u64()) => "integer",
        numbers if is_list_of(numbers, Value::is_number) => "number",
        flags if is_list_of(flags, Value::is_boolean) => "boolean",
        _ => return None,
    };
    Some(json!(kind))
}
