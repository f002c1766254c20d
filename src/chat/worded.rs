//! Failures in the words of coding agents' tools (docs/WORKSPACE.md): an object with its type, its tool, a code, and a
//! sentence for the model.

use serde::Serialize;
use serde_json::Value;

/// The type of what fails without a tool that has a type of its own.
pub const TOOL_ERROR: &str = "tool_error";

/// What the model reads of a call that failed.
#[derive(Debug, Clone, Serialize)]
pub struct Worded<'a> {
    /// Such as `read_file_error`.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// The tool that was called.
    pub name: &'a str,
    /// Why, in one word.
    pub code: &'a str,
    /// The same in a sentence.
    pub error: &'a str,
    /// What there is of a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl Worded<'_> {
    /// It as JSON.
    ///
    /// # Errors
    /// When the details cannot be written.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}
