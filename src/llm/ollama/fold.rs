//! Ollama's lines, folded. Every call comes whole, in any line; `done: true` ends the answer.

use super::wire;
use crate::agent::ports::llm::{ProviderError, ProviderErrorKind};
use crate::chat::stream::{CallSlot, FinishReason, StreamEvent, Usage};
use crate::llm::answer::{self, Flow, arguments_text, read};
use crate::llm::think::ThinkTags;

/// An answer so far.
#[derive(Debug, Default)]
pub(super) struct Fold {
    next_slot: u32,
    /// Older models have no parser for their reasoning.
    tags: ThinkTags,
}

impl answer::Fold for Fold {
    fn push(&mut self, frame: &str, events: &mut Vec<StreamEvent>) -> Result<Flow, ProviderError> {
        let line: wire::Line<'_> = read(frame)?;
        if let Some(error) = line.error {
            self.tags.close(events);
            return Err(error.into_error());
        }
        if let Some(message) = line.message {
            if let Some(thinking) = message.thinking.filter(|text| !text.is_empty()) {
                self.tags.interrupt(events);
                events.push(StreamEvent::Thinking(thinking));
            }
            self.tags.push(message.content.unwrap_or_default(), events);
            for call in message.tool_calls.into_iter().flatten() {
                self.push_call(call, events)?;
            }
        }
        if line.done != Some(true) {
            return Ok(Flow::More);
        }
        self.tags.close(events);
        let reason = match line.done_reason.as_deref() {
            Some("length") => FinishReason::Length,
            Some(_) | None => FinishReason::Stop,
        };
        let usage = match (line.prompt_eval_count, line.eval_count) {
            (None, None) => None,
            // Zeros are left out.
            (input, output) => {
                Some(Usage { input_tokens: input.unwrap_or(0), output_tokens: output.unwrap_or(0), ..Usage::default() })
            }
        };
        events.push(StreamEvent::Finished { reason, usage });
        Ok(Flow::Done)
    }

    fn finish(&mut self, _tail: &str, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        self.tags.close(events);
        Err(answer::truncated())
    }
}

impl Fold {
    fn push_call(&mut self, call: wire::LineCall<'_>, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        let Some(function) = call.function else { return Ok(()) };
        let Some(name) = function.name.filter(|name| !name.is_empty()) else {
            return Err(ProviderError::new(ProviderErrorKind::ModelFault, "a tool call without a name"));
        };
        self.tags.close(events);
        let slot = CallSlot(self.next_slot);
        self.next_slot += 1;
        events.push(StreamEvent::ToolCallStarted { slot, id: call.id, name });
        if let Some(arguments) = function.arguments {
            events.push(StreamEvent::ToolCallInput { slot, json: arguments_text(arguments)? });
        }
        Ok(())
    }
}
