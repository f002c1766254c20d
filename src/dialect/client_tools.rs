//! Tools that a client brings with its request and runs itself, whatever the protocol calls their parts: what it says about
//! them goes to the model's vendor, so all of them are held to one rule.
//!
//! **Invariant:** nothing is compiled here: what a schema costs is for whoever checks arguments against it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{DecodeError, FieldError, json as text};
use crate::bounded::json::parse;
use crate::chat::tool::{ToolChoice, ToolDef};

/// As many as the vendors take; each is in every request to the model.
const MOST: usize = 128;

/// The largest description of all tools together, 128 KiB: a model reads them with each turn.
const MAX_BYTES: usize = 131_072;

/// The longest name that every vendor accepts, in bytes.
const NAME_BYTES: usize = 64;

/// The longest name that some vendor accepts. Coding agents name the tools of MCP servers so (chrome-devtools-mcp#1169).
const LONG_NAME_BYTES: usize = 128;

/// Schema keywords that may refer to another document, where their value is a text.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// A client's declaration of one tool.
pub(super) struct DeclaredTool {
    /// Its name.
    pub(super) name: String,
    /// Its description.
    pub(super) description: Option<String>,
    /// The JSON Schema of its arguments; `None` where it takes none.
    pub(super) schema: Option<Value>,
}

/// The tools of a client that does not know its servers.
#[derive(Debug, Default)]
pub(super) struct Brought {
    /// Those that a model can be told of.
    pub(super) tools: Vec<Arc<ToolDef>>,
    /// The names of others, which are left out; empty of those that have none.
    pub(super) others: Vec<String>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// The tools in the list `raw`, each of them read by `read`; what is wrong with them is noted in `errors`.
///
/// # Errors
/// When they are larger than 128 KiB together.
pub(super) fn read(
    raw: Option<&RawValue>,
    read: impl Fn(&RawValue) -> Result<DeclaredTool, &'static str>,
    errors: &mut Vec<FieldError>,
) -> Result<Vec<Arc<ToolDef>>, DecodeError> {
    let one = |_, raw: &RawValue, found: &mut Vec<DeclaredTool>| {
        found.push(read(raw)?);
        Ok(())
    };
    Ok(entries(raw, (list, LIST), NAME_BYTES, one, errors)?.tools)
}

/// The same of a client that does not know its servers. An entry may declare several tools, or none: `read` adds them. What it
/// declares none of is left out, and so is a tool whose name is too long for some vendors: the others are of use without it.
///
/// # Errors
/// When they are larger than 128 KiB together.
pub(super) fn read_all(
    raw: Option<&RawValue>,
    read: impl Fn(&RawValue, &mut Vec<DeclaredTool>) -> Result<(), &'static str>,
    errors: &mut Vec<FieldError>,
) -> Result<Brought, DecodeError> {
    entries(raw, (list, LIST), LONG_NAME_BYTES, |_, raw, found| read(raw, found), errors)
}

/// The same, of a list or of an object with the tools by their names, which `read` gets too.
///
/// # Errors
/// As [`read`].
pub(super) fn read_named(
    raw: Option<&RawValue>,
    read: impl Fn(Option<String>, &RawValue) -> Result<DeclaredTool, &'static str>,
    errors: &mut Vec<FieldError>,
) -> Result<Vec<Arc<ToolDef>>, DecodeError> {
    let one = |name, raw: &RawValue, found: &mut Vec<DeclaredTool>| {
        found.push(read(name, raw)?);
        Ok(())
    };
    Ok(entries(raw, (either, NAMED), NAME_BYTES, one, errors)?.tools)
}

/// What a list of tools is, and what one with names may be.
const LIST: &str = "must be a list of objects";
const NAMED: &str = "must be a list of objects, or an object with an object for each name";

/// Tools as they were sent, with their names where those stand outside of them.
type Sent<'a> = Vec<(Option<String>, &'a RawValue)>;

fn list(raw: &str) -> Option<Sent<'_>> {
    let tools = parse::<Vec<&RawValue>>(raw).ok()?;
    Some(tools.into_iter().map(|tool| (None, tool)).collect())
}

fn either(raw: &str) -> Option<Sent<'_>> {
    list(raw).or_else(|| {
        let tools = parse::<BTreeMap<String, &RawValue>>(raw).ok()?;
        Some(tools.into_iter().map(|(name, tool)| (Some(name), tool)).collect())
    })
}

