//! One Server-Sent Event as bytes: `event:` line, one `data:` line, blank line, LF only.

use bytes::{BufMut, BytesMut};
use serde::Serialize;

/// Appends one frame. JSON text has no raw line breaks, so `data` is always one line.
pub(super) fn write(out: &mut BytesMut, event: &'static str, data: &impl Serialize) {
    let start = out.len();
    out.put_slice(b"event: ");
    out.put_slice(event.as_bytes());
    out.put_slice(b"\ndata: ");
    if let Err(error) = serde_json::to_writer((&mut *out).writer(), data) {
        // Our frames are structs of strings, numbers and JSON values, which always serialise; a half frame must not go out.
        tracing::error!(%error, event, "frame not written");
        out.truncate(start);
        return;
    }
    out.put_slice(b"\n\n");
}

/// Appends a comment block, which every SSE client ignores.
pub(super) fn write_comment(out: &mut BytesMut, text: &'static str) {
    out.put_slice(b": ");
    out.put_slice(text.as_bytes());
    out.put_slice(b"\n\n");
}
