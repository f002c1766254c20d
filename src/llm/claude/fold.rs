//! The Messages API's events, folded. Blocks are told apart by their index, so the arguments of parallel calls may
//! interleave; `message_stop` ends the answer.

use std::collections::HashMap;

use serde_json::value::to_raw_value;

use super::wire;
use crate::agent::ports::llm::{ProviderError, ProviderErrorKind};
use crate::chat::message::Replay;
use crate::chat::stream::{CallSlot, FinishReason, ReplayOn, StreamEvent, Usage};
use crate::llm::answer::{self, Flow, malformed, read};
use crate::llm::failure;

/// An answer so far.
#[derive(Debug, Default)]
pub(super) struct Fold {
    message_id: Option<String>,
    /// The blocks that are open, by index.
    blocks: HashMap<u64, Block>,
    next_slot: u32,
    stop_reason: Option<String>,
    usage: wire::Usage,
}

/// A block that is open.
#[derive(Debug)]
enum Block {
    /// Of a kind that has nothing to remember.
    Plain,
    Thinking {
        signature: String,
    },
    Call {
        slot: CallSlot,
        /// Arguments that came with the block's beginning; a stream of them, if any, says the same again.
        whole_input: Option<String>,
    },
}

impl answer::Fold for Fold {
    fn push(&mut self, frame: &str, events: &mut Vec<StreamEvent>) -> Result<Flow, ProviderError> {
        let event: wire::Event<'_> = read(frame)?;
        match event.kind.as_deref() {
            Some("message_start") => self.start(read(frame)?)?,
            Some("content_block_start") => self.start_block(read(frame)?, events)?,
            Some("content_block_delta") => self.extend_block(read(frame)?, events),
            Some("content_block_stop") => self.stop_block(read(frame)?, events)?,
            Some("message_delta") => self.update(read(frame)?),
            Some("message_stop") => {
                let finished = self.finished()?;
                self.close_calls(events);
                events.push(finished);
                return Ok(Flow::Done);
            }
            Some("error") => {
                let error: wire::ErrorEvent = read(frame)?;
                return Err(match error.error {
                    Some(error) => error.into_error(),
                    None => malformed("an error event without an error"),
                });
            }
            // Pings, and kinds of event that do not exist yet. A gateway's own error has no type at all.
            Some(_) | None => {
                if let Some(error) = read::<wire::ErrorEvent>(frame)?.error {
                    return Err(error.into_error());
                }
            }
        }
        Ok(Flow::More)
    }

    fn finish(&mut self, tail: &str, _events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        Err(failure::error_in(tail).unwrap_or_else(answer::truncated))
    }
}

impl Fold {
    fn start(&mut self, event: wire::MessageStart) -> Result<(), ProviderError> {
        let Some(message) = event.message else { return Ok(()) };
        if self.message_id.is_some() && self.message_id != message.id {
            return Err(malformed("a second message began inside the first"));
        }
        self.message_id = self.message_id.take().or(message.id);
        self.merge(message.usage);
        Ok(())
    }

    fn start_block(&mut self, event: wire::BlockStart<'_>, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        let Some(block) = event.content_block else { return Ok(()) };
        let open = match block.kind.as_deref() {
            Some("text") => {
                events.extend(block.text.map(StreamEvent::Text));
                Block::Plain
            }
            Some("thinking") => {
                events.extend(block.thinking.map(StreamEvent::Thinking));
                Block::Thinking { signature: block.signature.unwrap_or_default() }
            }
            Some("redacted_thinking") => {
                // Comes whole, and must go back even though nobody here can read it.
                if let Some(data) = block.data {
                    let data = Replay::new(to_raw_value(&wire::RedactedThinking { data }).map_err(malformed)?);
                    events.push(StreamEvent::Replay { on: ReplayOn::Alone, data });
                }
                Block::Plain
            }
            Some("tool_use") => {
                let slot = CallSlot(self.next_slot);
                self.next_slot += 1;
                let Some(name) = block.name.filter(|name| !name.is_empty()) else {
                    return Err(malformed("a tool call without a name"));
                };
                events.push(StreamEvent::ToolCallStarted { slot, id: block.id, name });
                let whole_input = block.input.map(|input| input.get().to_owned()).filter(|input| input != "{}");
                Block::Call { slot, whole_input }
            }
            // The server's own tools and kinds that do not exist yet.
            Some(_) | None => Block::Plain,
        };
        self.blocks.insert(event.index, open);
        Ok(())
    }

