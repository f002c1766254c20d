//! The chunks of chat completions, folded. A finish reason is the terminal marker; usage and even an error may follow it,
//! so the last event waits for `[DONE]` or the body's end, whichever the server sends.

use serde_json::value::to_raw_value;

use super::calls::Calls;
use super::wire::{self, Content, ContentPart};
use crate::agent::ports::llm::{ProviderError, ProviderErrorKind};
use crate::chat::message::Replay;
use crate::chat::stream::{FinishReason, ReplayOn, StreamEvent, Usage};
use crate::llm::answer::{self, Flow, malformed, read};
use crate::llm::failure::{self, ErrorField};

/// An answer so far.
#[derive(Debug, Default)]
pub(super) struct Fold {
    calls: Calls,
    finish_reason: Option<String>,
    usage: wire::Usage,
    /// The newest piece is reasoning that came as `reasoning_content` and is not yet marked as such.
    has_unmarked_reasoning: bool,
}

impl answer::Fold for Fold {
    fn push(&mut self, frame: &str, events: &mut Vec<StreamEvent>) -> Result<Flow, ProviderError> {
        if frame.trim() == "[DONE]" {
            self.finish("", events)?;
            return Ok(Flow::Done);
        }
        let chunk: wire::Chunk<'_> = read(frame)?;
        if chunk.object.as_deref() == Some("error") && chunk.error.is_none() {
            return Err(read::<ErrorField>(frame)?.into_error());
        }
        for choice in chunk.choices.into_iter().flatten() {
            if let Some(delta) = choice.delta {
                self.push_delta(delta, events)?;
            }
            // A later null or empty reason does not take an earlier one back.
            self.finish_reason = choice.finish_reason.filter(|r| !r.is_empty()).or(self.finish_reason.take());
        }
        self.merge(chunk.usage);
        match chunk.error {
            Some(error) => Err(error.into_error()),
            None => Ok(Flow::More),
        }
    }

    fn finish(&mut self, tail: &str, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        if let Some(error) = failure::error_in(tail) {
            return Err(error);
        }
        let Some(label) = self.finish_reason.as_deref() else { return Err(answer::truncated()) };
        let reason = match label {
            "length" | "model_length" | "max_tokens" => FinishReason::Length,
            "content_filter" => FinishReason::ContentFilter,
            "error" | "network_error" | "insufficient_system_resource" => {
                let kind = ProviderErrorKind::Unavailable { retry_after: None };
                return Err(ProviderError::new(kind, format!("finish reason {label}")));
            }
            // `stop` with calls and `tool_calls` without any are both common: the calls themselves decide.
            _ => FinishReason::Stop,
        };
        if reason == FinishReason::Stop && self.calls.has_nameless() {
            return Err(ProviderError::new(ProviderErrorKind::ModelFault, "a tool call without a name"));
        }
        self.mark_reasoning(events)?;
        events.push(StreamEvent::Finished { reason, usage: self.usage() });
        Ok(())
    }
}

impl Fold {
    fn push_delta(&mut self, delta: wire::Delta<'_>, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        // Some servers send the same reasoning under both names.
        match (delta.reasoning_content.filter(|text| !text.is_empty()), delta.reasoning) {
            (Some(text), _) => {
                self.has_unmarked_reasoning = true;
                events.push(StreamEvent::Thinking(text));
            }
            (None, Some(text)) => events.push(StreamEvent::Thinking(text)),
            (None, None) => {}
        }
        match delta.content {
            Some(Content::Text(text)) => self.push_text(text, events)?,
            Some(Content::Parts(parts)) => {
                for part in parts {
                    self.push_part(part, events)?;
                }
            }
            None => {}
        }
        // A refusal is what the user gets to read.
        self.push_text(delta.refusal.unwrap_or_default(), events)?;
        for call in delta.tool_calls.into_iter().flatten() {
            self.mark_reasoning(events)?;
            self.calls.push(call, events)?;
        }
        Ok(())
    }

    fn push_text(&mut self, text: String, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        if text.is_empty() {
            return Ok(());
        }
        self.mark_reasoning(events)?;
        events.push(StreamEvent::Text(text));
        Ok(())
    }

    fn push_part(&mut self, part: ContentPart, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        match part {
            ContentPart::Text { text } => self.push_text(text.unwrap_or_default(), events)?,
            ContentPart::Thinking { thinking: Some(Content::Text(text)) } => events.push(StreamEvent::Thinking(text)),
            ContentPart::Thinking { thinking: Some(Content::Parts(parts)) } => {
                let texts = parts.into_iter().filter_map(|part| match part {
                    ContentPart::Text { text } => text,
                    ContentPart::Thinking { .. } | ContentPart::Other => None,
                });
                events.extend(texts.map(StreamEvent::Thinking));
            }
            ContentPart::Thinking { thinking: None } | ContentPart::Other => {}
        }
        Ok(())
    }

    /// Marks the reasoning before this place with the name of the field it came in, so that the next request can send it
    /// back in the same one.
    fn mark_reasoning(&mut self, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        if std::mem::take(&mut self.has_unmarked_reasoning) {
            let data = Replay::new(to_raw_value("reasoning_content").map_err(malformed)?);
            events.push(StreamEvent::Replay { on: ReplayOn::Thinking, data });
        }
        Ok(())
    }

    fn merge(&mut self, newer: Option<wire::Usage>) {
        let Some(newer) = newer else { return };
        let usage = &mut self.usage;
        usage.prompt_tokens = newer.prompt_tokens.or(usage.prompt_tokens);
        usage.completion_tokens = newer.completion_tokens.or(usage.completion_tokens);
        usage.prompt_tokens_details = newer.prompt_tokens_details.or(usage.prompt_tokens_details.take());
        usage.completion_tokens_details = newer.completion_tokens_details.or(usage.completion_tokens_details.take());
    }

    fn usage(&self) -> Option<Usage> {
        let wire = &self.usage;
        if wire.prompt_tokens.is_none() && wire.completion_tokens.is_none() {
            return None;
        }
        let prompt = wire.prompt_tokens_details.as_ref();
        let completion = wire.completion_tokens_details.as_ref();
        Some(Usage {
            input_tokens: wire.prompt_tokens.unwrap_or(0),
            output_tokens: wire.completion_tokens.unwrap_or(0),
            cached_input_tokens: prompt.and_then(|details| details.cached_tokens).unwrap_or(0),
            reasoning_tokens: completion.and_then(|details| details.reasoning_tokens).unwrap_or(0),
        })
    }
}
