//! The toolbox: definitions joined with handlers by name, and the one place where a call's failure becomes data.
//!
//! **Invariant:** nothing a handler does leaves here but an output; not even its panic.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt;

use super::Tool;
use crate::agent::ports::tools::{ToolContext, ToolExecutor};
use crate::chat::tool::{ToolCall, ToolInput, ToolOutput};

/// A handler and the name it answers to.
pub type Handler = (&'static str, Arc<dyn Tool>);

/// All handlers by name.
pub struct Toolbox {
    handlers: HashMap<&'static str, Arc<dyn Tool>>,
    max_result_bytes: usize,
}

impl Toolbox {
    /// A toolbox of `handlers`. Results longer than `max_result_bytes` are cut, with a note for the model; 0 cuts none.
    pub fn new(handlers: impl IntoIterator<Item = Handler>, max_result_bytes: usize) -> Self {
        Self { handlers: handlers.into_iter().collect(), max_result_bytes }
    }

    /// Whether a handler of this name exists.
    pub fn knows(&self, name: &str) -> bool {
        self.handlers.contains_key(name)
    }
}

#[async_trait]
impl ToolExecutor for Toolbox {
    async fn execute(&self, call: &ToolCall, cx: &ToolContext<'_>) -> ToolOutput {
        let Some(handler) = self.handlers.get(call.name.as_str()) else {
            return ToolOutput::error(&format!("unknown tool: {}", call.name));
        };
        let args = match &call.input {
            ToolInput::Object(args) => args,
            ToolInput::Invalid(_) => return ToolOutput::error("bad params: the arguments are not a JSON object"),
        };
        // A handler keeps no state of its own across calls but caches, which are whole at every await.
        let Ok(result) = AssertUnwindSafe(handler.call(args, cx)).catch_unwind().await else {
            tracing::error!(
                gen_ai.tool.name = call.name,
                gen_ai.tool.call.id = call.id.as_str(),
                run.id = %cx.run,
                "tool call panicked"
            );
            return ToolOutput::error("the tool failed inside the server; do not repeat the call, tell the user");
        };
        match result {
            Ok(mut output) => {
                cut_content(&mut output.content, self.max_result_bytes);
                output
            }
            Err(error) => {
                tracing::warn!(
                    gen_ai.tool.name = call.name,
                    gen_ai.tool.call.id = call.id.as_str(),
                    run.id = %cx.run,
                    error.kind = error_kind(&error),
                    "tool call failed"
                );
                ToolOutput::error(&error.to_string())
            }
        }
    }
}

fn error_kind(error: &super::ToolError) -> &'static str {
    match error {
        super::ToolError::BadParams(_) => "bad_params",
        super::ToolError::Refused(_) => "refused",
        super::ToolError::Backend(_) | super::ToolError::Lookup { .. } => "backend",
        super::ToolError::Draft(_) => "draft",
        super::ToolError::Store(_) => "store",
    }
}

/// Cuts `content` at a character border and says so.
fn cut_content(content: &mut String, max_bytes: usize) {
    if max_bytes == 0 || content.len() <= max_bytes {
        return;
    }
    let whole = content.len();
    content.truncate(content.floor_char_boundary(max_bytes));
    content.push_str(&format!("\n[cut: {max_bytes} of {whole} bytes shown; ask for less]"));
}
