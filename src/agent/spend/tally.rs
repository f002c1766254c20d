//! The usage of a model call while it is under way. Most vendors report it at the end, and an answer that breaks off
//! has no report: what was reported until then counts, and the rest is estimated, since its vendor charges for it all
//! the same.

use std::sync::Arc;

use crate::agent::ports::llm::{SentFiles, SystemPrompt};
use crate::chat::file::FileRef;
use crate::chat::message::{AssistantPart, Message, Replay};
use crate::chat::stream::{Counted, StreamEvent, Usage};
use crate::chat::tool::{ToolCall, ToolDef, ToolInput};

/// 4 bytes for a token: what vendors name as a rule of thumb.
const BYTES_PER_TOKEN: usize = 4;

/// A model call that has not come to its end.
#[derive(Debug)]
pub(in crate::agent) struct Tally {
    system_bytes: usize,
    /// Measured only on demand: most calls come to their end.
    tools: Vec<Arc<ToolDef>>,
    answer_bytes: usize,
    /// The estimated tokens of the files that the model is shown.
    file_tokens: u64,
    reported: Usage,
}

impl Tally {
    /// Of a call with these, before its answer.
    pub(in crate::agent) fn new(system: &SystemPrompt, tools: &[Arc<ToolDef>]) -> Self {
        let (tools, reported) = (tools.to_vec(), Usage::default());
        Self { system_bytes: system.bytes(), tools, answer_bytes: 0, file_tokens: 0, reported }
    }

    /// The model that answers is shown these of the files of `messages`.
    pub(in crate::agent) fn shown(&mut self, messages: &[Message], sent: SentFiles<'_>) {
        let shown = messages.iter().flat_map(Message::files).filter(|file| sent.left_out(file).is_none());
        self.file_tokens = shown.map(FileRef::tokens).sum();
    }

    /// Counts what came.
    pub(in crate::agent) fn push(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Text(text) | StreamEvent::Thinking(text) => self.answer_bytes += text.len(),
            StreamEvent::ToolCallStarted { name, .. } => self.answer_bytes += name.len(),
            StreamEvent::ToolCallInput { json, .. } => self.answer_bytes += json.len(),
            StreamEvent::Used(usage) | StreamEvent::Finished { usage: Some(usage), .. } => self.reported = *usage,
            StreamEvent::Replay { .. } | StreamEvent::Finished { usage: None, .. } => {}
        }
    }

    /// The usage of the call with `messages` until now: as its vendor has reported it, and an estimate of the rest. The
    /// answer that came counts in any case: a vendor that reports the prompt's tokens at the beginning has reported
    /// next to none of the answer's.
    pub(in crate::agent) fn count(&self, messages: &[Message]) -> Counted {
        let Usage { input_tokens, output_tokens, .. } = self.reported;
        let answered = tokens(self.answer_bytes);
        let requested = match input_tokens {
            0 => tokens(self.request_bytes(messages)) + self.file_tokens,
            reported => reported,
        };
        Counted {
            usage: Usage { input_tokens: requested, output_tokens: output_tokens.max(answered), ..self.reported },
            is_estimate: requested != input_tokens || answered > output_tokens,
        }
    }

    fn request_bytes(&self, messages: &[Message]) -> usize {
        let tools = self.tools.iter().map(|tool| {
            let schema = serde_json::to_string(&tool.input_schema).unwrap_or_default();
            tool.name.len() + tool.description.len() + schema.len()
        });
        self.system_bytes + tools.sum::<usize>() + messages.iter().map(bytes).sum::<usize>()
    }
}

fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN) as u64
}

/// The bytes of a message in a request.
fn bytes(message: &Message) -> usize {
    match message {
        Message::User(user) => user.model_text().len(),
        Message::Assistant(assistant) => assistant.parts.iter().map(part_bytes).sum(),
        Message::ToolResults(results) => results.iter().map(|result| result.content.len()).sum(),
    }
}

fn part_bytes(part: &AssistantPart) -> usize {
    let raw = |replay: &Replay| replay.raw().get().len();
    match part {
        AssistantPart::Text { text, replay } => text.len() + replay.as_ref().map_or(0, raw),
        // Without its signature it is not sent back.
        AssistantPart::Thinking { replay: None, .. } => 0,
        AssistantPart::Thinking { text, replay: Some(replay) } => text.len() + raw(replay),
        AssistantPart::ToolCall { call, replay } => call_bytes(call) + replay.as_ref().map_or(0, raw),
        AssistantPart::Opaque(replay) => raw(replay),
    }
}

fn call_bytes(call: &ToolCall) -> usize {
    let input = match &call.input {
        ToolInput::Object(map) => serde_json::to_string(map).map_or(0, |json| json.len()),
        ToolInput::Invalid(text) => text.len(),
    };
    call.name.len() + input
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chat::message::UserMessage;
    use crate::chat::stream::{CallSlot, FinishReason};

    fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
        Usage { input_tokens, output_tokens, ..Usage::default() }
    }

    #[test]
    fn what_was_not_reported_is_estimated() {
        let system =
            SystemPrompt { instructions: "x".repeat(40).into(), client: String::new(), context: "y".repeat(8) };
        let tool = ToolDef { name: "find".into(), description: "Finds".into(), input_schema: json!({"a": 1}) };
        let messages = [Message::User(UserMessage::new("Why?"))];
        let text = |bytes: usize| StreamEvent::Text("t".repeat(bytes));
        let call = || StreamEvent::ToolCallStarted { slot: CallSlot(0), id: None, name: "find".into() };
        let input = || StreamEvent::ToolCallInput { slot: CallSlot(0), json: "{}".into() };
        let end = |usage| StreamEvent::Finished { reason: FinishReason::Stop, usage };
        // 40 and 8 of the prompt, 4 and 5 and 7 of the tool, 4 of the message: 68 bytes.
        let rows = [
            (vec![], usage(17, 0), true, "nothing came"),
            (vec![text(7), text(2)], usage(17, 3), true, "a part of a token is one"),
            (vec![StreamEvent::Thinking("t".repeat(4)), call(), input()], usage(17, 3), true, "all that a model says"),
            (vec![StreamEvent::Used(usage(100, 1))], usage(100, 1), false, "reported in the beginning"),
            (vec![StreamEvent::Used(usage(100, 1)), text(40)], usage(100, 10), true, "the answer was not reported"),
            (vec![text(40), StreamEvent::Used(usage(100, 12))], usage(100, 12), false, "as far as it came"),
            (
                vec![StreamEvent::Used(usage(1, 1)), StreamEvent::Used(usage(2, 2))],
                usage(2, 2),
                false,
                "the last value",
            ),
            (vec![text(8), end(Some(usage(5, 3)))], usage(5, 3), false, "the end"),
            (vec![text(8), end(None)], usage(17, 2), true, "an end that tells nothing"),
        ];
        for (events, expected, is_estimate, reason) in rows {
            let mut tally = Tally::new(&system, &[Arc::new(tool.clone())]);
            events.iter().for_each(|event| tally.push(event));
            assert_eq!(tally.count(&messages), Counted { usage: expected, is_estimate }, "{reason}");
        }
    }
}
