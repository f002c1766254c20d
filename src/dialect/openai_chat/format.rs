//! `response_format` of a request, and what it asks for that is nobody's here.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chat::answer_format::AnswerFormat;
use crate::dialect::answer_format::{DeclaredSchema, schema};
use crate::dialect::{DecodeError, FieldError, json};

const FIELD: &str = "response_format";

/// Fields that change an answer of a model service and none of ours, each with its values that ask for nothing.
pub(super) const UNKNOWN: [(&str, &[&str]); 17] = [
    ("stop", &["[]"]),
    ("top_p", &["1", "1.0"]),
    ("presence_penalty", &["0", "0.0"]),
    ("frequency_penalty", &["0", "0.0"]),
    ("logit_bias", &["{}"]),
    ("logprobs", &["false"]),
    ("top_logprobs", &["0"]),
    ("seed", &[]),
    ("verbosity", &[]),
    ("parallel_tool_calls", &["true"]),
    ("functions", &["[]"]),
    ("function_call", &[r#""auto""#, r#""none""#]),
    ("modalities", &["[]", r#"["text"]"#]),
    ("audio", &[]),
    ("prediction", &[]),
    ("web_search_options", &[]),
    ("reasoning", &["{}"]),
];

#[derive(Deserialize)]
struct ResponseFormat<'a> {
    r#type: String,
    #[serde(borrow)]
    json_schema: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct JsonSchema<'a> {
    name: String,
    description: Option<String>,
    strict: Option<bool>,
    #[serde(borrow)]
    schema: Option<&'a RawValue>,
}

/// The form of the answer; `None` where it is text. What is wrong with it is noted in `errors`.
///
/// # Errors
/// See [`schema`].
pub(super) fn format(
    raw: Option<&RawValue>,
    errors: &mut Vec<FieldError>,
) -> Result<Option<AnswerFormat>, DecodeError> {
    let Some(raw) = json::given(raw) else { return Ok(None) };
    let mut refuse = |reason: &str| errors.push(FieldError { field: FIELD, reason: reason.to_owned() });
    let format: Option<ResponseFormat<'_>> = json::fields(raw);
    let declared = match format.as_ref().map(|format| (format.r#type.as_str(), format.json_schema)) {
        Some(("text", _)) => return Ok(None),
        Some(("json_object", _)) => return Ok(Some(AnswerFormat::Object)),
        Some(("json_schema", Some(declared))) => json::fields::<JsonSchema<'_>>(declared),
        Some(("json_schema", None)) => None,
        Some(_) | None => {
            refuse("must be an object with the type text, json_object or json_schema");
            return Ok(None);
        }
    };
    match declared {
        None => {
            refuse("must have json_schema, an object with a name, and maybe description, strict and schema");
            Ok(None)
        }
        Some(JsonSchema { schema: None, .. }) => Ok(Some(AnswerFormat::Object)),
        Some(JsonSchema { name, description, strict, schema: Some(raw) }) => {
            let is_strict = strict.unwrap_or(false);
            schema(DeclaredSchema { name: Some(name), description, is_strict, schema: raw }, FIELD, errors)
        }
    }
}