    fn extend_block(&mut self, event: wire::BlockDelta, events: &mut Vec<StreamEvent>) {
        let Some(delta) = event.delta else { return };
        match (delta, self.blocks.get_mut(&event.index)) {
            (wire::Delta::Text { text }, _) => events.extend(text.map(StreamEvent::Text)),
            (wire::Delta::Thinking { thinking }, _) => events.extend(thinking.map(StreamEvent::Thinking)),
            (wire::Delta::Signature { signature: Some(piece) }, Some(Block::Thinking { signature })) => {
                signature.push_str(&piece);
            }
            (wire::Delta::InputJson { partial_json: Some(json) }, Some(Block::Call { slot, whole_input })) => {
                if !json.is_empty() {
                    *whole_input = None;
                    events.push(StreamEvent::ToolCallInput { slot: *slot, json });
                }
            }
            (wire::Delta::Signature { .. } | wire::Delta::InputJson { .. } | wire::Delta::Other, _) => {}
        }
    }

    fn stop_block(&mut self, event: wire::BlockStop, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        match self.blocks.remove(&event.index) {
            Some(Block::Thinking { signature }) if !signature.is_empty() => {
                let data = Replay::new(to_raw_value(&signature).map_err(malformed)?);
                events.push(StreamEvent::Replay { on: ReplayOn::Thinking, data });
            }
            Some(Block::Call { slot, whole_input: Some(json) }) => {
                events.push(StreamEvent::ToolCallInput { slot, json });
            }
            Some(Block::Plain | Block::Thinking { .. } | Block::Call { .. }) | None => {}
        }
        Ok(())
    }

    /// Gateways that send a call's input with its beginning may leave out its end.
    fn close_calls(&mut self, events: &mut Vec<StreamEvent>) {
        for block in self.blocks.values_mut() {
            if let Block::Call { slot, whole_input } = block
                && let Some(json) = whole_input.take()
            {
                events.push(StreamEvent::ToolCallInput { slot: *slot, json });
            }
        }
    }

    fn update(&mut self, event: wire::MessageDelta) {
        if let Some(reason) = event.delta.and_then(|delta| delta.stop_reason) {
            self.stop_reason = Some(reason);
        }
        self.merge(event.usage);
    }

    fn merge(&mut self, newer: Option<wire::Usage>) {
        let Some(newer) = newer else { return };
        let usage = &mut self.usage;
        usage.input_tokens = newer.input_tokens.or(usage.input_tokens);
        usage.cache_creation_input_tokens = newer.cache_creation_input_tokens.or(usage.cache_creation_input_tokens);
        usage.cache_read_input_tokens = newer.cache_read_input_tokens.or(usage.cache_read_input_tokens);
        usage.output_tokens = newer.output_tokens.or(usage.output_tokens);
        usage.output_tokens_details = newer.output_tokens_details.or(usage.output_tokens_details.take());
    }

    fn finished(&self) -> Result<StreamEvent, ProviderError> {
        let reason = match self.stop_reason.as_deref() {
            Some("max_tokens" | "model_context_window_exceeded") => FinishReason::Length,
            Some("refusal") => FinishReason::Refusal,
            // Only the server's own tools pause a turn, and none are offered.
            Some("pause_turn") => return Err(ProviderError::new(ProviderErrorKind::Paused, "stop reason pause_turn")),
            Some(_) | None => FinishReason::Stop,
        };
        Ok(StreamEvent::Finished { reason, usage: self.usage() })
    }

