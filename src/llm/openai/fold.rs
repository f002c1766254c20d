//! The chunks of chat completions, folded. A finish reason is the terminal marker; usage and even an error may follow it,
//! so the last event waits for `[DONE]` or the body's end, whichever the server sends.

use super::calls::Calls;
use super::chunk::{Chunk, Content, ContentPart, Delta};
use super::reasoning::{Details, Mark};
use super::usage::Usage;
use crate::agent::ports::llm::{ProviderError, ProviderErrorKind};
use crate::chat::stream::{FinishReason, ReplayOn, StreamEvent};
use crate::llm::answer::{self, Flow, read};
use crate::llm::failure::ErrorField;
use crate::llm::google;
use crate::llm::lenient;
use crate::llm::think::ThinkTags;

/// An answer so far.
#[derive(Debug, Default)]
pub(super) struct Fold {
    calls: Calls,
    finish_reason: Option<String>,
    usage: Usage,
    /// Reasoning that the server has left in the text.
    tags: ThinkTags,
    details: Details,
    /// `LiteLLM`'s blocks of Claude's, which Claude wants back.
    thinking_blocks: Details,
    /// How the newest piece came, if that is reasoning and not yet marked.
    unmarked: Option<Mark<'static>>,
    /// Reasoning has come as plain text: the details only repeat it.
    has_plain_reasoning: bool,
    has_chunks: bool,
    has_deltas: bool,
}

impl answer::Fold for Fold {
    fn push(&mut self, frame: &str, events: &mut Vec<StreamEvent>) -> Result<Flow, ProviderError> {
        if frame.trim() == "[DONE]" {
            self.finish("", events)?;
            return Ok(Flow::Done);
        }
        let mended;
        let mut chunk: Chunk<'_> = match read(frame) {
            Ok(chunk) => chunk,
            Err(error) => {
                mended = lenient::mended(frame).ok_or(error)?;
                read(&mended)?
            }
        };
        self.has_chunks = true;
        let error = chunk.take_error();
        if error.is_none() && chunk.is_error() {
            return Err(read::<ErrorField>(frame)?.into_error());
        }
        let mut has_usage = false;
        for usage in chunk.usages() {
            self.usage.merge(usage);
            has_usage = true;
        }
        if has_usage {
            events.extend(self.usage.counts().map(StreamEvent::Used));
        }
        for choice in chunk.choices.into_iter().flatten() {
            // A message behind deltas only repeats them.
            let message = choice.message.filter(|_| !self.has_deltas);
            self.has_deltas |= choice.delta.is_some();
            if let Some(delta) = choice.delta.or(message.map(|message| *message)) {
                self.push_delta(delta, events)?;
            }
            // A later null or empty reason does not take an earlier one back.
            self.finish_reason = choice.finish_reason.filter(|r| !r.is_empty()).or(self.finish_reason.take());
        }
        match error {
            Some(error) => {
                self.tags.close(events);
                Err(error.into_error())
            }
            None if self.finish_reason.is_some() => Ok(Flow::Ending),
            None => Ok(Flow::More),
        }
    }

    fn finish(&mut self, tail: &str, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        // First of all, so that a bad end loses no text.
        self.tags.close(events);
        answer::check_tail(tail)?;
        let Some(label) = self.finish_reason.as_deref() else {
            // `[DONE]` alone proves nothing: gateways say it behind a broken answer too.
            return Err(if self.has_chunks { answer::truncated() } else { nothing() });
        };
        let reason = reason(label)?;
        if reason == FinishReason::Stop && self.calls.has_nameless() {
            return Err(ProviderError::new(ProviderErrorKind::ModelFault, "a tool call without a name"));
        }
        self.calls.finish(events);
        self.mark_reasoning(events)?;
        // Signatures may come behind the text they sign, so only now the blocks are whole.
        let details = self.details.take()?;
        let thinking_blocks = self.thinking_blocks.take()?;
        let mark = match (&details, &thinking_blocks) {
            (Some(details), _) => Some(Mark::ReasoningDetails(details)),
            (None, Some(blocks)) => Some(Mark::ThinkingBlocks(blocks)),
            (None, None) => None,
        };
        if let Some(mark) = mark {
            events.push(StreamEvent::Replay { on: ReplayOn::Thinking, data: mark.to_replay()? });
        }
        events.push(StreamEvent::Finished { reason, usage: self.usage.counts() });
        Ok(())
    }
}

