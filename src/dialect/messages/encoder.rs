//! Blocks as events of a stream: each with its name twice, `message_start` once, blocks one after the other, and one end.

use std::fmt::Write;

use bytes::BytesMut;
use serde::Serialize;

use super::block::Block;
use super::blocks::{Blocks, End, Kind, Piece, Shows};
use super::message::{About, ErrorBody, MessageBody, UsageBody, error_of};
use crate::chat::event::AgentEvent;
use crate::chat::stream::Usage;
use crate::dialect::{Encoder, RunIds, frame};

const START: &str = "content_block_start";
const DELTA: &str = "content_block_delta";
const STOP: &str = "content_block_stop";

/// A run's events as this protocol's.
pub(super) struct MessageEncoder {
    blocks: Blocks,
    writer: Writer,
}

/// Writes what is told.
struct Writer {
    about: About,
    /// The request that began the run.
    request: String,
    /// What stands before each piece of the open text.
    opening: String,
}

#[derive(Serialize)]
struct MessageStart<'a> {
    r#type: &'static str,
    message: MessageBody<'a>,
}

#[derive(Serialize)]
struct BlockStart<'a> {
    r#type: &'static str,
    index: u32,
    content_block: &'a Block,
}

#[derive(Serialize)]
struct BlockDelta<'a> {
    r#type: &'static str,
    index: u32,
    delta: Delta<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Delta<'a> {
    SignatureDelta { signature: &'a str },
    InputJsonDelta { partial_json: &'a str },
}

#[derive(Serialize)]
struct BlockStop {
    r#type: &'static str,
    index: u32,
}

#[derive(Serialize)]
struct MessageDelta {
    r#type: &'static str,
    delta: Stopped,
    usage: UsageBody,
}

#[derive(Serialize)]
struct Stopped {
    stop_reason: &'static str,
    stop_sequence: Option<()>,
}

/// An event that says nothing but its name.
#[derive(Serialize)]
struct Bare {
    r#type: &'static str,
}

impl MessageEncoder {
    /// The events of a run.
    pub(super) fn new(of: &RunIds, about: About, shows: Shows) -> Self {
        let writer = Writer { about, request: of.request.clone(), opening: String::new() };
        Self { blocks: Blocks::new(of, shows), writer }
    }
}

impl Writer {
    fn opened(&self, out: &mut BytesMut) {
        let r#type = "message_start";
        let message = self.about.body(&[], None, Usage::default());
        frame::write(out, None, r#type, &MessageStart { r#type, message });
    }

    fn piece(&mut self, out: &mut BytesMut, piece: Piece<'_>) {
        match piece {
            Piece::Begins(index, kind) => {
                let (block, delta, field) = match kind {
                    Kind::Words => (Block::Text { text: String::new() }, "text_delta", "text"),
                    Kind::Thought => {
                        let block = Block::Thinking { thinking: String::new(), signature: String::new() };
                        (block, "thinking_delta", "thinking")
                    }
                };
                start(out, index, &block);
                self.opening.clear();
                // Writing to a text never fails.
                let _ =
                    write!(self.opening, r#"{{"type":"{DELTA}","index":{index},"delta":{{"type":"{delta}","{field}":"#);
            }
            Piece::Text(text) => frame::write_nested_text(out, DELTA, &self.opening, text),
            Piece::Ends(index, signature) => {
                if let Some(signature) = &signature {
                    delta(out, index, Delta::SignatureDelta { signature });
                }
                stop(out, index);
            }
            // Clients put arguments together from pieces, and want none at the beginning.
            Piece::Whole(index, Block::ToolUse { id, name, input }) => {
                start(out, index, &Block::ToolUse { id, name, input: serde_json::Map::new() });
                // Maps of JSON values always serialise.
                let partial_json = serde_json::to_string(&input).unwrap_or_else(|_| "{}".to_owned());
                delta(out, index, Delta::InputJsonDelta { partial_json: &partial_json });
                stop(out, index);
            }
            Piece::Whole(index, block) => {
                start(out, index, &block);
                stop(out, index);
            }
        }
    }

    fn end(&self, out: &mut BytesMut, end: &End, usage: Usage) {
        match end {
            End::Stopped(stop_reason) => {
                let r#type = "message_delta";
                let delta = Stopped { stop_reason, stop_sequence: None };
                frame::write(out, None, r#type, &MessageDelta { r#type, delta, usage: UsageBody::new(usage) });
                bare(out, "message_stop");
            }
            End::Failed(failure) => {
                let (r#type, message) = error_of(failure);
                frame::write(out, None, "error", &ErrorBody::new(r#type, &message, &self.request));
            }
        }
    }
}

fn start(out: &mut BytesMut, index: u32, content_block: &Block) {
    frame::write(out, None, START, &BlockStart { r#type: START, index, content_block });
}

fn delta(out: &mut BytesMut, index: u32, delta: Delta<'_>) {
    frame::write(out, None, DELTA, &BlockDelta { r#type: DELTA, index, delta });
}

fn stop(out: &mut BytesMut, index: u32) {
    frame::write(out, None, STOP, &BlockStop { r#type: STOP, index });
}

fn bare(out: &mut BytesMut, r#type: &'static str) {
    frame::write(out, None, r#type, &Bare { r#type });
}

impl Encoder for MessageEncoder {
    fn opened(&mut self, out: &mut BytesMut) {
        self.writer.opened(out);
    }

    /// These clients never come back to a stream, so events have no numbers here.
    fn encode(&mut self, _id: Option<u64>, event: &AgentEvent, out: &mut BytesMut) {
        let Self { blocks, writer } = self;
        if let Some(end) = blocks.hear(event, &mut |piece| writer.piece(out, piece)) {
            writer.end(out, &end, blocks.usage());
        }
    }

    fn lost(&mut self, out: &mut BytesMut) {
        let Self { blocks, writer } = self;
        let end = blocks.lose(&mut |piece| writer.piece(out, piece));
        writer.end(out, &end, blocks.usage());
    }

    fn keep_alive(&mut self, out: &mut BytesMut) {
        bare(out, "ping");
    }

    /// A stream that goes on elsewhere is over for these clients.
    fn draining(&mut self, come_back_ms: Option<u32>, out: &mut BytesMut) {
        match come_back_ms {
            Some(_) => self.lost(out),
            None => bare(out, "ping"),
        }
    }
}
