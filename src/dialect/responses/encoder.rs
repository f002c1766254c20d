//! Items as events of a stream: numbered from 0 on, each with its name twice, and one end. Whoever comes back gets the
//! same again, without what it has.

use bytes::{Bytes, BytesMut};
use serde::Serialize;

use super::answer::Output;
use super::item::{Item, Part, SummaryPart};
use super::items::{End, Items, Kind, Piece, Spot};
use super::response::{About, ResponseBody, Standing};
use crate::chat::event::AgentEvent;
use crate::dialect::reply::NOT_BEGUN;
use crate::dialect::{Encoder, RunIds, frame};

/// A run's events as this protocol's.
pub(super) struct ResponseEncoder {
    items: Items,
    writer: Writer,
}

/// Writes what is told, numbered.
struct Writer {
    about: About,
    output: Output,
    /// The number of the next event.
    next: u64,
    /// The number of the first event that its reader has not.
    from: u64,
    /// What stands before each piece of the open text.
    opening: String,
}

#[derive(Serialize)]
struct Numbered<'a, T> {
    r#type: &'static str,
    sequence_number: u64,
    #[serde(flatten)]
    fields: &'a T,
}

#[derive(Serialize)]
struct Whole<'a> {
    response: ResponseBody<'a>,
}

#[derive(Serialize)]
struct OfItem<'a> {
    output_index: u32,
    item: &'a Item,
}

#[derive(Serialize)]
struct At<'a, T> {
    item_id: &'a str,
    output_index: u32,
    #[serde(flatten)]
    fields: T,
}

#[derive(Serialize)]
struct Nothing {}

#[derive(Serialize)]
struct OfPart<T> {
    content_index: u32,
    part: T,
}

#[derive(Serialize)]
struct OfText<'a> {
    content_index: u32,
    text: &'a str,
    logprobs: [(); 0],
}

#[derive(Serialize)]
struct OfSummaryPart {
    summary_index: u32,
    part: SummaryPart,
}

#[derive(Serialize)]
struct OfSummary<'a> {
    summary_index: u32,
    text: &'a str,
}

#[derive(Serialize)]
struct Delta<'a> {
    delta: &'a str,
}

#[derive(Serialize)]
struct Arguments<'a> {
    arguments: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

#[derive(Serialize)]
struct Input<'a> {
    input: &'a str,
}

#[derive(Serialize)]
struct KeepAlive {
    r#type: &'static str,
}

#[derive(Serialize)]
struct BrokenOff<'a> {
    code: &'static str,
    message: &'a str,
    param: Option<&'static str>,
}

