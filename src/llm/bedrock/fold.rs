//! The events of a Converse stream, folded. Blocks are known by their index; only calls announce their beginning.
//! `messageStop` says why the model stopped, and `metadata` behind it what was used: the answer is complete when both are
//! there, or when the body ends after the first.

use std::collections::BTreeMap;

use serde_json::value::to_raw_value;

use super::{block, event};
use crate::agent::ports::llm::{ProviderError, ProviderErrorKind};
use crate::chat::message::Replay;
use crate::chat::stream::{CallSlot, FinishReason, ReplayOn, StreamEvent, Usage};
use crate::llm::answer::{self, Flow, malformed, read};
use crate::llm::failure;

/// An answer so far.
#[derive(Debug, Default)]
pub(super) struct Fold {
    /// The calls that are open, by the index of their blocks.
    calls: BTreeMap<u64, CallSlot>,
    next_slot: u32,
    /// The index of the thought that came last, and its signature so far; `None` once something else came.
    thought: Option<(u64, String)>,
    /// The block of the newest event: of events that have no index.
    newest: u64,
    /// Why the model stopped, once it has; or what it has done wrong.
    reason: Option<Result<FinishReason, &'static str>>,
    has_metadata: bool,
    usage: Option<Usage>,
}

impl answer::Fold for Fold {
    fn push(&mut self, frame: &str, events: &mut Vec<StreamEvent>) -> Result<Flow, ProviderError> {
        let (head, json) = frame.split_once('\n').unwrap_or((frame, ""));
        let (kind, name) = head.split_once(' ').unwrap_or((head, ""));
        match (kind, name) {
            ("event", "contentBlockStart") => self.start_block(read(json)?, events)?,
            ("event", "contentBlockDelta") => self.extend_block(read(json)?, events)?,
            ("event", "contentBlockStop") => self.stop_block(&read(json)?, events)?,
            ("event", "messageStop") => {
                self.sign(events)?;
                self.reason = Some(reason(&read(json)?));
            }
            ("event", "metadata") => {
                let metadata: event::Metadata = read(json)?;
                self.usage = metadata.usage.as_ref().and_then(usage).or(self.usage);
                self.has_metadata = true;
            }
            ("exception" | "error", name) => return Err(failure::exception(name, json)),
            // `messageStart`, and what does not exist yet.
            (_, _) => {}
        }
        match self.reason.filter(|_| self.has_metadata) {
            Some(reason) => {
                self.end(reason, events)?;
                Ok(Flow::Done)
            }
            None => Ok(Flow::More),
        }
    }

    fn finish(&mut self, tail: &str, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        answer::check_tail(tail)?;
        self.end(self.reason.ok_or_else(answer::truncated)?, events)
    }
}

impl Fold {
    /// The answer has ended. What was used for a fault is told too.
    fn end(
        &self,
        reason: Result<FinishReason, &'static str>,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), ProviderError> {
        match reason {
            Ok(reason) => {
                events.push(StreamEvent::Finished { reason, usage: self.usage });
                Ok(())
            }
            Err(fault) => {
                events.extend(self.usage.map(StreamEvent::Used));
                Err(ProviderError::new(ProviderErrorKind::ModelFault, format!("stop reason {fault}")))
            }
        }
    }

    fn start_block(&mut self, event: event::BlockStart, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        self.newest = event.content_block_index.unwrap_or_else(|| self.newest.saturating_add(1));
        self.sign(events)?;
        let Some(call) = event.start.and_then(|start| start.tool_use) else { return Ok(()) };
        let slot = CallSlot(self.next_slot);
        self.next_slot += 1;
        let Some(name) = call.name.filter(|name| !name.is_empty()) else {
            return Err(malformed("a tool call without a name"));
        };
        self.calls.insert(self.newest, slot);
        events.push(StreamEvent::ToolCallStarted { slot, id: call.tool_use_id, name });
        Ok(())
    }

    fn extend_block(&mut self, event: event::BlockDelta, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        let index = event.content_block_index.unwrap_or(self.newest);
        self.newest = index;
        if self.thought.as_ref().is_some_and(|(thought, _)| *thought != index) {
            self.sign(events)?;
        }
        let Some(delta) = event.delta else { return Ok(()) };
        if let Some(thought) = delta.reasoning_content {
            self.think(index, thought, events)?;
        }
        if let Some(text) = delta.text.filter(|text| !text.is_empty()) {
            self.sign(events)?;
            events.push(StreamEvent::Text(text));
        }
        let json = delta.tool_use.and_then(|call| call.input).filter(|json| !json.is_empty());
        if let (Some(json), Some(slot)) = (json, self.calls.get(&index)) {
            events.push(StreamEvent::ToolCallInput { slot: *slot, json });
        }
        Ok(())
    }

    fn think(
        &mut self,
        index: u64,
        delta: event::ReasoningDelta,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), ProviderError> {
        if let Some(redacted) = delta.redacted_content {
            self.sign(events)?;
            // Must go back even though only the vendor can read it.
            let data = Replay::new(to_raw_value(&block::Redacted::new(redacted)).map_err(malformed)?);
            events.push(StreamEvent::Replay { on: ReplayOn::Alone, data });
        }
        if let Some(text) = delta.text.filter(|text| !text.is_empty()) {
            self.thought.get_or_insert_with(|| (index, String::new()));
            events.push(StreamEvent::Thinking(text));
        }
        if let Some(piece) = delta.signature {
            let (_, signature) = self.thought.get_or_insert_with(|| (index, String::new()));
            signature.push_str(&piece);
        }
        Ok(())
    }

    fn stop_block(&mut self, event: &event::BlockStop, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        let index = event.content_block_index.unwrap_or(self.newest);
        self.calls.remove(&index);
        match self.thought.as_ref().is_some_and(|(thought, _)| *thought == index) {
            true => self.sign(events),
            false => Ok(()),
        }
    }

    /// Ends the thought that is open: its signature belongs to what came just before.
    fn sign(&mut self, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        if let Some((_, signature)) = self.thought.take().filter(|(_, signature)| !signature.is_empty()) {
            let data = Replay::new(to_raw_value(&signature).map_err(malformed)?);
            events.push(StreamEvent::Replay { on: ReplayOn::Thinking, data });
        }
        Ok(())
    }
}

fn reason(event: &event::MessageStop) -> Result<FinishReason, &'static str> {
    Ok(match event.stop_reason.as_deref() {
        Some("max_tokens" | "model_context_window_exceeded") => FinishReason::Length,
        Some("guardrail_intervened" | "content_filtered") => FinishReason::ContentFilter,
        Some("refusal") => FinishReason::Refusal,
        Some("malformed_model_output") => return Err("malformed_model_output"),
        Some("malformed_tool_use") => return Err("malformed_tool_use"),
        // `end_turn`, `tool_use`, `stop_sequence`.
        Some(_) | None => FinishReason::Stop,
    })
}

fn usage(wire: &event::Usage) -> Option<Usage> {
    if wire.input_tokens.is_none() && wire.output_tokens.is_none() {
        return None;
    }
    let cached = wire.cache_read_input_tokens.unwrap_or(0);
    let cache_written = wire.cache_write_input_tokens.unwrap_or(0);
    Some(Usage {
        input_tokens: wire.input_tokens.unwrap_or(0).saturating_add(cache_written).saturating_add(cached),
        output_tokens: wire.output_tokens.unwrap_or(0),
        cached_input_tokens: cached,
        reasoning_tokens: 0,
    })
}
