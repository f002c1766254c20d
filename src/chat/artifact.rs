//! Data of a tool for the client: a preview, a typed payload. The loop carries it and never looks into it.

use std::borrow::Cow;

use serde_json::Value;

/// A thing for the client's screen, made by a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    /// Its kind (`workflow_preview`, `table_config_preview`): a name that dialects map to their wire.
    pub kind: Cow<'static, str>,
    /// Its body, already in the protocol's shape.
    pub payload: Value,
}
