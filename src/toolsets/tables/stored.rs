//! Stored configurations, as the backend gives them.

use serde_json::{Map, Value};

use crate::agent::ports::tools::ToolContext;
use crate::tools::backend::{Backend, BackendError, Request};

/// The stored object with this name.
///
/// # Errors
/// See [`BackendError`].
pub async fn by_name(backend: &Backend, cx: &ToolContext<'_>, name: &str) -> Result<Map<String, Value>, BackendError> {
    stored(backend.call(cx.caller, Request::get(["v1", "data", "name", name])).await?)
}

/// The stored object with this id.
///
/// # Errors
/// See [`BackendError`].
pub async fn by_id(backend: &Backend, cx: &ToolContext<'_>, id: &str) -> Result<Map<String, Value>, BackendError> {
    stored(backend.call(cx.caller, Request::get(["v1", "data", "id", id])).await?)
}

/// The stored object in the backend's answer; anything else would look to a model like an empty configuration.
///
/// # Errors
/// [`BackendError::Shape`] when it is something else.
pub fn stored(answer: Value) -> Result<Map<String, Value>, BackendError> {
    match answer {
        Value::Object(stored) => Ok(stored),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(BackendError::Shape("a stored configuration is an object".to_owned()))
        }
    }
}
