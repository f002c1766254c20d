//! One Server-Sent Event as bytes: an `id:` line where the stream can be continued, `event:` line, one `data:` line,
//! blank line, LF only.

use bytes::{BufMut, BytesMut};
use serde::Serialize;

/// Appends one frame. JSON text has no raw line breaks, so `data` is always one line.
pub(super) fn write(out: &mut BytesMut, id: Option<u64>, event: &'static str, data: &impl Serialize) {
    block(out, id, Some(event), data);
}

/// Appends one frame without a name, for protocols that name their events in the data.
pub(super) fn write_data(out: &mut BytesMut, id: Option<u64>, data: &impl Serialize) {
    block(out, id, None, data);
}

fn block(out: &mut BytesMut, id: Option<u64>, event: Option<&'static str>, data: &impl Serialize) {
    let start = out.len();
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