/// A whole stream of a response whose run did not begin.
pub(super) fn broken_off(message: &str) -> Bytes {
    let (mut out, fields) = (BytesMut::new(), BrokenOff { code: NOT_BEGUN, message, param: None });
    frame::write(&mut out, None, "error", &Numbered { r#type: "error", sequence_number: 0, fields: &fields });
    out.freeze()
}

impl ResponseEncoder {
    /// The events of a run from the one with the number `from` on.
    pub(super) fn new(about: About, of: &RunIds, from: u64) -> Self {
        let items = Items::new(of, about.sentences());
        let writer = Writer { about, output: Output::default(), next: 0, from, opening: String::new() };
        Self { items, writer }
    }
}

impl Writer {
    fn event(&mut self, out: &mut BytesMut, name: &'static str, fields: &impl Serialize) {
        let sequence_number = self.next;
        self.next += 1;
        if sequence_number >= self.from {
            frame::write(out, None, name, &Numbered { r#type: name, sequence_number, fields });
        }
    }

    fn at(&mut self, out: &mut BytesMut, name: &'static str, spot: Spot<'_>, fields: impl Serialize) {
        self.event(out, name, &At { item_id: spot.id, output_index: spot.index, fields });
    }

    fn text(&mut self, out: &mut BytesMut, name: &'static str, text: &str) {
        let sequence_number = self.next;
        self.next += 1;
        if sequence_number >= self.from {
            frame::write_numbered_text(out, name, sequence_number, &self.opening, text);
        }
    }

    fn opened(&mut self, out: &mut BytesMut) {
        for name in ["response.created", "response.in_progress"] {
            let about = self.about.clone();
            self.event(out, name, &Whole { response: about.body(Standing::InProgress, Vec::new(), None) });
        }
    }

    fn piece(&mut self, out: &mut BytesMut, piece: Piece<'_>) {
        match piece {
            Piece::Text(_, Kind::Words, text) => self.text(out, "response.output_text.delta", text),
            Piece::Text(_, Kind::Thought, text) => self.text(out, "response.reasoning_summary_text.delta", text),
            Piece::Added(output_index, item) => {
                self.event(out, "response.output_item.added", &OfItem { output_index, item });
            }
            Piece::TextBegins(spot, Kind::Words) => {
                let part = OfPart { content_index: 0, part: Part::output("") };
                self.at(out, "response.content_part.added", spot, part);
                self.open(spot, r#""content_index":0,"logprobs":[]"#);
            }
            Piece::TextBegins(spot, Kind::Thought) => {
                let part = OfSummaryPart { summary_index: 0, part: SummaryPart::SummaryText { text: String::new() } };
                self.at(out, "response.reasoning_summary_part.added", spot, part);
                self.open(spot, r#""summary_index":0"#);
            }
            Piece::TextEnds(spot, Kind::Words, text) => {
                let whole = OfText { content_index: 0, text, logprobs: [] };
                self.at(out, "response.output_text.done", spot, whole);
                let part = OfPart { content_index: 0, part: Part::output(text) };
                self.at(out, "response.content_part.done", spot, part);
            }
            Piece::TextEnds(spot, Kind::Thought, text) => {
                self.at(out, "response.reasoning_summary_text.done", spot, OfSummary { summary_index: 0, text });
                let part = SummaryPart::SummaryText { text: text.to_owned() };
                self.at(out, "response.reasoning_summary_part.done", spot, OfSummaryPart { summary_index: 0, part });
            }
            Piece::CallBegins(spot, arguments) => {
                self.at(out, "response.mcp_call.in_progress", spot, Nothing {});
                self.at(out, "response.mcp_call_arguments.delta", spot, Delta { delta: arguments });
                self.at(out, "response.mcp_call_arguments.done", spot, Arguments { arguments, name: None });
            }
            Piece::CallEnds(spot, false) => self.at(out, "response.mcp_call.completed", spot, Nothing {}),
            Piece::CallEnds(spot, true) => self.at(out, "response.mcp_call.failed", spot, Nothing {}),
            Piece::Arguments(spot, name, arguments) => {
                self.at(out, "response.function_call_arguments.delta", spot, Delta { delta: arguments });
                let whole = Arguments { arguments, name: Some(name) };
                self.at(out, "response.function_call_arguments.done", spot, whole);
            }
            Piece::Input(spot, input) => {
                self.at(out, "response.custom_tool_call_input.delta", spot, Delta { delta: input });
                self.at(out, "response.custom_tool_call_input.done", spot, Input { input });
            }
            Piece::Done(output_index, item) => {
                self.event(out, "response.output_item.done", &OfItem { output_index, item: &item });
                self.output.push(output_index, item);
            }
        }
    }

    /// Prepares what stands before each piece of a text.
    fn open(&mut self, spot: Spot<'_>, besides: &str) {
        // Ids of ours need no escapes.
        self.opening = format!(r#","item_id":"{}","output_index":{},{besides},"delta":"#, spot.id, spot.index);
    }

    fn end(&mut self, out: &mut BytesMut, end: &End, items: &Items) {
        let name = match end {
            End::Completed => "response.completed",
            End::Incomplete(_) | End::Cancelled => "response.incomplete",
            End::Failed(_) => "response.failed",
        };
        let (about, output) = (self.about.clone(), std::mem::take(&mut self.output));
        let response = about.body(Standing::Ended(end), output.items(), Some(items.usage()));
        self.event(out, name, &Whole { response });
    }
}

impl Encoder for ResponseEncoder {
    fn opened(&mut self, out: &mut BytesMut) {
        self.writer.opened(out);
    }

    fn encode(&mut self, _id: Option<u64>, event: &AgentEvent, out: &mut BytesMut) {
        let Self { items, writer } = self;
        if let Some(end) = items.hear(event, &mut |piece| writer.piece(out, piece)) {
            writer.end(out, &end, items);
        }
    }

    fn lost(&mut self, out: &mut BytesMut) {
        let Self { items, writer } = self;
        let end = items.lose(&mut |piece| writer.piece(out, piece));
        writer.end(out, &end, items);
    }

    /// An event, and not a comment: one of the clients gives a stream up in which it has seen none for a while. It has no
    /// number, since it is none of the run's.
    fn keep_alive(&mut self, out: &mut BytesMut) {
        frame::write(out, None, "keepalive", &KeepAlive { r#type: "keepalive" });
    }

    /// These clients take a stream without an end for an error of the connection, and one that goes on elsewhere is over
    /// for them.
    fn draining(&mut self, come_back_ms: Option<u32>, out: &mut BytesMut) {
        frame::write_comment(out, "draining");
        if come_back_ms.is_some() {
            self.lost(out);
        }
    }
}
