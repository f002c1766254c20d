//! The Gemini API's chunks, folded. There is no terminal marker: a finish reason may come early, and usage or an error
//! may follow it, so the answer is complete when the body has ended and a reason was seen.

use serde_json::value::RawValue;

use super::wire;
use crate::agent::ports::llm::{ProviderError, ProviderErrorKind};
use crate::chat::message::Replay;
use crate::chat::stream::{CallSlot, FinishReason, ReplayOn, StreamEvent, Usage};
use crate::llm::answer::{self, Flow, arguments_text, read};
use crate::llm::google::google_finish;

/// An answer so far.
#[derive(Debug, Default)]
pub(super) struct Fold {
    next_slot: u32,
    reason: Option<FinishReason>,
    usage: Option<wire::UsageMetadata>,
}

impl answer::Fold for Fold {
    fn push(&mut self, frame: &str, events: &mut Vec<StreamEvent>) -> Result<Flow, ProviderError> {
        let chunk: wire::Chunk<'_> = read(frame)?;
        if let Some(error) = chunk.error {
            return Err(error.into_error());
        }
        self.merge(chunk.usage_metadata, events);
        if chunk.prompt_feedback.is_some_and(|feedback| feedback.block_reason.is_some()) {
            self.reason = Some(FinishReason::ContentFilter);
        }
        let Some(candidate) = chunk.candidates.into_iter().flatten().next() else { return Ok(Flow::More) };
        for part in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
            self.push_part(part, events)?;
        }
        if let Some(label) = candidate.finish_reason.filter(|label| !label.is_empty()) {
            let reason = reason(&label, candidate.finish_message)?;
            // A later, milder chunk does not take a filter or a limit back.
            if self.reason.is_none_or(|before| before == FinishReason::Stop) {
                self.reason = Some(reason);
            }
        }
        Ok(Flow::More)
    }

    fn finish(&mut self, tail: &str, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        answer::check_tail(tail)?;
        let Some(reason) = self.reason else { return Err(answer::truncated()) };
        events.push(StreamEvent::Finished { reason, usage: self.usage() });
        Ok(())
    }
}

impl Fold {
    fn push_part(&mut self, part: wire::ModelPart<'_>, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        if let Some(call) = part.function_call {
            let slot = CallSlot(self.next_slot);
            self.next_slot += 1;
            let Some(name) = call.name.filter(|name| !name.is_empty()) else {
                return Err(ProviderError::new(ProviderErrorKind::ModelFault, "a function call without a name"));
            };
            events.push(StreamEvent::ToolCallStarted { slot, id: call.id, name });
            if let Some(args) = call.args {
                events.push(StreamEvent::ToolCallInput { slot, json: arguments_text(args)? });
            }
            sign(ReplayOn::ToolCall(slot), part.thought_signature, events);
        } else if let Some(text) = part.text {
            let is_thought = part.thought == Some(true);
            events.push(if is_thought { StreamEvent::Thinking(text) } else { StreamEvent::Text(text) });
            let on = if is_thought { ReplayOn::Thinking } else { ReplayOn::Text };
            sign(on, part.thought_signature, events);
        }
        Ok(())
    }

    fn merge(&mut self, newer: Option<wire::UsageMetadata>, events: &mut Vec<StreamEvent>) {
        let Some(newer) = newer else { return };
        let usage = self.usage.get_or_insert_default();
        usage.prompt_token_count = newer.prompt_token_count.or(usage.prompt_token_count);
        usage.tool_use_prompt_token_count = newer.tool_use_prompt_token_count.or(usage.tool_use_prompt_token_count);
        usage.candidates_token_count = newer.candidates_token_count.or(usage.candidates_token_count);
        usage.thoughts_token_count = newer.thoughts_token_count.or(usage.thoughts_token_count);
        usage.cached_content_token_count = newer.cached_content_token_count.or(usage.cached_content_token_count);
        events.extend(self.usage().map(StreamEvent::Used));
    }

    fn usage(&self) -> Option<Usage> {
        let wire = self.usage.as_ref()?;
        let prompt = wire.prompt_token_count.unwrap_or(0);
        let thoughts = wire.thoughts_token_count.unwrap_or(0);
        Some(Usage {
            input_tokens: prompt.saturating_add(wire.tool_use_prompt_token_count.unwrap_or(0)),
            output_tokens: wire.candidates_token_count.unwrap_or(0).saturating_add(thoughts),
            cached_input_tokens: wire.cached_content_token_count.unwrap_or(0),
            reasoning_tokens: thoughts,
        })
    }
}

fn sign(on: ReplayOn, signature: Option<&RawValue>, events: &mut Vec<StreamEvent>) {
    if let Some(signature) = signature.filter(|signature| signature.get() != r#""""#) {
        events.push(StreamEvent::Replay { on, data: Replay::new(signature.to_owned()) });
    }
}

/// What a finish reason means, with the vendor's own words where it is an error.
fn reason(label: &str, message: Option<String>) -> Result<FinishReason, ProviderError> {
    google_finish(label)
        .map_err(|error| ProviderError::new(error.kind, format!("{}: {}", error.detail, message.unwrap_or_default())))
}
