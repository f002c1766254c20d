//! `tools` of a request: functions that the client runs itself.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::bounded::json::parse;
use crate::chat::tool::{ToolChoice, ToolDef};
use crate::dialect::client_tools::{self, DeclaredTool};
use crate::dialect::ignored::Ignored;
use crate::dialect::{DecodeError, FieldError, json};

#[derive(Deserialize)]
struct Tool<'a> {
    r#type: String,
    #[serde(borrow)]
    function: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    description: Option<String>,
    parameters: Option<Value>,
}

#[derive(Deserialize)]
struct Allowed<'a> {
    mode: String,
    #[serde(borrow)]
    tools: Vec<Choice<'a>>,
}

/// `tool_choice`, where it is no word.
#[derive(Deserialize)]
struct Choice<'a> {
    r#type: String,
    function: Option<Name>,
    #[serde(borrow)]
    allowed_tools: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

/// The tools that a request brings. What is wrong is noted in `errors`.
///
/// # Errors
/// See [`client_tools::read`].
pub(super) fn tools(tools: Option<&RawValue>, errors: &mut Vec<FieldError>) -> Result<Vec<Arc<ToolDef>>, DecodeError> {
    client_tools::read(tools, declared_tool, errors)
}

/// Which of `tools` may be called, and whether one has to be. A choice of another kind is ignored; what cannot be is noted in
/// `errors`.
pub(super) fn choice(
    raw: Option<&RawValue>,
    mut tools: Vec<Arc<ToolDef>>,
    ignored: &mut Ignored,
    errors: &mut Vec<FieldError>,
) -> (Vec<Arc<ToolDef>>, ToolChoice) {
    let Some(raw) = json::given(raw) else { return (tools, ToolChoice::Auto) };
    let choice = match parse::<String>(raw.get()) {
        Ok(word) => client_tools::choice_of(&word),
        Err(_) => match json::fields::<Choice<'_>>(raw) {
            Some(Choice { r#type, function: Some(Name { name }), .. }) if r#type == "function" => {
                Some(ToolChoice::Named(name))
            }
            Some(Choice { r#type, allowed_tools: Some(allowed), .. }) if r#type == "allowed_tools" => {
                json::fields::<Allowed<'_>>(allowed).and_then(|Allowed { mode, tools: allowed }| {
                    let named: Vec<String> =
                        allowed.into_iter().filter_map(|choice| choice.function.map(|Name { name }| name)).collect();
                    let word = client_tools::choice_of(&mode)?;
                    tools.retain(|tool| named.contains(&tool.name));
                    Some(word)
                })
            }
            Some(_) | None => None,
        },
    };
    errors.extend(choice.as_ref().and_then(|choice| client_tools::mistaken(choice, &tools)));
    ignored.add_if(choice.is_none(), "tool_choice");
    (tools, choice.unwrap_or_default())
}

fn declared_tool(raw: &RawValue) -> Result<DeclaredTool, &'static str> {
    let tool = json::fields::<Tool<'_>>(raw).filter(|tool| tool.r#type == "function");
    let function = tool.ok_or("must have the type \"function\"")?.function.and_then(json::fields::<Function>);
    let Function { name, description, parameters } =
        function.ok_or("must have a function with a name, and parameters that are a JSON Schema")?;
    Ok(DeclaredTool { name, description, schema: parameters })
}
