//! A turn whose calls were not all answered when its run ended, and how it is settled so that the history stays valid
//! for any model: each call gets a result, and one that may have taken effect says so.

use super::ids::ToolCallId;
use super::message::{AssistantMessage, Message};
use super::tool::{ToolOutput, ToolResult};

/// The result, for the model, of a call that the run's end prevented.
const NOT_RUN: &str = "this call was not completed because the run ended";

/// The result, for the model, of a write that was under way when the run ended.
const UNKNOWN: &str = "the state of this call is unknown: it was sent, and the run ended before its answer came. It may or may not \
                       have taken effect. Do not repeat it; check what is there now, or ask the user";

/// A turn that has called tools, some of which may have run.
#[derive(Debug, Clone)]
pub struct Unfinished {
    /// The model's text and calls.
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
            let output = match dispatched.as_ref() == Some(&call.id) {
                true => ToolOutput::unknown(UNKNOWN),
                false => ToolOutput::not_made(NOT_RUN),
            };
            results.push(ToolResult::from_call(call, output));
        }
        [Message::Assistant(message), Message::ToolResults(results)]
    }
}
