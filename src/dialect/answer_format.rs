//! The form that a request wants its answer in, whatever the protocol calls its parts.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::{DecodeError, FieldError};
use crate::bounded::json::value;
use crate::chat::answer_format::{AnswerFormat, AnswerSchema};

/// The largest schema, 64 KiB: a model reads it with each turn.
const MAX_BYTES: usize = 65_536;

/// The name of a schema that its client gives none.
const NAME: &str = "answer";

/// A client's declaration of a schema.
pub(super) struct DeclaredSchema<'a> {
    /// Its name, where it has one.
    pub(super) name: Option<String>,
    /// What the answer is for.
    pub(super) description: Option<String>,
    /// Whether the vendor is to hold the model to it.
    pub(super) is_strict: bool,
    /// The JSON Schema.
    pub(super) schema: &'a RawValue,
}

/// The form that is declared in `field`; what is wrong with it is noted in `errors`.
///
/// # Errors
/// When it is larger than 64 KiB.
pub(super) fn schema(
    declared: DeclaredSchema<'_>,
    field: &'static str,
    errors: &mut Vec<FieldError>,
) -> Result<Option<AnswerFormat>, DecodeError> {
    let DeclaredSchema { name, description, is_strict, schema } = declared;
    let described = description.as_ref().map_or(0, String::len);
    if schema.get().len().saturating_add(described) > MAX_BYTES {
        return Err(DecodeError::TooLarge { field, max_bytes: MAX_BYTES });
    }
    let name = name.unwrap_or_else(|| NAME.to_owned());
    let read = value(schema.get()).map_err(|error| format!("must have a schema that can be read: {error}"));
    match read.and_then(|schema| AnswerSchema::parse(name, description, is_strict, schema)) {
        Ok(schema) => Ok(Some(AnswerFormat::Schema(Arc::new(schema)))),
        Err(reason) => {
            errors.push(FieldError { field, reason });
            Ok(None)
        }
    }
}
