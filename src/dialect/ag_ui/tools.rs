//! Tools that a front end runs itself: what a client says about them goes to the model's vendor, so it is looked at
//! closely.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::super::{DecodeError, FieldError, json};
use crate::chat::schema::Schema;
use crate::chat::tool::ToolDef;

/// More tools than any page has; each is in every request to the model.
const MOST: usize = 64;

/// The largest description of all tools together: a sixteenth of a mebibyte.
const MAX_BYTES: usize = 65_536;

/// The longest name that every vendor accepts, in bytes.
const NAME_BYTES: usize = 64;

/// A tool of the client; unknown keys are ignored.
#[derive(Deserialize)]
struct Tool {
    name: String,
    description: Option<String>,
    parameters: Option<Value>,
}

/// The tools in `raw`; what is wrong with them is noted in `errors`.
///
/// # Errors
/// When they are larger than [`MAX_BYTES`].
pub(super) fn tools(raw: Option<&RawValue>, errors: &mut Vec<FieldError>) -> Result<Vec<Arc<ToolDef>>, DecodeError> {
    let Some(raw) = json::given(raw) else { return Ok(Vec::new()) };
    if raw.get().len() > MAX_BYTES {
        return Err(DecodeError::TooLarge { field: "tools", max_bytes: MAX_BYTES });
    }
    let mut refuse = |reason: String| errors.push(FieldError { field: "tools", reason });
    let Ok(tools) = serde_json::from_str::<Vec<Map<String, Value>>>(raw.get()) else {
        refuse("must be a list of objects".to_owned());
        return Ok(Vec::new());
    };
    if tools.len() > MOST {
        refuse(format!("must be at most {MOST}"));
        return Ok(Vec::new());
    }
    let mut names = HashSet::new();
    let mut good = Vec::new();
    for (at, tool) in tools.into_iter().enumerate() {
        match checked(tool) {
            Ok(tool) if !names.insert(tool.name.clone()) => {
                refuse(format!("has two tools with the name {}", tool.name));
            }
            Ok(tool) => good.push(Arc::new(tool)),
            Err(reason) => refuse(format!("[{at}] {reason}")),
        }
    }
    Ok(good)
}

fn checked(tool: Map<String, Value>) -> Result<ToolDef, String> {
    let wrong = |_| "must have a name and may have a description, both texts, and parameters, an object".to_owned();
    let Tool { name, description, parameters } = serde_json::from_value(Value::Object(tool)).map_err(wrong)?;
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    if name.is_empty() || name.len() > NAME_BYTES || !name.bytes().all(allowed) {
        return Err(format!("must have a name of 1 to {NAME_BYTES} characters of A-Z a-z 0-9 _ -"));
    }
    let input_schema = match parameters {
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
    if let Err(why) = Schema::parse(&input_schema) {
        let why: String = why.chars().take(200).collect();
        return Err(format!("must have parameters that are a JSON Schema: {why}"));
    }
    Ok(ToolDef { name, description: description.unwrap_or_default(), input_schema })
}
