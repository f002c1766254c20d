//! A run's events as a response body. Whatever is ready goes out in one piece, so that a burst costs one write, and a
//! comment goes out when nothing flows. Dropping the body, as hyper does when the client is gone, cancels the run.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header};
use bytes::{Bytes, BytesMut};
use futures::stream;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::chat::event::{AgentEvent, Failure};
use crate::dialect::Encoder;
use crate::runs::Attached;

/// The headers of an event stream (protocol section 8).
pub(super) const HEADERS: [(HeaderName, HeaderValue); 4] = [
    (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform")),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
];

/// A piece of the body is sent once it has this many bytes, even when more events are ready.
const PIECE_BYTES: usize = 16 * 1024;

/// The shortest time between two pieces. A model that streams faster than this has its events sent together; one that does
/// not is never delayed, since its last piece is longer ago.
const PIECE_PAUSE: Duration = Duration::from_millis(1);

struct Open {
    attached: Attached,
    encoder: Box<dyn Encoder>,
    keep_alive: Option<Duration>,
    buffer: BytesMut,
    /// When the next piece may go out, soon after the last one; silence is measured from here. Events that a protocol does not
    /// show do not count: a proxy would not see them either.
    next_piece: Instant,
    ended: bool,
}

/// The body: frames until the run's terminal event, which it always has.
pub(super) fn body(attached: Attached, encoder: Box<dyn Encoder>, keep_alive: Option<Duration>) -> Body {
    let open =
        Open { attached, encoder, keep_alive, buffer: BytesMut::new(), next_piece: Instant::now(), ended: false };
    Body::from_stream(stream::unfold(open, |mut open| async move {
        let piece = open.next_piece().await?;
        Some((Ok::<_, Infallible>(piece), open))
    }))
}

impl Open {
    async fn next_piece(&mut self) -> Option<Bytes> {
        while !self.ended && self.buffer.is_empty() {
            match self.next_event().await {
                Next::Event(event) => self.encode(&event),
                Next::Silence => self.encoder.keep_alive(&mut self.buffer),
            }
            self.encode_ready();
        }
        if !self.ended && Instant::now() < self.next_piece {
            sleep_until(self.next_piece).await;
            self.encode_ready();
        }
        self.next_piece = Instant::now() + PIECE_PAUSE;
        (!self.buffer.is_empty()).then(|| self.buffer.split().freeze())
    }

    fn encode_ready(&mut self) {
        while !self.ended && self.buffer.len() < PIECE_BYTES {
            let Ok(event) = self.attached.events.try_recv() else { break };
            self.encode(&event);
        }
    }

    async fn next_event(&mut self) -> Next {
        // A time that no clock reaches is no limit.
        let event = match self.keep_alive.and_then(|silence| self.next_piece.checked_add(silence)) {
            None => self.attached.events.recv().await,
            Some(until) => match timeout_at(until, self.attached.events.recv()).await {
                Ok(event) => event,
                Err(_) => return Next::Silence,
            },
        };
        Next::Event(event.unwrap_or_else(|| {
            // The run's task is gone without a terminal event; its client must not take the silence for an answer.
            AgentEvent::Failed(Failure {
                code: "internal".into(),
                message: "The server failed while answering; please try again".to_owned(),
                retryable: true,
            })
        }))
    }

    fn encode(&mut self, event: &AgentEvent) {
        self.encoder.encode(event, &mut self.buffer);
        self.ended = event.is_terminal();
    }
}

enum Next {
    Event(AgentEvent),
    Silence,
}