fn entries<'a>(
    raw: Option<&'a RawValue>,
    (sent, shape): (fn(&'a str) -> Option<Sent<'a>>, &str),
    name_bytes: usize,
    read: impl Fn(Option<String>, &RawValue, &mut Vec<DeclaredTool>) -> Result<(), &'static str>,
    errors: &mut Vec<FieldError>,
) -> Result<Brought, DecodeError> {
    let Some(raw) = text::given(raw) else { return Ok(Brought::default()) };
    if raw.get().len() > MAX_BYTES {
        return Err(DecodeError::TooLarge { field: "tools", max_bytes: MAX_BYTES });
    }
    let mut refuse = |reason: String| errors.push(FieldError { field: "tools", reason });
    let tools = sent(raw.get()).filter(|tools| tools.iter().all(|(_, tool)| tool.get().starts_with('{')));
    let Some(tools) = tools else {
        refuse(shape.to_owned());
        return Ok(Brought::default());
    };
    let (mut declared, mut others) = (Vec::new(), Vec::new());
    for (at, (name, tool)) in tools.into_iter().enumerate() {
        let mut found = Vec::new();
        match read(name, tool, &mut found) {
            Ok(()) if found.is_empty() => {
                others.push(text::fields::<Named>(tool).map(|tool| tool.name).unwrap_or_default());
            }
            Ok(()) => declared.extend(found.into_iter().map(|tool| (at, tool))),
            Err(reason) => refuse(format!("[{at}] {reason}")),
        }
    }
    if declared.len() > MOST {
        refuse(format!("must be at most {MOST}"));
        return Ok(Brought::default());
    }
    let mut names = HashSet::new();
    let mut good = Vec::new();
    for (at, tool) in declared {
        if (NAME_BYTES + 1..=name_bytes).contains(&tool.name.len()) && is_plain(&tool.name) {
            others.push(tool.name);
            continue;
        }
        match checked(tool) {
            Ok(tool) if !names.insert(tool.name.clone()) => {
                refuse(format!("has two tools with the name {}", tool.name));
            }
            Ok(tool) => good.push(Arc::new(tool)),
            Err(reason) => refuse(format!("[{at}] {reason}")),
        }
    }
    Ok(Brought { tools: good, others })
}

fn is_plain(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

fn checked(DeclaredTool { name, description, schema }: DeclaredTool) -> Result<ToolDef, String> {
    if name.is_empty() || name.len() > NAME_BYTES || !is_plain(&name) {
        return Err(format!("must have a name of 1 to {NAME_BYTES} characters of A-Z a-z 0-9 _ -"));
    }
    let input_schema = match schema {
        None | Some(Value::Null) => json!({"type": "object", "properties": {}}),
        Some(Value::Object(mut schema)) => {
            // What describes an object need not say so, but vendors want to read it.
            let kind = schema.entry("type").or_insert_with(|| json!("object"));
            if kind != "object" {
                return Err("must have parameters of the type object".to_owned());
            }
            Value::Object(schema)
        }
        Some(_) => return Err("must have parameters that are a JSON Schema".to_owned()),
    };
    if refers_elsewhere(&input_schema) {
        return Err("must have parameters that refer to no other document".to_owned());
    }
    Ok(ToolDef { name, description: description.unwrap_or_default(), input_schema })
}

/// Whether the schema refers to another document, which a vendor might go and read.
fn refers_elsewhere(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => fields.iter().any(|(name, value)| match value {
            Value::String(target) => REFERENCES.contains(&name.as_str()) && !target.starts_with('#'),
            value => refers_elsewhere(value),
        }),
        Value::Array(items) => items.iter().any(refers_elsewhere),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The longest part of a wrong name that is sent back, in characters.
const NAME_CHARS: usize = 100;

/// The choice that `word` is in OpenAI's protocols.
pub(super) fn choice_of(word: &str) -> Option<ToolChoice> {
    match word {
        "auto" => Some(ToolChoice::Auto),
        "none" => Some(ToolChoice::None),
        // As some servers call it.
        "required" | "any" => Some(ToolChoice::Required),
        _ => None,
    }
}

/// `choice` among the tools that are `brought`; `None` of one that can only mean what is left out. What cannot be is noted in
/// `errors`.
pub(super) fn settled(
    choice: Option<ToolChoice>,
    brought: &Brought,
    errors: &mut Vec<FieldError>,
) -> Option<ToolChoice> {
    let Brought { tools, others } = brought;
    let (reason, is_of_others) = match choice.as_ref()? {
        ToolChoice::Required if tools.is_empty() => {
            ("must not be required without tools".to_owned(), !others.is_empty())
        }
        ToolChoice::Named(name) if !tools.iter().any(|tool| tool.name == *name) => {
            let shown: String = name.chars().take(NAME_CHARS).collect();
            (format!("must name one of the tools, not {shown:?}"), others.contains(name))
        }
        ToolChoice::Required | ToolChoice::Named(_) | ToolChoice::Auto | ToolChoice::None => return choice,
    };
    if !is_of_others {
        errors.push(FieldError { field: "tool_choice", reason });
    }
    None
}
