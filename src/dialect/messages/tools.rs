//! `tools` of a request: those that the client runs itself.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::chat::tool::ToolChoice;
use crate::dialect::client_tools::{self, Brought, DeclaredTool};
use crate::dialect::ignored::Ignored;
use crate::dialect::{DecodeError, FieldError, json};

#[derive(Deserialize)]
struct Tool {
    r#type: Option<String>,
    name: Option<String>,
    description: Option<String>,
    input_schema: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    r#type: String,
    name: Option<String>,
    disable_parallel_tool_use: Option<bool>,
}

impl Tool {
    /// Whether it is of a kind that the protocol's own service defines, such as a search or a shell.
    fn is_foreign(&self) -> bool {
        self.r#type.as_deref().is_some_and(|kind| kind != "custom")
    }
}

/// The tools that a request brings. Those that the protocol's own service defines are nobody's here, and left out. What is wrong
/// is noted in `errors`.
///
/// # Errors
/// See [`client_tools::read_all`].
pub(super) fn tools(
    tools: Option<&RawValue>,
    ignored: &mut Ignored,
    errors: &mut Vec<FieldError>,
) -> Result<Brought, DecodeError> {
    let read = |raw: &RawValue, found: &mut Vec<DeclaredTool>| {
        let tool = json::fields::<Tool>(raw).ok_or("must have a name that is a text, and an input_schema")?;
        if tool.is_foreign() {
            return Ok(());
        }
        let Tool { name, description, input_schema, .. } = tool;
        found.push(DeclaredTool { name: name.ok_or("must have a name")?, description, schema: input_schema });
        Ok(())
    };
    let brought = client_tools::read_all(tools, read, errors)?;
    ignored.add_if(!brought.others.is_empty(), "tools");
    Ok(brought)
}

/// Which of the tools that are `brought` may be called, and whether one has to be. A choice of another kind is ignored; what
/// cannot be is noted in `errors`.
pub(super) fn choice(
    raw: Option<&RawValue>,
    brought: &Brought,
    ignored: &mut Ignored,
    errors: &mut Vec<FieldError>,
) -> ToolChoice {
    let Some(raw) = json::given(raw) else { return ToolChoice::Auto };
    let read = json::fields::<Choice>(raw);
    let one_by_one = read.as_ref().and_then(|choice| choice.disable_parallel_tool_use).unwrap_or(false);
    ignored.add_if(one_by_one, "disable_parallel_tool_use");
    let choice = read.and_then(|Choice { r#type, name, .. }| match (r#type.as_str(), name) {
        ("auto", _) => Some(ToolChoice::Auto),
        ("any", _) => Some(ToolChoice::Required),
        ("none", _) => Some(ToolChoice::None),
        ("tool", Some(name)) => Some(ToolChoice::Named(name)),
        _ => None,
    });
    let choice = client_tools::settled(choice, brought, errors);
    ignored.add_if(choice.is_none(), "tool_choice");
    choice.unwrap_or_default()
}