/// What a finish reason means; Google's layer for this protocol passes its own ones on, some behind a colon.
fn reason(label: &str) -> Result<FinishReason, ProviderError> {
    let class = label.split_once(':').map_or(label, |(class, _)| class);
    let fault = |kind| Err(ProviderError::new(kind, format!("finish reason {label}")));
    match class.to_ascii_lowercase().as_str() {
        // The last one, and `sensitive`, are Z.ai's.
        "length" | "model_length" | "model_context_window_exceeded" => Ok(FinishReason::Length),
        "content_filter" | "sensitive" => Ok(FinishReason::ContentFilter),
        "refusal" => Ok(FinishReason::Refusal),
        "function_call_filter" => fault(ProviderErrorKind::ModelFault),
        // vLLM and SGLang abort an answer at a request to abort, or when memory runs out.
        "error" | "network_error" | "insufficient_system_resource" | "abort" | "timeout" | "failed" | "cancelled" => {
            fault(ProviderErrorKind::Unavailable { retry_after: None })
        }
        // `stop` with calls and `tool_calls` without any are both common: the calls themselves decide.
        _ => google::google_finish(class),
    }
}

/// The error of a success that says nothing at all.
fn nothing() -> ProviderError {
    let detail =
        "the answer has not one chunk; llama-cpp-python answers so when the conversation is too long for the model";
    ProviderError::new(ProviderErrorKind::Truncated, detail)
}

impl Fold {
    fn push_delta(&mut self, mut delta: Delta<'_>, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        self.push_reasoning(&mut delta, events)?;
        match delta.content {
            Some(Content::Text(text)) => self.push_text(text, events)?,
            Some(Content::Parts(parts)) => {
                for part in *parts {
                    self.push_part(part, events)?;
                }
            }
            None => {}
        }
        // A refusal is what the user gets to read.
        self.push_text(delta.refusal.unwrap_or_default(), events)?;
        for call in delta.tool_calls.into_iter().flat_map(|calls| *calls) {
            self.tags.close(events);
            self.mark_reasoning(events)?;
            self.calls.push(call, events)?;
        }
        Ok(())
    }

    fn push_reasoning(&mut self, delta: &mut Delta<'_>, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        let has_text = |text: &String| !text.is_empty();
        let detailed = delta.reasoning_details.map(|list| self.details.push(list)).transpose()?;
        let blocks = delta.thinking_blocks.map(|list| self.thinking_blocks.push(list)).transpose()?;
        // Some servers send the same reasoning under both names.
        let plain = match (delta.reasoning_content.take().filter(has_text), delta.reasoning.take().filter(has_text)) {
            (Some(text), _) => Some((text, Mark::ReasoningContent)),
            (None, Some(text)) => Some((text, Mark::Reasoning)),
            (None, None) => None,
        };
        self.has_plain_reasoning |= plain.is_some();
        let text = match plain {
            Some((text, mark)) => {
                self.unmarked = Some(mark);
                text
            }
            None if self.has_plain_reasoning => return Ok(()),
            None => detailed.or(blocks).unwrap_or_default(),
        };
        self.push_thinking(text, events);
        Ok(())
    }

    fn push_thinking(&mut self, text: String, events: &mut Vec<StreamEvent>) {
        if !text.is_empty() {
            self.tags.interrupt(events);
            events.push(StreamEvent::Thinking(text));
        }
    }

    fn push_text(&mut self, text: String, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        if text.is_empty() {
            return Ok(());
        }
        self.mark_reasoning(events)?;
        self.tags.push(text, events);
        Ok(())
    }

    fn push_part(&mut self, part: ContentPart, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        match (part.kind.as_deref(), part.thinking.or(part.summary)) {
            (Some("thinking" | "reasoning") | None, Some(Content::Text(text))) => self.push_thinking(text, events),
            (Some("thinking" | "reasoning") | None, Some(Content::Parts(parts))) => {
                let is_text = |part: &ContentPart| matches!(part.kind.as_deref(), Some("text" | "summary_text") | None);
                let texts = parts.into_iter().filter(is_text).filter_map(|part| part.text);
                texts.for_each(|text| self.push_thinking(text, events));
            }
            (Some("text") | None, _) => self.push_text(part.text.unwrap_or_default(), events)?,
            // Kinds that say nothing to a user, and those that do not exist yet.
            (Some(_), _) => {}
        }
        Ok(())
    }

    /// Marks the reasoning before this point with the way it came, so that the next request can send it back in the
    /// same one. Details are marked on their own, at the end.
    fn mark_reasoning(&mut self, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        if let Some(mark) = self.unmarked.take().filter(|_| self.details.is_empty() && self.thinking_blocks.is_empty())
        {
            events.push(StreamEvent::Replay { on: ReplayOn::Thinking, data: mark.to_replay()? });
        }
        Ok(())
    }
}
