//! The frames of `smithy`.

use serde::Serialize;
use serde_json::{Map, Value};

/// A frame. No member is ever null.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Frame<'a> {
    /// First: the user's own words, and the checkpoint before them.
    User {
        dialog_id: &'a str,
        content: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        checkpoint: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        session: Option<&'a str>,
    },
    /// A summary stands for what does not fit; it may be waited for.
    SummaryStart {
        dialog_id: &'a str,
    },
    SummaryEnd {
        dialog_id: &'a str,
    },
    /// A segment of the model's reasoning begins.
    ReasoningStart {
        dialog_id: &'a str,
    },
    Reasoning {
        dialog_id: &'a str,
        content: &'a str,
    },
    ReasoningEnd {
        dialog_id: &'a str,
    },
    /// A segment of its text begins.
    ChatStart {
        dialog_id: &'a str,
    },
    Chat {
        dialog_id: &'a str,
        content: &'a str,
    },
    ChatEnd {
        dialog_id: &'a str,
    },
    /// A call is about to be made.
    ToolCall {
        dialog_id: &'a str,
        name: &'a str,
        args: &'a Map<String, Value>,
    },
    /// A call has changed a file.
    FileEdit {
        dialog_id: &'a str,
        /// Its absolute path.
        file: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        diff: Option<&'a str>,
    },
    Error {
        dialog_id: &'a str,
        error: &'a str,
    },
    /// Last.
    Done {
        dialog_id: &'a str,
        done: bool,
    },
}
