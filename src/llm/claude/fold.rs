//! The Messages API's events, folded. Blocks are known by their index, so the arguments of parallel calls may
//! interleave; `message_stop` ends the answer.

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};

use super::{event, wire};
use crate::agent::ports::llm::{ProviderError, ProviderErrorKind};
use crate::chat::message::Replay;
use crate::chat::stream::{CallSlot, FinishReason, ReplayOn, StreamEvent, Usage};
use crate::llm::answer::{self, Flow, arguments_text, malformed, read};
use crate::llm::failure;

/// An answer so far.
#[derive(Debug, Default)]
pub(super) struct Fold {
    message_id: Option<String>,
    /// The blocks that are open, by index.
    blocks: BTreeMap<u64, Block>,
    /// The index of the block that began last.
    newest: u64,
    next_slot: u32,
    /// The tool whose arguments are the answer, where there is one.
    answer_tool: Option<&'static str>,
    stop_reason: Option<String>,
    usage: event::Usage,
}

/// A block that is open.
#[derive(Debug)]
enum Block {
    /// Of a kind that has nothing to remember.
    Plain,
    /// The answer, as the arguments of a tool; those that came with the block's beginning are as of a call.
    Answer { whole_input: Option<String> },
    /// Only the newest block: a signature belongs to the thought that came just before it.
    Thinking { signature: String },
    Call {
        slot: CallSlot,
        /// Arguments that came with the block's beginning; a stream of them, if any, says the same again.
        whole_input: Option<String>,
    },
}

