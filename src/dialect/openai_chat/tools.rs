//! `tools` of a request: functions that the client runs itself, checked and bounded.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::chat::tool::ToolDef;
use crate::dialect::{FieldError, json as read};

/// The most tools of a request: as many as the vendors take.
const MAX_TOOLS: usize = 128;

/// The largest `tools`, in bytes of JSON: a model reads them with each turn.
const MAX_BYTES: usize = 128 * 1024;

/// The longest name, which every vendor allows.
const MAX_NAME: usize = 64;

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
pub(super) fn tools(
    tools: Option<&RawValue>,
    choice: Option<&RawValue>,
    errors: &mut Vec<FieldError>,
) -> Vec<Arc<ToolDef>> {
    let mut refuse = |reason: String| errors.push(FieldError { field: "tools", reason });
    let Some(raw) = read::given(tools) else { return Vec::new() };
    if raw.get().len() > MAX_BYTES {
        refuse(format!("must have at most {MAX_BYTES} bytes"));
        return Vec::new();
    }
    let list = serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok();
    let list = list.and_then(|list| list.into_iter().map(read::fields::<Tool<'_>>).collect::<Option<Vec<_>>>());
    let Some(list) = list else {
        refuse("must be a list of objects with a type and a function".to_owned());
        return Vec::new();
    };
    if list.len() > MAX_TOOLS {
        refuse(format!("must have at most {MAX_TOOLS} entries"));
        return Vec::new();
    }
    let mut names = BTreeSet::new();
    let mut found = Vec::new();
    for (at, tool) in list.into_iter().enumerate() {
        match definition(&tool) {
            Ok(tool) if !names.insert(tool.name.clone()) => refuse(format!("must not name {} twice", tool.name)),
            Ok(tool) => found.push(Arc::new(tool)),
            Err(reason) => refuse(format!("must have {reason} in entry {at}")),
        }
    }
    let is_none = choice.is_some_and(|choice| choice.get() == r#""none""#);
    if is_none { Vec::new() } else { found }
}

fn definition(tool: &Tool<'_>) -> Result<ToolDef, String> {
    if tool.r#type != "function" {
        return Err("the type \"function\"".to_owned());
    }
    let function = tool.function.and_then(read::fields::<Function>);
    let Function { name, description, parameters } =
        function.ok_or("a function with a name, and parameters that are a JSON Schema")?;
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(allowed) {
        return Err(format!("a name of 1 to {MAX_NAME} characters of A-Z a-z 0-9 _ -"));
    }
    let mut input_schema = match parameters {
        None | Some(Value::Null) => json!({"properties": {}}),
        Some(schema) => schema,
    };
    let Some(schema) = input_schema.as_object_mut() else {
        return Err("parameters that are an object".to_owned());
    };
    if schema.entry("type").or_insert_with(|| json!("object")) != "object" {
        return Err("parameters of the type \"object\"".to_owned());
    }
    Ok(ToolDef { name, description: description.unwrap_or_default(), input_schema })
}
