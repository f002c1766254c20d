//! One Server-Sent Event as bytes: an `id:` line where the stream can be continued, `event:` line, one `data:` line,
//! blank line, LF only.

use bytes::{BufMut, BytesMut};
use serde::Serialize;

/// Appends one frame. JSON text has no raw line breaks, so `data` is always one line.
pub(super) fn write(out: &mut BytesMut, id: Option<u64>, event: &'static str, data: &impl Serialize) {
    let start = out.len();
    if let Some(id) = id {
        out.put_slice(b"id: ");
        out.put_slice(itoa::Buffer::new().format(id).as_bytes());
        out.put_slice(b"\n");
    }
    out.put_slice(b"event: ");
    out.put_slice(event.as_bytes());
    out.put_slice(b"\ndata: ");
    if let Err(error) = serde_json::to_writer((&mut *out).writer(), data) {
        // Our frames are structs of strings, numbers and JSON values, which always serialise; a half frame must not go
        // out.
        tracing::error!(%error, event, "frame not written");
        out.truncate(start);
        return;
    }
    out.put_slice(b"\n\n");
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
