//! The port of calls that were made before: what tools have said in a conversation, also where no model reads it any more.

use async_trait::async_trait;

use super::conversations::PageError;
use super::store_error::StoreError;
use crate::bounded::memory::Reservation;
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::tool::{ToolCall, ToolResult};

/// Tools that are about the conversation itself: nobody looks for what they have said, and it is not among the results.
pub const ABOUT_THE_CONVERSATION: [&str; 2] = ["get_tool_result", "set_dialog_title"];

/// Finds the calls of a branch, but for those of tools [`ABOUT_THE_CONVERSATION`].
#[async_trait]
pub trait CallStore: Send + Sync {
    /// The newest call of that id; `None` when there is none.
    ///
    /// # Errors
    /// When it could not be read.
    async fn call(&self, branch: Branch<'_>, id: &str) -> Result<Option<PastCall>, StoreError>;

    /// The ids of the newest calls, each once, newest first.
    ///
    /// # Errors
    /// When they could not be read.
    async fn call_ids(&self, branch: Branch<'_>, most: usize) -> Result<Vec<String>, StoreError>;

    /// All calls of the branch's last run that have a result, oldest first. `held` grows to what they take before they are
    /// read.
    ///
    /// # Errors
    /// When they could not be read, or there is no memory for them.
    async fn calls_of_run(&self, branch: Branch<'_>, held: &mut Reservation) -> Result<Vec<PastCall>, PageError>;
}

/// The way from a run back to the beginning of its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch<'a> {
    /// Whose.
    pub owner: &'a Owner,
    /// The conversation.
    pub conversation: &'a ConversationId,
    /// The run.
    pub run: RunId,
}

/// A call that was made, and what its tool has said.
#[derive(Debug, Clone, PartialEq)]
pub struct PastCall {
    /// The call.
    pub call: ToolCall,
    /// What its tool has said.
    pub result: ToolResult,
    /// When that was kept, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}
