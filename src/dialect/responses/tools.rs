//! `tools` of a request: those that the client runs itself. A tool in a namespace and a tool that takes a text have their
//! places in the name that the model sees, so that a run's events tell what a call of it looks like.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::bounded::json::parse;
use crate::chat::tool::{ToolChoice, ToolInput};
use crate::dialect::client_tools::{self, Brought, DeclaredTool};
use crate::dialect::{DecodeError, FieldError, json as text};

/// What stands between a namespace and a name, and behind the name of a tool that takes a text.
const MARK: &str = "--";

#[derive(Deserialize)]
struct Tool<'a> {
    r#type: String,
    name: Option<String>,
    description: Option<String>,
    parameters: Option<Value>,
    format: Option<Value>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice {
    r#type: String,
    name: Option<String>,
}

/// The tools that a request brings. Those of the protocol's own servers (`web_search`, …) are not here, and left out. What is
/// wrong is noted in `errors`.
///
/// # Errors
/// See [`client_tools::read_all`].
pub(super) fn tools(tools: Option<&RawValue>, errors: &mut Vec<FieldError>) -> Result<Brought, DecodeError> {
    client_tools::read_all(tools, |raw, found| declared(raw, None, found), errors)
}

/// Which of the tools that are `brought` may be called, and whether one has to be. A choice of another kind is ignored; what
/// cannot be is noted in `errors`.
pub(super) fn choice(raw: Option<&RawValue>, brought: &Brought, errors: &mut Vec<FieldError>) -> ToolChoice {
    let Some(raw) = text::given(raw) else { return ToolChoice::Auto };
    let choice = match parse::<String>(raw.get()) {
        Ok(word) => client_tools::choice_of(&word),
        Err(_) => match text::fields::<Choice>(raw) {
            Some(Choice { r#type, name: Some(name) }) if r#type == "function" => Some(ToolChoice::Named(name)),
            Some(Choice { r#type, name: Some(name) }) if r#type == "custom" => {
                Some(ToolChoice::Named(known_as(&name, None, true)))
            }
            Some(_) | None => None,
        },
    };
    client_tools::settled(choice, brought, errors).unwrap_or_default()
}

/// The name by which the model knows a tool of the client's.
pub(super) fn known_as(name: &str, namespace: Option<&str>, is_custom: bool) -> String {
    let placed = namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}{MARK}{name}"));
    if is_custom { format!("{placed}{MARK}") } else { placed }
}

/// The arguments of a call that a client tells of, for the model: its JSON text, or the text that its tool takes.
pub(super) fn told_arguments(arguments: Option<String>, input: Option<&str>) -> String {
    match input {
        Some(input) => json!({"input": input}).to_string(),
        None => arguments.unwrap_or_default(),
    }
}

/// Adds the tools that one entry declares.
fn declared(raw: &RawValue, within: Option<&str>, found: &mut Vec<DeclaredTool>) -> Result<(), &'static str> {
    let Tool { r#type, name, description, parameters, format, tools } =
        text::fields(raw).ok_or("must have a type, a name that is a text, and parameters that are a JSON Schema")?;
    let name = || name.filter(|name| !name.contains(MARK)).ok_or("must have a name, without -- in it");
    match (r#type.as_str(), within) {
        ("function", _) => {
            found.push(DeclaredTool { name: known_as(&name()?, within, false), description, schema: parameters });
        }
        ("custom", _) => {
            let grammar = format.as_ref().and_then(|format| format.get("definition")).and_then(Value::as_str);
            let texts = [description.as_deref(), grammar].into_iter().flatten();
            let schema = json!({"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]});
            found.push(DeclaredTool {
                name: known_as(&name()?, within, true),
                description: Some(texts.collect::<Vec<_>>().join("\n\n")),
                schema: Some(schema),
            });
        }
        ("namespace", None) => {
            let name = name()?;
            let all: Vec<&RawValue> =
                tools.and_then(|tools| parse(tools.get()).ok()).ok_or("must have a list of tools")?;
            all.into_iter().try_for_each(|tool| declared(tool, Some(&name), found))?;
        }
        _ => {}
    }
    Ok(())
}

/// A call of a client's tool as the client knows it.
#[derive(Debug, PartialEq)]
pub(super) struct Called {
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    /// JSON text, or the text itself.
    pub(super) arguments: String,
    pub(super) is_custom: bool,
}

/// The call of the tool that the model knows as `name`.
pub(super) fn called(name: &str, input: &ToolInput) -> Called {
    let (name, is_custom) = name.strip_suffix(MARK).map_or((name, false), |name| (name, true));
    let (namespace, name) = match name.split_once(MARK) {
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (None, name),
    };
    let arguments = match input {
        ToolInput::Object(fields) if is_custom => match fields.get("input") {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        },
        input => arguments(input),
    };
    Called { name: name.to_owned(), namespace, arguments, is_custom }
}

/// Arguments as JSON text; what is none stays as the model wrote it.
pub(super) fn arguments(input: &ToolInput) -> String {
    match input {
        // Maps of JSON values always serialise.
        ToolInput::Object(fields) => serde_json::to_string(fields).unwrap_or_else(|_| "{}".to_owned()),
        ToolInput::Invalid(text) => text.clone(),
    }
}
