//! The tools' port. A failed tool is data for the model, so there is no `Result`.

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::chat::caller::Caller;
use crate::chat::ids::{ConversationId, RunId, ToolCallId};
use crate::chat::tool::{Effect, ToolCall, ToolOutput};

/// Runs tool calls.
#[async_trait]
pub trait ToolExecutor: Send + Sync {
    /// The output of `call`: bad arguments, an unknown tool and a failing backend are outputs with `is_error`, and so
    /// is a panic inside a tool.
    /// Dropping the future stops the tool at once.
    async fn execute(&self, call: &ToolCall, cx: &ToolContext<'_>) -> ToolOutput;

    /// What a second call of `tool` could do. [`Effect::Read`] for an unknown one, since it never runs.
    fn effect(&self, tool: &str) -> Effect;
}

/// Where and for whom a call runs.
#[derive(Debug, Clone, Copy)]
pub struct ToolContext<'a> {
    /// The end user; their bearer goes to the backend.
    pub caller: &'a Caller,
    /// The conversation, which owns drafts and previews.
    pub conversation: &'a ConversationId,
    /// The run, for logs and for the key of a write.
    pub run: RunId,
    /// The call; a tool always has it. A run has none to give, and the executor takes it from the call that it
    /// executes.
    pub call: Option<&'a ToolCallId>,
    /// The screen state the request brought; untrusted. Tools take ids from it that the model left out.
    pub context: Option<&'a Map<String, Value>>,
}

impl ToolContext<'_> {
    /// The non-empty string at `key` of the screen state.
    pub fn context_str(&self, key: &str) -> Option<&str> {
        self.context?.get(key)?.as_str().filter(|text| !text.is_empty())
    }
}
