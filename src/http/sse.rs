//! A run's events as a response body. Whatever is ready goes out in one piece, so that a burst costs one write, and a
//! comment goes out when nothing flows. Dropping the body, as hyper does when the client is gone, lets go of the run.

use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header};
use bytes::{Bytes, BytesMut};
use futures::stream;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::dialect::Encoder;
use crate::observe::ambient;
use crate::observe::metrics::{self, StreamMeter};
use crate::runs::Attached;
use crate::runs::log::ring::Next;

/// The headers of an event stream (protocol section 2).
pub(super) const HEADERS: [(HeaderName, HeaderValue); 4] = [
    (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform")),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
];

/// A piece of the body is sent once it has this many bytes, even when more events are ready.
const PIECE_BYTES: usize = 16 * 1024;

/// The shortest time between two pieces. A model that streams faster than this has its events sent together; one that
/// does not is never delayed, since its last piece is longer ago.
const PIECE_PAUSE: Duration = Duration::from_millis(1);

/// When a reader whose stream ends with this server may come back, in milliseconds: each at another time, or all of
/// them would come to the next server at once.
const COME_BACK_MS: RangeInclusive<u32> = 500..=1500;

/// How a run is shown to one reader.
pub(super) struct View {
    /// The protocol.
    pub(super) encoder: Box<dyn Encoder>,
    /// Whether frames carry the events' numbers, so that the reader can go on after one.
    pub(super) numbered: bool,
    /// Silence before a comment is sent.
    pub(super) keep_alive: Option<Duration>,
    /// Cancelled when the server is about to stop.
    pub(super) draining: CancellationToken,
}

struct Open {
    attached: Attached,
    view: View,
    buffer: BytesMut,
    /// When the next piece may go out, soon after the last one; silence is measured from here. Events that a protocol
    /// does not show do not count: a proxy would not see them either.
    next_piece: Instant,
    told_draining: bool,
    ended: bool,
    meter: StreamMeter,
}

/// The body: frames until the run's terminal event, or until its reader has to go on elsewhere.
pub(super) fn body(attached: Attached, mut view: View) -> Body {
    let mut buffer = BytesMut::new();
    view.encoder.opened(&mut buffer);
    let meter = StreamMeter::open(ambient::dialect());
    let open = Open { attached, view, buffer, next_piece: Instant::now(), told_draining: false, ended: false, meter };
    Body::from_stream(stream::unfold(open, |mut open| async move {
        let piece = open.next_piece().await?;
        Some((Ok::<_, Infallible>(piece), open))
    }))
}

impl Open {
    async fn next_piece(&mut self) -> Option<Bytes> {
        while !self.ended && self.buffer.is_empty() {
            match self.happens().await {
                Happens::Next(next) => self.encode(next),
                Happens::Silence => self.view.encoder.keep_alive(&mut self.buffer),
                Happens::Draining => self.tell_draining(),
            }
            self.encode_ready();
        }
        if !self.ended && Instant::now() < self.next_piece {
            sleep_until(self.next_piece).await;
            self.encode_ready();
        }
        self.next_piece = Instant::now() + PIECE_PAUSE;
        self.meter.piece(self.buffer.len());
        (!self.buffer.is_empty()).then(|| self.buffer.split().freeze())
    }

    fn encode_ready(&mut self) {
        while !self.ended && self.buffer.len() < PIECE_BYTES {
            let Some(next) = self.attached.try_next() else { break };
            self.encode(next);
        }
    }

    async fn happens(&mut self) -> Happens {
        if let Some(next) = self.attached.try_next() {
            return Happens::Next(next);
        }
        // A time that no clock reaches is no limit.
        let silence = self.view.keep_alive.and_then(|silence| self.next_piece.checked_add(silence));
        let next = async {
            match silence {
                None => Happens::Next(self.attached.next().await),
                Some(until) => match timeout_at(until, self.attached.next()).await {
                    Ok(next) => Happens::Next(next),
                    Err(_) => Happens::Silence,
                },
            }
        };
        if self.told_draining {
            return next.await;
        }
        tokio::select! {
            biased;
            next = next => next,
            () = self.view.draining.cancelled() => Happens::Draining,
        }
    }

    fn encode(&mut self, next: Next) {
        match next {
            Next::Event { id, event } => {
                self.view.encoder.encode(self.view.numbered.then_some(id), &event, &mut self.buffer);
                self.ended = event.is_terminal();
            }
            Next::Lost => {
                metrics::reader_lost();
                self.view.encoder.lost(&mut self.buffer);
                self.ended = true;
            }
            Next::Ended => self.ended = true,
        }
    }

    /// A run of this process ends with it, and its readers are told how; one of another goes on there.
    fn tell_draining(&mut self) {
        self.told_draining = true;
        let goes_on_elsewhere = !self.attached.is_local;
        let come_back_ms = goes_on_elsewhere.then(|| fastrand::u32(COME_BACK_MS));
        self.view.encoder.draining(come_back_ms, &mut self.buffer);
        self.ended = goes_on_elsewhere;
    }
}

enum Happens {
    Next(Next),
    Silence,
    Draining,
}
