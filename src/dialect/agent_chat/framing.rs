//! How the native protocol's events stand on the wire.

use bytes::{BufMut, BytesMut};
use serde::Serialize;

use crate::dialect::frame;

/// The frame of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// A Server-Sent Event.
    Event,
    /// A line of JSON: `{"id"?, "event", "data"}`.
    Line,
}

/// The data of a line that has none.
#[derive(Serialize)]
struct Nothing {}

/// When to come back, in milliseconds.
#[derive(Serialize)]
struct ComeBack {
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_ms: Option<u32>,
}

impl Framing {
    /// Appends an event.
    pub(super) fn write(self, out: &mut BytesMut, id: Option<u64>, event: &'static str, data: &impl Serialize) {
        match self {
            Self::Event => frame::write(out, id, event, data),
            Self::Line => {
                let start = out.len();
                begin(out, id, event);
                match serde_json::to_writer((&mut *out).writer(), data) {
                    Ok(()) => out.put_slice(b"}\n"),
                    Err(error) => {
                        // As with a frame: half a line must not go out.
                        tracing::error!(%error, event, "line not written");
                        out.truncate(start);
                    }
                }
            }
        }
    }

    /// Appends an event whose data is a text behind `opening` and in front of a brace, as [`Self::write`] would of a struct with
    /// that one field.
    pub(super) fn write_text(
        self,
        out: &mut BytesMut,
        id: Option<u64>,
        event: &'static str,
        opening: &'static str,
        text: &str,
    ) {
        match self {
            Self::Event => frame::write_text(out, id, event, opening, text),
            Self::Line => {
                begin(out, id, event);
                out.put_slice(opening.as_bytes());
                // A text always serialises.
                let _ = serde_json::to_writer((&mut *out).writer(), text);
                out.put_slice(b"}}\n");
            }
        }
    }

    /// Appends what keeps a connection open.
    pub(super) fn write_keep_alive(self, out: &mut BytesMut) {
        match self {
            Self::Event => frame::write_comment(out, "keep-alive"),
            Self::Line => self.write(out, None, "keep_alive", &Nothing {}),
        }
    }

    /// Appends that the server is about to stop, and when to come back.
    pub(super) fn write_draining(self, come_back_ms: Option<u32>, out: &mut BytesMut) {
        match self {
            Self::Event => {
                frame::write_comment(out, "draining");
                if let Some(ms) = come_back_ms {
                    frame::write_retry(out, ms);
                }
            }
            Self::Line => self.write(out, None, "draining", &ComeBack { retry_ms: come_back_ms }),
        }
    }
}

fn begin(out: &mut BytesMut, id: Option<u64>, event: &'static str) {
    out.put_slice(b"{");
    if let Some(id) = id {
        out.put_slice(b"\"id\":");
        out.put_slice(itoa::Buffer::new().format(id).as_bytes());
        out.put_slice(b",");
    }
    out.put_slice(b"\"event\":\"");
    out.put_slice(event.as_bytes());
    out.put_slice(b"\",\"data\":");
}
