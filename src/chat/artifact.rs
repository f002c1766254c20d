//! Data of a tool for the client: a preview, a typed payload. The loop carries it and never looks into it.

use std::borrow::Cow;

use serde_json::Value;

use super::ids::{FileId, ToolCallId};
use super::origin::CallOrigin;

/// The kind of a file's change: `{file, diff, added, removed}`, without the last three where a side is no text.
pub const FILE_EDIT: &str = "file_edit";

/// The kind of the state of files that was kept before a message: `{checkpoint_id, session}`.
pub const CHECKPOINT: &str = "checkpoint";

/// The kind of a file that is kept: `{id, name, media_type, bytes, url}`.
pub const FILE: &str = "file";

/// What a call has made for its client's screen.
#[derive(Debug, Clone, PartialEq)]
pub struct CallArtifact {
    /// The call.
    pub call: ToolCallId,
    /// What it has made.
    pub artifact: Artifact,
    /// The helper that has made the call; `None` where the model that answers has.
    pub helper: Option<HelperOf>,
}

impl CallArtifact {
    /// The call of the run's own that it is shown with.
    pub fn shown_with(&self) -> &ToolCallId {
        self.helper.as_ref().map_or(&self.call, |helper| &helper.call)
    }
}

/// A step of a plan or a sub-agent, and the call of its run that it works for.
#[derive(Debug, Clone, PartialEq)]
pub struct HelperOf {
    /// That call.
    pub call: ToolCallId,
    /// Who it is.
    pub origin: CallOrigin,
}

/// A thing for the client's screen, made by a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    /// Its kind (`workflow_preview`, `table_config_preview`): a name that dialects map to their wire.
    pub kind: Cow<'static, str>,
    /// Its body, already in the protocol's shape.
    pub payload: Value,
}

impl Artifact {
    /// The file that is kept for it, if it is one.
    pub fn file(&self) -> Option<FileId> {
        let id = self.payload.get("id").filter(|_| self.kind == FILE)?;
        FileId::parse(id.as_str()?).ok()
    }
}
