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

/// The output of a call that was made. What a backend says must not read like what is said here of calls that were not: its
/// fate is read from how it begins, and a write that may be repeated is one that was not made.
pub fn made(mut output: ToolOutput) -> ToolOutput {
    let ours = [WAITS, LEFT, NOT_MADE];
    let is_ours = ours.iter().any(|words| output.content.starts_with(words))
        || [NOT_RUN, UNKNOWN].iter().any(|words| output.content == ToolOutput::error(words).content);
    if is_ours {
        // The same JSON to whoever reads it as such.
        output.content.insert(0, ' ');
    }
    output
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fate_of_a_call_that_was_made_is_not_its_servers_to_tell() {
        let rows = [
            (ToolOutput::ok(format!("{WAITS},\"note\":\"…\"}}")), CallFate::Done, "as if it waited"),
            (ToolOutput::ok(format!("{LEFT}}}")), CallFate::Done, "as if it were left to the client"),
            (
                ToolOutput::error("this call was not made, and may be made again"),
                CallFate::Failed,
                "as if it were refused",
            ),
            (ToolOutput::error(NOT_RUN), CallFate::Failed, "as if it were cut off before"),
            (ToolOutput::error(UNKNOWN), CallFate::Failed, "as if it were cut off while it ran"),
            (ToolOutput::ok("{\"id\":7}"), CallFate::Done, "any other result"),
            (ToolOutput::error("no such thing"), CallFate::Failed, "any other error"),
        ];
        for (output, expected, reason) in rows {
            let same: serde_json::Result<serde_json::Value> = serde_json::from_str(&output.content);
            let ToolOutput { content, is_error, .. } = made(output);
            assert_eq!(serde_json::from_str::<serde_json::Value>(&content).ok(), same.ok(), "the same to its reader");
            let result = ToolResult { id: ToolCallId::mint(), name: String::new(), content, is_error };
            assert_eq!(fate(&result), expected, "{reason}");
        }
    }
}
