//! Which stored configuration a call means: the one it names, by UUID or by name; only a call that names none means the
//! configuration that is open on the user's screen.

use super::config::text;
use super::stored::by_name;
use crate::agent::ports::tools::ToolContext;
use crate::tools::ToolError;
use crate::tools::backend::{Backend, BackendError};
use crate::tools::names::as_uuid;

/// The id of the configuration on the screen, if there is one.
pub fn on_screen(cx: &ToolContext<'_>) -> Option<String> {
    as_uuid(&cx.context_str("config_id")?)
}

/// The id that `given` stands for.
///
/// # Errors
/// When it is no UUID and nothing stored has that name: the screen must not stand in, since a change would overwrite it.
pub async fn named(given: &str, backend: &Backend, cx: &ToolContext<'_>) -> Result<String, ToolError> {
    if let Some(id) = as_uuid(given) {
        return Ok(id);
    }
    match by_name(backend, cx, given).await {
        Ok(stored) => text(&stored, "id")
            .map(str::to_owned)
            .ok_or_else(|| BackendError::Shape("a stored configuration without an id".to_owned()).into()),
        Err(error) if error.is_not_found() => Err(ToolError::Refused(format!(
            "{given:?} is neither the UUID nor the name of a stored configuration; list_table_configs has them all, and a \
             new one has no id"
        ))),
        Err(error) => Err(error.into()),
    }
}
