//! `tools` of a request: functions that the client runs itself.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::chat::tool::ToolDef;
use crate::dialect::client_tools::{self, DeclaredTool};
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

/// The tools that a request brings; none where it says that none is to be called. What is wrong is noted in `errors`.
///
/// # Errors
/// See [`client_tools::read`].
pub(super) fn tools(
    tools: Option<&RawValue>,
    choice: Option<&RawValue>,
    errors: &mut Vec<FieldError>,
) -> Result<Vec<Arc<ToolDef>>, DecodeError> {
    let found = client_tools::read(tools, declared_tool, errors)?;
    let is_none = choice.is_some_and(|choice| choice.get() == r#""none""#);
    Ok(if is_none { Vec::new() } else { found })
}

fn declared_tool(raw: &RawValue) -> Result<DeclaredTool, &'static str> {
    let tool = json::fields::<Tool<'_>>(raw).filter(|tool| tool.r#type == "function");
    let function = tool.ok_or("must have the type \"function\"")?.function.and_then(json::fields::<Function>);
    let Function { name, description, parameters } =
        function.ok_or("must have a function with a name, and parameters that are a JSON Schema")?;
    Ok(DeclaredTool { name, description, schema: parameters })
}