    fn usage(&self) -> Option<Usage> {
        let wire = &self.usage;
        if wire.input_tokens.is_none() && wire.output_tokens.is_none() {
            return None;
        }
        let cached = wire.cache_read_input_tokens.unwrap_or(0);
        let cache_written = wire.cache_creation_input_tokens.unwrap_or(0);
        Some(Usage {
            input_tokens: wire.input_tokens.unwrap_or(0).saturating_add(cache_written).saturating_add(cached),
            output_tokens: wire.output_tokens.unwrap_or(0),
            cached_input_tokens: cached,
            reasoning_tokens: wire.output_tokens_details.as_ref().and_then(|d| d.thinking_tokens).unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::llm::answer::Fold as _;

    /// What a stream says, one line per event.
    fn said(frames: &[Value]) -> Vec<String> {
        let (mut fold, mut events) = (Fold::default(), Vec::new());
        for frame in frames {
            fold.push(&frame.to_string(), &mut events).unwrap();
        }
        let line = |event: StreamEvent| match event {
            StreamEvent::Text(text) => format!("text {text}"),
            StreamEvent::Thinking(text) => format!("thinking {text}"),
            StreamEvent::ToolCallStarted { slot, id, name } => format!("call {} {id:?} {name}", slot.0),
            StreamEvent::ToolCallInput { slot, json } => format!("input {} {json}", slot.0),
            StreamEvent::Replay { on, data } => format!("replay {on:?} {}", data.raw()),
            StreamEvent::Finished { reason, .. } => format!("finished {reason:?}"),
        };
        events.into_iter().map(line).collect()
    }

    fn start(index: u64, block: Value) -> Value {
        json!({"type": "content_block_start", "index": index, "content_block": block})
    }

    fn delta(index: u64, delta: Value) -> Value {
        json!({"type": "content_block_delta", "index": index, "delta": delta})
    }

    fn stop(index: u64) -> Value {
        json!({"type": "content_block_stop", "index": index})
    }

    #[test]
    fn calls_that_interleave_are_told_apart_by_their_index() {
        let piece = |json: &str| json!({"type": "input_json_delta", "partial_json": json});
        let frames = [
            start(0, json!({"type": "tool_use", "id": "a", "name": "f", "input": {}})),
            start(1, json!({"type": "tool_use", "id": "b", "name": "g", "input": {}})),
            delta(1, piece("{\"x\":")),
            delta(0, piece("")),
            delta(0, piece("{}")),
            start(2, json!({"type": "text", "text": ""})),
            delta(2, json!({"type": "text_delta", "text": "hm"})),
            delta(1, piece("1}")),
            stop(0),
            stop(2),
            stop(1),
            json!({"type": "message_stop"}),
        ];
        let expected = [
            "call 0 Some(\"a\") f",
            "call 1 Some(\"b\") g",
            "input 1 {\"x\":",
            "input 0 {}",
            "text ",
            "text hm",
            "input 1 1}",
            "finished Stop",
        ];
        assert_eq!(said(&frames), expected);
    }

    #[test]
    fn what_came_with_a_blocks_beginning_counts_though_its_end_never_comes() {
        let frames = [
            start(0, json!({"type": "thinking", "thinking": "", "signature": "S"})),
            stop(0),
            start(1, json!({"type": "redacted_thinking"})),
            start(2, json!({"type": "tool_use", "id": "a", "name": "f", "input": {"q": 1}})),
            json!({"type": "message_stop"}),
        ];
        let expected =
            ["thinking ", "replay Thinking \"S\"", "call 0 Some(\"a\") f", "input 0 {\"q\":1}", "finished Stop"];
        assert_eq!(said(&frames), expected);
    }
}
