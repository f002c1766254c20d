//! An operation of a document as a tool: its parameters and the fields of its body become arguments, and templates put
//! them where they belong.

mod body;
mod parameters;
mod response;
mod shape;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::document::{Document, Operation};
use super::names::Names;
use super::schema::Writer;
use crate::chat::line::one_line;
use crate::chat::names;
use crate::chat::patterns;
use crate::chat::schema::Schema;
use crate::tools::backend::Verb;
use crate::tools::rest::path::PathTemplate;

/// How long a description may be, in characters: vendors refuse longer ones.
const DESCRIPTION_CHARS: usize = 1000;

/// How long the description of an argument may be, in characters.
const ARGUMENT_CHARS: usize = 500;

/// An operation as `tools/*.toml` would say it.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The tool's name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
    /// Its method.
    pub verb: Verb,
    /// The path, with placeholders for arguments.
    pub path: String,
    /// The parameters, each a template.
    pub query: Vec<(String, String)>,
    /// The headers, each a template.
    pub headers: Vec<(String, String)>,
    /// The body, a template; `None` sends none.
    pub body: Option<Value>,
    /// The body's media type, where it is not `application/json`.
    pub content_type: Option<String>,
    /// What answers it accepts, where that is not `application/json` alone.
    pub accept: Option<String>,
    /// Why optional parts of it are left out.
    pub left_out: Vec<String>,
}

/// The arguments so far.
#[derive(Default)]
struct Arguments {
    properties: Map<String, Value>,
    required: Vec<String>,
    names: BTreeSet<String>,
    /// Why some of the document's are not among them.
    left_out: Vec<String>,
}

impl Arguments {
    /// Adds an argument for what the document calls `name`; its own name.
    fn add(&mut self, name: &str, schema: Value, is_required: bool) -> String {
        let name = names::argument(name, &mut self.names);
        self.properties.insert(name.clone(), schema);
        if is_required {
            self.required.push(name.clone());
        }
        name
    }

    fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    fn schema(self) -> Value {
        let mut schema = json!({"type": "object", "properties": self.properties});
        if let (Value::Object(schema), false) = (&mut schema, self.required.is_empty()) {
            schema.insert("required".to_owned(), json!(self.required));
        }
        schema
    }
}

/// The tool that `operation` becomes, `base_path` before its path.
///
/// # Errors
/// Why it cannot become one, in words for the operator.
pub fn import(
    document: &Document,
    operation: &Operation<'_>,
    base_path: &str,
    names: &mut Names,
) -> Result<Imported, String> {
    let mut writer = Writer::new(document.root());
    let mut arguments = Arguments::default();
    let parameters = parameters::read(document.root(), operation, &mut writer, &mut arguments)?;
    let body = match operation.verb {
        // It means nothing to HTTP.
        Verb::Get => None,
        Verb::Delete if !body::is_required(document.root(), operation) => {
            body::read(document.root(), operation, &mut writer, &mut arguments).unwrap_or_else(|reason| {
                arguments.left_out.push(reason);
                None
            })
        }
        Verb::Post | Verb::Put | Verb::Patch | Verb::Delete => {
            body::read(document.root(), operation, &mut writer, &mut arguments)?
        }
    };
    let (body, content_type) = body.map_or((None, None), |(template, kind)| (Some(template), kind));
    let path = format!("{base_path}{}", parameters.path);
    PathTemplate::parse(&path).map_err(|error| format!("its path {error}"))?;
    let left_out_parts = std::mem::take(&mut arguments.left_out);
    // Expressions are those of another language, and some cannot be run here.
    let (input_schema, left_out) = patterns::without_unfit(&arguments.schema());
    for expression in left_out {
        tracing::warn!(
            operation = operation.key(),
            expression,
            "an expression of a schema cannot be run in linear time and is left out"
        );
    }
    Schema::parse(&input_schema).map_err(|reason| format!("its schemas cannot be read: {reason}"))?;
    Ok(Imported {
        name: names.tool(operation.id().unwrap_or(&operation.key().to_lowercase())),
        description: description(operation),
        input_schema,
        verb: operation.verb,
        path,
        query: parameters.query,
        headers: parameters.headers,
        body,
        content_type,
        accept: response::accept(document.root(), operation),
        left_out: left_out_parts,
    })
}

/// What the operation does, in the document's words.
fn description(operation: &Operation<'_>) -> String {
    let text = |key: &str| operation.value.get(key).and_then(Value::as_str).map(one_line).unwrap_or_default();
    let (summary, description) = (text("summary"), text("description"));
    let words = match (summary.is_empty(), description.is_empty()) {
        (true, true) => operation.key(),
        (false, true) => summary,
        (true, false) => description,
        (false, false) if description.starts_with(summary.trim_end_matches('.')) => description,
        (false, false) => format!("{}. {description}", summary.trim_end_matches('.')),
    };
    cut(&words, DESCRIPTION_CHARS)
}

fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// `schema` with a description where it has none.
fn described(mut schema: Value, words: Option<&Value>) -> Value {
    let words = words.and_then(Value::as_str).map(one_line).unwrap_or_default();
    match &mut schema {
        Value::Object(fields) if !words.is_empty() => {
            fields.insert("description".to_owned(), json!(cut(&words, ARGUMENT_CHARS)));
        }
        Value::Bool(true) => schema = json!({"description": cut(&words, ARGUMENT_CHARS)}),
        Value::Object(_) | Value::Null | Value::Bool(false) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
        }
    }
    schema
}

/// The argument as a template says it.
fn placeholder(argument: &str) -> String {
    let begins = argument.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    match begins && argument.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        true => format!("args.{argument}"),
        false => format!("args['{argument}']"),
    }
}
