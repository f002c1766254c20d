//! `get_payload`: a payload of the conversation, whole, for a model that has only seen its summary.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::executor::Handler;
use super::{Tool, ToolError, parse_args};
use crate::agent::ports::payloads::PayloadStore;
use crate::agent::ports::tools::ToolContext;
use crate::bounded::json::JsonText;
use crate::chat::ids::PayloadId;
use crate::chat::tool::ToolOutput;

/// The handlers of this file.
pub fn tools(payloads: &Arc<dyn PayloadStore>) -> Vec<Handler> {
    vec![("get_payload".into(), Arc::new(GetPayload { payloads: payloads.clone() }))]
}

struct GetPayload {
    payloads: Arc<dyn PayloadStore>,
}

#[derive(Deserialize)]
struct Args {
    payload_id: String,
}

/// What the model reads.
#[derive(Serialize)]
struct Found<'a> {
    r#type: &'a str,
    summary: &'a str,
    data: &'a JsonText,
}

impl Args {
    /// The id that the model means; it may have copied it with its brackets.
    fn id(&self) -> Result<PayloadId, ToolError> {
        let text = self.payload_id.trim().trim_start_matches('[').trim_end_matches(']');
        PayloadId::parse(text).map_err(|error| ToolError::BadParams(format!("payload_id {error}")))
    }
}

#[async_trait]
impl Tool for GetPayload {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let id = parse_args::<Args>(args)?.id()?;
        let found = self.payloads.payload(&cx.caller.owner, cx.conversation, &id).await?;
        let payload = found.ok_or_else(|| ToolError::Refused(format!("this conversation has no payload {id}")))?;
        let result = Found { r#type: &payload.kind, summary: &payload.summary, data: &payload.data };
        Ok(ToolOutput::ok(serde_json::to_string(&result).unwrap_or_default()))
    }
}
