//! Data of a tool for the client: a preview, a typed payload. The loop carries it and never looks into it.

use std::borrow::Cow;

use serde_json::Value;

use super::ids::ToolCallId;

/// The kind of a file's change: `{file, diff, added, removed}`, without the last three where a side is no text.
pub const FILE_EDIT: &str = "file_edit";

/// The kind of the state of files that was kept before a message: `{checkpoint_id, session}`.
pub const CHECKPOINT: &str = "checkpoint";

/// What a call has made for its client's screen.
#[derive(Debug, Clone, PartialEq)]
pub struct CallArtifact {
    /// The call.
    pub call: ToolCallId,
    /// What it has made.
    pub artifact: Artifact,
}

/// A thing for the client's screen, made by a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    /// Its kind (`workflow_preview`, `table_config_preview`): a name that dialects map to their wire.
    pub kind: Cow<'static, str>,
    /// Its body, already in the protocol's shape.
    pub payload: Value,
}
