//! A run's events as a response body. Whatever is ready goes out in one piece, so that a burst costs one write, and a
//! comment goes out when nothing flows. Dropping the body, as hyper does when the client is gone, lets go of the run.

use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header};
use bytes::{Bytes, BytesMut};
use futures::Stream;
use tokio::task::coop;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

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

/// What keeps a stream open before its first run is known: no client reads it.
pub(super) const COMMENT: &[u8] = b": keep-alive\n\n";

/// A piece of the body is sent once it has this many bytes, even when more events are ready.
const PIECE_BYTES: usize = 16 * 1024;

/// The shortest time between two pieces. A model that streams faster than this has its events sent together; one that
/// does not is never delayed, since its last piece is longer ago. The first piece says that the run has begun, and holds up no
/// word of its model.
const PIECE_PAUSE: Duration = Duration::from_millis(1);

/// A day stands for a time that no clock reaches.
const NEVER: Duration = Duration::from_secs(86_400);

/// When a reader whose stream ends with this server may come back, in milliseconds: each at another time, or all of
/// them would come to the next server at once.
const COME_BACK_MS: RangeInclusive<u32> = 500..=1500;

/// How a run is sent to one reader.
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

/// A body that is being written.
struct Open {
    attached: Attached,
    view: View,
    buffer: BytesMut,
    /// When the next piece may go out, soon after the last one; silence is measured from here. Events that a protocol
    /// does not show do not count: a proxy would not see them either.
    next_piece: Instant,
    /// Rings when it may, where the poll waits for that.
    pause: Option<Pin<Box<Sleep>>>,
    /// Rings when there may have been silence; not set anew for every piece.
    alarm: Option<Pin<Box<Sleep>>>,
    /// Done when the server is about to stop; `None` after the reader was informed.
    draining: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    /// The waker that both were polled with. The clock and the token give their state for less.
    woken: Option<Waker>,
    /// Whether a piece has gone out.
    has_begun: bool,
    ended: bool,
    meter: StreamMeter,
}

/// The body: frames until the run's terminal event, or until its reader has to go on elsewhere.
pub(super) fn body(attached: Attached, mut view: View) -> Body {
    let mut buffer = BytesMut::new();
    view.encoder.opened(&mut buffer);
    let now = Instant::now();
    // A time that no clock reaches is no limit.
    let first_silence = view.keep_alive.and_then(|silence| now.checked_add(silence));
    Body::from_stream(Open {
        attached,
        buffer,
        next_piece: now,
        pause: None,
        alarm: first_silence.map(|until| Box::pin(sleep_until(until))),
        draining: Some(Box::pin(view.draining.clone().cancelled_owned())),
        woken: None,
        has_begun: false,
        ended: false,
        meter: StreamMeter::open(ambient::dialect()),
        view,
    })
}

impl Stream for Open {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let open = self.get_mut();
        while !open.ended && open.buffer.is_empty() {
            match ready!(open.poll_happens(cx)) {
                Wakeup::Next(next) => open.encode(next),
                Wakeup::Silence => open.view.encoder.keep_alive(&mut open.buffer),
                Wakeup::Draining => open.tell_draining(),
            }
            open.encode_ready();
        }
        if !open.ended {
            ready!(open.poll_pause(cx));
            open.encode_ready();
        }
        open.next_piece = Instant::now() + if open.has_begun { PIECE_PAUSE } else { Duration::ZERO };
        open.has_begun = true;
        open.meter.piece(open.buffer.len());
        Poll::Ready((!open.buffer.is_empty()).then(|| Ok(open.buffer.split().freeze())))
    }
}

impl Open {
    fn encode_ready(&mut self) {
        while !self.ended && self.buffer.len() < PIECE_BYTES {
            let Some(next) = self.attached.try_next() else { break };
            self.encode(next);
        }
    }

    fn poll_pause(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.next_piece {
            return Poll::Ready(());
        }
        let pause = self.pause.get_or_insert_with(|| Box::pin(sleep_until(self.next_piece)));
        if pause.deadline() != self.next_piece {
            pause.as_mut().reset(self.next_piece);
        }
        pause.as_mut().poll(cx)
    }

    fn poll_happens(&mut self, cx: &mut Context<'_>) -> Poll<Wakeup> {
        loop {
            if let Poll::Ready(next) = self.attached.poll_next(cx) {
                return Poll::Ready(Wakeup::Next(next));
            }
            if self.draining.is_some() && self.view.draining.is_cancelled() {
                return Poll::Ready(Wakeup::Draining);
            }
            let now = Instant::now();
            if let Some(alarm) = self.alarm.as_mut().filter(|alarm| now >= alarm.deadline()) {
                // Something may have been sent since it was set.
                let until = self.view.keep_alive.and_then(|silence| self.next_piece.checked_add(silence));
                let until = until.unwrap_or(now + NEVER);
                if now >= until {
                    return Poll::Ready(Wakeup::Silence);
                }
                alarm.as_mut().reset(until);
                self.woken = None;
            }
            if self.woken.as_ref().is_some_and(|woken| woken.will_wake(cx.waker())) {
                return Poll::Pending;
            }
            let rings = self.alarm.as_mut().is_some_and(|alarm| alarm.as_mut().poll(cx).is_ready());
            let drains = self.draining.as_mut().is_some_and(|draining| draining.as_mut().poll(cx).is_ready());
            // A task that has used up its budget is polled again without a waker.
            self.woken = coop::has_budget_remaining().then(|| cx.waker().clone());
            if !rings && !drains {
                return Poll::Pending;
            }
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

    /// A run of this process ends with it, and its readers get that end; one of another process goes on there.
    fn tell_draining(&mut self) {
        self.draining = None;
        let goes_on_elsewhere = !self.attached.is_local;
        let come_back_ms = goes_on_elsewhere.then(|| fastrand::u32(COME_BACK_MS));
        self.view.encoder.draining(come_back_ms, &mut self.buffer);
        self.ended = goes_on_elsewhere;
    }
}

enum Wakeup {
    Next(Next),
    Silence,
    Draining,
}
