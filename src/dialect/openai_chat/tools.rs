//! `tools` of a request: functions that the client runs itself.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::bounded::json::parse;
use crate::chat::tool::ToolChoice;
use crate::dialect::client_tools::{self, Brought, DeclaredTool};
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
    name: Option<String>,
    #[serde(borrow)]
    allowed_tools: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

/// The tools that a request brings. Those that take no JSON are left out. What is wrong is noted in `errors`.
///
/// # Errors
/// See [`client_tools::read_all`].
pub(super) fn tools(
    tools: Option<&RawValue>,
    ignored: &mut Ignored,
    errors: &mut Vec<FieldError>,
) -> Result<Brought, DecodeError> {
    let brought = client_tools::read_all(tools, declared, errors)?;
    ignored.add_if(!brought.others.is_empty(), "tools");
    Ok(brought)
}

/// Which of the tools that are `brought` may be called, and whether one has to be. A choice of another kind is ignored; what
/// cannot be is noted in `errors`.
pub(super) fn choice(
    raw: Option<&RawValue>,
    mut brought: Brought,
    ignored: &mut Ignored,
    errors: &mut Vec<FieldError>,
) -> (Brought, ToolChoice) {
    let Some(raw) = json::given(raw) else { return (brought, ToolChoice::Auto) };
    let choice = match parse::<String>(raw.get()) {
        Ok(word) => client_tools::choice_of(&word),
        Err(_) => match json::fields::<Choice<'_>>(raw) {
            Some(Choice { r#type, function: Some(Name { name }), .. } | Choice { r#type, name: Some(name), .. })
                if r#type == "function" =>
            {
                Some(ToolChoice::Named(name))
            }
            Some(Choice { r#type, allowed_tools: Some(allowed), .. }) if r#type == "allowed_tools" => {
                json::fields::<Allowed<'_>>(allowed).and_then(|Allowed { mode, tools: allowed }| {
                    let named: Vec<String> =
                        allowed.into_iter().filter_map(|choice| choice.function.map(|Name { name }| name)).collect();
                    let word = client_tools::choice_of(&mode)?;
                    brought.tools.retain(|tool| named.contains(&tool.name));
                    Some(word)
                })
            }
            Some(_) | None => None,
        },
    };
    let choice = client_tools::settled(choice, &brought, errors);
    ignored.add_if(choice.is_none(), "tool_choice");
    (brought, choice.unwrap_or_default())
}

/// Adds the tool that an entry declares. Cursor writes what a function is beside the type, as in `/v1/responses`.
fn declared(raw: &RawValue, found: &mut Vec<DeclaredTool>) -> Result<(), &'static str> {
    let Tool { r#type, function } = json::fields(raw).ok_or("must have a type")?;
    if r#type != "function" {
        return Ok(());
    }
    let Function { name, description, parameters } = json::fields(function.unwrap_or(raw))
        .ok_or("must have a function with a name, and parameters that are a JSON Schema")?;
    found.push(DeclaredTool { name, description, schema: parameters });
    Ok(())
}
