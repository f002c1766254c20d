//! The content blocks of a message, typed.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::chat::tool::ToolInput;

/// Whose tools the server's own are to these clients.
const SERVER_NAME: &str = "switchboard";

/// A content block.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = MessagesBlock)]
pub(super) enum Block {
    /// Words of the assistant's.
    Text { text: String },
    /// What the model thought, where its profile shows that and the request wants it.
    Thinking {
        thinking: String,
        /// Names the block and says nothing.
        signature: String,
    },
    /// A call of a tool that this server runs.
    McpToolUse {
        id: String,
        name: String,
        server_name: &'static str,
        #[schema(value_type = Object)]
        input: Map<String, Value>,
    },
    /// Its result.
    McpToolResult { tool_use_id: String, is_error: bool, content: Vec<ResultPart> },
    /// A call that is left to the client.
    ToolUse {
        id: String,
        name: String,
        #[schema(value_type = Object)]
        input: Map<String, Value>,
    },
}

/// A part of a result.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = MessagesResultPart)]
pub(super) enum ResultPart {
    /// A text.
    Text { text: String },
}

impl Block {
    /// A call that the server makes.
    pub(super) fn call(id: &str, name: &str, input: &ToolInput) -> Self {
        Self::McpToolUse { id: id.to_owned(), name: name.to_owned(), server_name: SERVER_NAME, input: fields(input) }
    }

    /// Its result; an empty one has no parts.
    pub(super) fn result(id: String, is_error: bool, text: &str) -> Self {
        let part = (!text.is_empty()).then(|| ResultPart::Text { text: text.to_owned() });
        Self::McpToolResult { tool_use_id: id, is_error, content: part.into_iter().collect() }
    }

    /// A call for the client.
    pub(super) fn tool_use(id: String, name: &str, input: &ToolInput) -> Self {
        Self::ToolUse { id, name: name.to_owned(), input: fields(input) }
    }
}

/// Arguments as an object, which is all that this protocol has: those that are none are told to the model, and to nobody else.
fn fields(input: &ToolInput) -> Map<String, Value> {
    match input {
        ToolInput::Object(fields) => fields.clone(),
        ToolInput::Invalid(_) => Map::new(),
    }
}
