//! A turn whose calls were not all answered when its run ended, and how it is settled so that the history stays valid
//! for any model: each call gets a result, and one that may have taken effect says so.

use super::ids::ToolCallId;
use super::message::{AssistantMessage, Message};
use super::tool::{ToolOutput, ToolResult};
use super::trail::CallFate;

/// What a model reads as the result of a call that the run's end prevented.
const NOT_RUN: &str = "this call was not completed because the run ended";

/// What a model reads as the result of a write that was under way when the run ended.
const UNKNOWN: &str = "the state of this call is unknown: it was sent, and the run ended before its answer came. It may or may not \
                       have taken effect. Do not repeat it; check what is there now, or ask the user";

/// How the result of a call begins that waits for somebody's approval.
pub const WAITS: &str = r#"{"status":"awaiting_approval""#;

/// How what stands for the result of a call begins that was left to the client.
pub const LEFT: &str = r#"{"status":"awaiting_client""#;

/// How the result of a call begins that was not made.
const NOT_MADE: &str = r#"{"error":"this call was not made"#;

/// A turn that has called tools, some of which may have run.
#[derive(Debug, Clone)]
pub struct Unfinished {
    /// What the model said and called.
    pub message: AssistantMessage,
    /// The results so far, in call order.
    pub results: Vec<ToolResult>,
    /// The write that was sent off and has no result yet.
    pub dispatched: Option<ToolCallId>,
}

impl Unfinished {
    /// The turn's messages, every call answered.
    pub fn settle(self) -> [Message; 2] {
        let Self { message, mut results, dispatched } = self;
        for call in message.calls().skip(results.len()) {
            let words = if dispatched.as_ref() == Some(&call.id) { UNKNOWN } else { NOT_RUN };
            let content = ToolOutput::error(words).content;
            results.push(ToolResult { id: call.id.clone(), name: call.name.clone(), content, is_error: true });
        }
        [Message::Assistant(message), Message::ToolResults(results)]
    }
}

/// What became of the call that `result` answers.
pub fn fate(result: &ToolResult) -> CallFate {
    match result.is_error {
        false if result.content.starts_with(WAITS) || result.content.starts_with(LEFT) => CallFate::NotRun,
        false => CallFate::Done,
        true if result.content.starts_with(NOT_MADE) => CallFate::NotRun,
        true if result.content == ToolOutput::error(UNKNOWN).content => CallFate::Unknown,
        true if result.content == ToolOutput::error(NOT_RUN).content => CallFate::NotRun,
        true => CallFate::Failed,
    }
}
