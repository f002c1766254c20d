//! `get_tool_result`: what a tool has said before, for a model that does not see it any more.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::agent::ports::calls::{Branch, CallStore, PastCall};
use crate::agent::ports::tools::ToolContext;
use crate::bounded::json;
use crate::chat::day::rfc3339;
use crate::chat::tool::{ToolInput, ToolOutput};
use crate::chat::worded::TOOL_ERROR;
use crate::tools::worded::{Wording, told};
use crate::tools::{Tool, ToolError};

pub(super) const WORDING: Wording = Wording { name: "get_tool_result", kind: TOOL_ERROR };

/// Ids that are told where there is no call of the one that was asked for: AgentSmithy protocol.
const IDS: usize = 10;

pub(super) struct GetResult(pub(super) Arc<dyn CallStore>);

#[derive(Deserialize)]
struct Args {
    tool_call_id: String,
}

/// What the model reads.
#[derive(Serialize)]
#[serde(tag = "type", rename = "previous_result")]
struct Told {
    tool_call_id: String,
    tool_name: String,
    original_args: Map<String, Value>,
    /// As JSON where it is some.
    result: Value,
    timestamp: String,
}

#[async_trait]
impl Tool for GetResult {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let Args { tool_call_id } = WORDING.args(args)?;
        let branch = Branch { owner: &cx.caller.owner, conversation: cx.conversation, run: cx.run };
        if let Some(found) = self.0.call(branch, tool_call_id.trim()).await? {
            return Ok(told(&Told::from_call(found)));
        }
        let words = match self.0.call_ids(branch, IDS).await?.as_slice() {
            [] => "no tool has said anything in this conversation yet".to_owned(),
            ids => format!("there is no result of this call; the newest that there are: {}", ids.join(", ")),
        };
        Err(WORDING.error("not_found", &words))
    }

    fn wording(&self) -> Option<Wording> {
        Some(WORDING)
    }

    fn check(&self, args: &Map<String, Value>) -> Result<(), ToolError> {
        WORDING.args::<Args>(args).map(drop)
    }
}

impl Told {
    fn from_call(PastCall { call, result, at_ms }: PastCall) -> Self {
        Self {
            tool_call_id: call.id.to_string(),
            tool_name: call.name,
            original_args: match call.input {
                ToolInput::Object(args) => args,
                ToolInput::Invalid(_) => Map::new(),
            },
            result: json::value(&result.content).unwrap_or(Value::String(result.content)),
            timestamp: rfc3339(at_ms),
        }
    }
}