impl answer::Fold for Fold {
    fn push(&mut self, frame: &str, events: &mut Vec<StreamEvent>) -> Result<Flow, ProviderError> {
        let event: event::Event<'_> = read(frame)?;
        match event.kind.as_deref() {
            Some("message_start") => self.start(read(frame)?, events)?,
            Some("content_block_start") => self.start_block(read(frame)?, events)?,
            Some("content_block_delta") => self.extend_block(read(frame)?, events),
            Some("content_block_stop") => self.stop_block(&read(frame)?, events)?,
            Some("message_delta") => self.update(read(frame)?, events),
            Some("message_stop") => {
                let finished = self.finished()?;
                // Gateways may leave out the ends of blocks.
                for block in std::mem::take(&mut self.blocks).into_values() {
                    close(block, events)?;
                }
                events.push(finished);
                return Ok(Flow::Done);
            }
            Some("error") => {
                let error: event::ErrorEvent = read(frame)?;
                return Err(match error.error {
                    Some(error) => error.into_error(),
                    None => malformed("an error event without an error"),
                });
            }
            // Pings, and kinds of event that do not exist yet. A gateway's own error has no type at all.
            Some(_) | None => {
                if let Some(error) = read::<event::ErrorEvent>(frame)?.error {
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
    /// An answer that has not begun, whose text may come as the arguments of `answer_tool`.
    pub(super) fn new(answer_tool: Option<&'static str>) -> Self {
        Self { answer_tool, ..Self::default() }
    }

    fn start(&mut self, event: event::MessageStart, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        let Some(message) = event.message else { return Ok(()) };
        if self.message_id.is_some() && self.message_id != message.id {
            return Err(malformed("a second message began inside the first"));
        }
        self.message_id = self.message_id.take().or(message.id);
        self.merge(message.usage, events);
        Ok(())
    }

    fn start_block(
        &mut self,
        event: event::BlockStart<'_>,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), ProviderError> {
        let Some(block) = event.content_block else { return Ok(()) };
        for open in self.blocks.values_mut().filter(|open| matches!(open, Block::Thinking { .. })) {
            close(std::mem::replace(open, Block::Plain), events)?;
        }
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
                // Comes whole, and must go back even though only the vendor can read it.
                if let Some(data) = block.data {
                    let data = Replay::new(to_raw_value(&wire::RedactedThinking { data }).map_err(malformed)?);
                    events.push(StreamEvent::Replay { on: ReplayOn::Alone, data });
                }
                Block::Plain
            }
            Some("tool_use") if self.answer_tool.is_some() && block.name.as_deref() == self.answer_tool => {
                Block::Answer { whole_input: whole(block.input)? }
            }
            Some("tool_use") => {
                let slot = CallSlot(self.next_slot);
                self.next_slot += 1;
                let Some(name) = block.name.filter(|name| !name.is_empty()) else {
                    return Err(malformed("a tool call without a name"));
                };
                events.push(StreamEvent::ToolCallStarted { slot, id: block.id, name });
                Block::Call { slot, whole_input: whole(block.input)? }
            }
            // The server's own tools and kinds that do not exist yet.
            Some(_) | None => Block::Plain,
        };
        let after_all = || self.blocks.last_key_value().map_or(0, |(last, _)| last.saturating_add(1));
        self.newest = event.index.unwrap_or_else(after_all);
        if let Some(before) = self.blocks.insert(self.newest, open) {
            close(before, events)?;
        }
        Ok(())
    }

    fn extend_block(&mut self, event: event::BlockDelta, events: &mut Vec<StreamEvent>) {
        let Some(delta) = event.delta else { return };
        let is = |kind: &str| delta.kind.as_deref().is_none_or(|known| known == kind);
        events.extend(delta.text.filter(|_| is("text_delta")).map(StreamEvent::Text));
        events.extend(delta.thinking.filter(|_| is("thinking_delta")).map(StreamEvent::Thinking));
        match self.blocks.get_mut(&event.index.unwrap_or(self.newest)) {
            Some(Block::Thinking { signature }) => {
                signature.extend(delta.signature.filter(|_| is("signature_delta")));
            }
            Some(Block::Call { slot, whole_input }) => {
                if let Some(json) = delta.partial_json.filter(|json| !json.is_empty() && is("input_json_delta")) {
                    *whole_input = None;
                    events.push(StreamEvent::ToolCallInput { slot: *slot, json });
                }
            }
            Some(Block::Answer { whole_input }) => {
                if let Some(json) = delta.partial_json.filter(|json| !json.is_empty() && is("input_json_delta")) {
                    *whole_input = None;
                    events.push(StreamEvent::Text(json));
                }
            }
            Some(Block::Plain) | None => {}
        }
    }

    fn stop_block(&mut self, event: &event::BlockStop, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        let block = self.blocks.remove(&event.index.unwrap_or(self.newest));
        block.map_or(Ok(()), |block| close(block, events))
    }

    fn update(&mut self, event: event::MessageDelta, events: &mut Vec<StreamEvent>) {
        if let Some(reason) = event.delta.and_then(|delta| delta.stop_reason) {
            self.stop_reason = Some(reason);
        }
        self.merge(event.usage, events);
    }

    fn merge(&mut self, newer: Option<event::Usage>, events: &mut Vec<StreamEvent>) {
        let Some(newer) = newer else { return };
        let usage = &mut self.usage;
        usage.input_tokens = newer.input_tokens.or(usage.input_tokens);
        usage.cache_creation_input_tokens = newer.cache_creation_input_tokens.or(usage.cache_creation_input_tokens);
        usage.cache_read_input_tokens = newer.cache_read_input_tokens.or(usage.cache_read_input_tokens);
        usage.output_tokens = newer.output_tokens.or(usage.output_tokens);
        let details = newer.output_tokens_details.unwrap_or_default();
        let known = usage.output_tokens_details.get_or_insert_default();
        known.thinking_tokens = details.thinking_tokens.or(known.thinking_tokens);
        events.extend(self.usage().map(StreamEvent::Used));
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

/// Arguments that came whole with a block's beginning; none where they are to come.
fn whole(input: Option<&RawValue>) -> Result<Option<String>, ProviderError> {
    Ok(input.map(arguments_text).transpose()?.filter(|input| input != "{}"))
}

/// Says what only a block's end makes certain.
fn close(block: Block, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
    match block {
        Block::Thinking { signature } if !signature.is_empty() => {
            let data = Replay::new(to_raw_value(&signature).map_err(malformed)?);
            events.push(StreamEvent::Replay { on: ReplayOn::Thinking, data });
        }
        Block::Call { slot, whole_input: Some(json) } => events.push(StreamEvent::ToolCallInput { slot, json }),
        Block::Answer { whole_input: Some(json) } => events.push(StreamEvent::Text(json)),
        Block::Plain | Block::Thinking { .. } | Block::Call { .. } | Block::Answer { .. } => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::llm::answer::Fold as _;

    /// What a stream says, one line per event.
    fn folded(frames: &[Value]) -> Vec<String> {
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
            StreamEvent::Used(usage) => format!("used {} {}", usage.input_tokens, usage.output_tokens),
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
    fn what_was_used_is_reported_as_soon_as_it_is_known() {
        let frames = [
            json!({"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}}),
            json!({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 5}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
            json!({"type": "message_stop"}),
        ];
        assert_eq!(folded(&frames), ["used 9 1", "used 9 5", "finished Stop"]);
    }

    #[test]
    fn calls_that_interleave_are_distinguished_by_their_index() {
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
        assert_eq!(folded(&frames), expected);
    }

    #[test]
    fn the_arguments_of_the_answers_tool_are_the_answer() {
        let piece = |json: &str| json!({"type": "input_json_delta", "partial_json": json});
        let (mut fold, mut events) = (Fold::new(Some("give_answer")), Vec::new());
        for frame in [
            start(0, json!({"type": "tool_use", "id": "a", "name": "find", "input": {"q": 1}})),
            stop(0),
            start(1, json!({"type": "tool_use", "id": "b", "name": "give_answer", "input": {}})),
            delta(1, piece("{\"city\":")),
            delta(1, piece("\"Ulm\"}")),
            start(2, json!({"type": "tool_use", "id": "c", "name": "give_answer", "input": {"whole": true}})),
            stop(2),
            json!({"type": "message_stop"}),
        ] {
            fold.push(&frame.to_string(), &mut events).unwrap();
        }
        let texts = events.iter().filter_map(|event| match event {
            StreamEvent::Text(text) => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(texts.collect::<Vec<_>>(), ["{\"city\":", "\"Ulm\"}", "{\"whole\":true}"]);
        let calls = events.iter().filter(|event| matches!(event, StreamEvent::ToolCallStarted { .. }));
        assert_eq!(calls.count(), 1, "another tool is called as ever");
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
        assert_eq!(folded(&frames), expected);
    }

    #[test]
    fn a_signature_stays_with_its_thought_whenever_the_block_ends() {
        let thought = |signed: bool| {
            let thinking = delta(0, json!({"type": "thinking_delta", "thinking": "hm"}));
            let signature = signed.then(|| delta(0, json!({"type": "signature_delta", "signature": "S"})));
            [start(0, json!({"type": "thinking"})), thinking].into_iter().chain(signature).collect::<Vec<_>>()
        };
        let call = |index: u64| start(index, json!({"type": "tool_use", "id": "a", "name": "f"}));
        let late = delta(0, json!({"type": "signature_delta", "signature": "S"}));
        let end = || json!({"type": "message_stop"});
        let (signed, calls) = (["thinking hm", "replay Thinking \"S\""], ["call 0 Some(\"a\") f"]);
        for (frames, expected, reason) in [
            (
                [thought(true), vec![call(1), stop(0), stop(1), end()]].concat(),
                [&signed[..], &calls].concat(),
                "a late end",
            ),
            ([thought(true), vec![call(1), end()]].concat(), [&signed[..], &calls].concat(), "no end"),
            ([thought(true), vec![end()]].concat(), signed.to_vec(), "no end and nothing after it"),
            ([thought(true), vec![call(0), end()]].concat(), [&signed[..], &calls].concat(), "an index twice"),
            (
                [thought(false), vec![call(1), late, stop(0), end()]].concat(),
                [&signed[..1], &calls].concat(),
                "too late",
            ),
        ] {
            assert_eq!(folded(&frames), [expected, vec!["finished Stop"]].concat(), "{reason}");
        }
    }

    #[test]
    fn calls_whose_ends_are_missing_have_their_inputs_in_order() {
        let call = |index: u64, input: Value| start(index, json!({"type": "tool_use", "name": "f", "input": input}));
        let mut frames: Vec<Value> = (0..9).map(|index| call(index, json!({"q": index}))).collect();
        frames.push(call(9, json!("{\"q\":9}")));
        frames.push(json!({"type": "message_stop"}));
        let calls = (0..10).map(|slot| format!("call {slot} None f"));
        let inputs = (0..10).map(|slot| format!("input {slot} {{\"q\":{slot}}}"));
        let expected: Vec<String> = calls.chain(inputs).chain(["finished Stop".to_owned()]).collect();
        assert_eq!(folded(&frames), expected);
    }

    #[test]
    fn no_odd_field_loses_the_answer() {
        let frames = [
            json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 3.5, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": null, "content_block": {"type": "text", "text": "a"}}),
            json!({"type": "content_block_delta", "index": null, "delta": {"text": "b"}}),
            json!({"type": "content_block_start", "content_block": {"type": "tool_use", "name": "f"}}),
            json!({"type": "content_block_delta", "delta": {"partial_json": "{}"}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "other_delta", "text": "no"}}),
            json!({"type": "content_block_stop", "index": null}),
            json!({"type": "message_delta", "usage": "many"}),
            json!({"type": "message_stop"}),
        ];
        let expected = ["used 0 1", "text a", "text b", "call 0 None f", "input 0 {}", "finished Stop"];
        assert_eq!(folded(&frames), expected, "a count that cannot be read is none");
    }

    #[test]
    fn absent_counts_erase_nothing() {
        let usage = |usage: Value| json!({"type": "message_delta", "usage": usage});
        let mut fold = Fold::default();
        for frame in [
            usage(json!({"input_tokens": 9, "output_tokens": 5, "output_tokens_details": {"thinking_tokens": 4}})),
            usage(json!({"output_tokens": 6, "output_tokens_details": {}})),
            usage(json!({"input_tokens": -1, "output_tokens_details": null})),
        ] {
            fold.push(&frame.to_string(), &mut Vec::new()).unwrap();
        }
        let expected = Usage { input_tokens: 9, output_tokens: 6, cached_input_tokens: 0, reasoning_tokens: 4 };
        assert_eq!(fold.usage(), Some(expected));
    }
}
