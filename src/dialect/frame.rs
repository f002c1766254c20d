//! One Server-Sent Event as bytes: an `id:` line where the stream can be continued, `event:` line, one `data:` line,
//! blank line, LF only.

use bytes::{BufMut, BytesMut};
use serde::Serialize;

/// Bytes of a frame with one text besides the text.
const TEXT_FRAME_BYTES: usize = 128;

/// Appends one frame. JSON text has no raw line breaks, so `data` is always one line.
pub(super) fn write(out: &mut BytesMut, id: Option<u64>, event: &'static str, data: &impl Serialize) {
    block(out, id, Some(event), data);
}

/// Appends one frame without a name, for protocols that name their events in the data.
pub(super) fn write_data(out: &mut BytesMut, id: Option<u64>, data: &impl Serialize) {
    block(out, id, None, data);
}

/// Appends one frame whose data is that JSON, on one line.
pub(super) fn write_json(out: &mut BytesMut, event: &'static str, json: &[u8]) {
    out.reserve(TEXT_FRAME_BYTES + json.len());
    begin(out, None, Some(event));
    out.put_slice(json);
    out.put_slice(b"\n\n");
}

/// Appends one frame whose data is a text behind `opening` and in front of a brace, as [`write()`] would of a struct with that
/// one field. Nearly all frames are so; a text that needs no escapes is not serialised.
pub(super) fn write_text(out: &mut BytesMut, id: Option<u64>, event: &'static str, opening: &'static str, text: &str) {
    let start = out.len();
    out.reserve(TEXT_FRAME_BYTES + text.len());
    begin(out, id, Some(event));
    out.put_slice(opening.as_bytes());
    finish_text(out, start, event, text, b"\"}\n\n");
}

/// The same of an event whose text is in an object of its own: `opening` stands before it.
pub(super) fn write_nested_text(out: &mut BytesMut, event: &'static str, opening: &str, text: &str) {
    let start = out.len();
    out.reserve(TEXT_FRAME_BYTES + opening.len() + text.len());
    begin(out, None, Some(event));
    out.put_slice(opening.as_bytes());
    finish_text(out, start, event, text, b"\"}}\n\n");
}

/// The same of an event that has its name and a number in its data too: `opening` stands behind them.
pub(super) fn write_numbered_text(out: &mut BytesMut, event: &'static str, number: u64, opening: &str, text: &str) {
    let start = out.len();
    out.reserve(TEXT_FRAME_BYTES + opening.len() + 2 * event.len() + text.len());
    begin(out, None, Some(event));
    out.put_slice(b"{\"type\":\"");
    out.put_slice(event.as_bytes());
    out.put_slice(b"\",\"sequence_number\":");
    out.put_slice(itoa::Buffer::new().format(number).as_bytes());
    out.put_slice(opening.as_bytes());
    finish_text(out, start, event, text, b"\"}\n\n");
}

/// Appends a text as JSON, and the end of the frame: a quote, braces and two line breaks.
fn finish_text(out: &mut BytesMut, start: usize, event: &'static str, text: &str, closing: &'static [u8]) {
    if text.bytes().all(|byte| byte >= b' ' && !matches!(byte, b'"' | b'\\')) {
        out.put_slice(b"\"");
        out.put_slice(text.as_bytes());
        out.put_slice(closing);
    } else {
        let written = serde_json::to_writer((&mut *out).writer(), text);
        end(out, start, event, written, closing.strip_prefix(b"\"").unwrap_or(closing));
    }
}

fn block(out: &mut BytesMut, id: Option<u64>, event: Option<&'static str>, data: &impl Serialize) {
    let start = out.len();
    begin(out, id, event);
    let written = serde_json::to_writer((&mut *out).writer(), data);
    end(out, start, event.unwrap_or_default(), written, b"\n\n");
}

fn begin(out: &mut BytesMut, id: Option<u64>, event: Option<&'static str>) {
    if let Some(id) = id {
        out.put_slice(b"id: ");
        out.put_slice(itoa::Buffer::new().format(id).as_bytes());
        out.put_slice(b"\n");
    }
    if let Some(event) = event {
        out.put_slice(b"event: ");
        out.put_slice(event.as_bytes());
        out.put_slice(b"\n");
    }
    out.put_slice(b"data: ");
}

fn end(out: &mut BytesMut, start: usize, event: &'static str, written: serde_json::Result<()>, closing: &'static [u8]) {
    if let Err(error) = written {
        // Our frames are structs of strings, numbers and JSON values, which always serialise; a half frame must not go
        // out.
        tracing::error!(%error, event, "frame not written");
        out.truncate(start);
        return;
    }
    out.put_slice(closing);
}

/// Appends a block that tells the client how long to wait before it connects again.
pub(super) fn write_retry(out: &mut BytesMut, ms: u32) {
    out.put_slice(b"retry: ");
    out.put_slice(itoa::Buffer::new().format(ms).as_bytes());
    out.put_slice(b"\n\n");
}

/// Appends a comment block, which every SSE client ignores.
pub(super) fn write_comment(out: &mut BytesMut, text: &'static str) {
    out.put_slice(b": ");
    out.put_slice(text.as_bytes());
    out.put_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Chunk<'a> {
        chunk: &'a str,
    }

    #[test]
    fn a_text_is_written_as_a_struct_with_it_would_be() {
        for text in ["", "word ", "é\u{2028}\u{1f600}", "a\"b", "a\\b", "a\nb\u{0}", "</script>\u{7f}"] {
            let (mut one, mut other) = (BytesMut::from("before"), BytesMut::from("before"));
            write_text(&mut one, Some(7), "content_chunk", "{\"chunk\":", text);
            write(&mut other, Some(7), "content_chunk", &Chunk { chunk: text });
            assert_eq!(one, other, "{text:?}");
        }
    }
}
