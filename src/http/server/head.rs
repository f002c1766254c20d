//! The clock of request heads. hyper has one timer for the silence between two requests and for a head that does not end;
//! the first has to be long, since proxies keep connections open, and the second short, since nobody sends a head slowly
//! who means well. So the connection's own end notes when a head's first byte comes, and the service when its last one has.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// What a client is told whose head takes too long; then the connection is closed.
const TOO_LATE: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Where the connection is: how many heads have come, and whether a request is being answered, since what comes in meanwhile
/// is no head.
#[derive(Default)]
pub(super) struct Phase {
    heads: AtomicUsize,
    answering: AtomicBool,
}

/// A request that is being answered, from the end of its head to the end of its answer.
pub(super) struct Answering(Arc<Phase>);

impl Answering {
    /// Its head has come.
    pub(super) fn begin(phase: Arc<Phase>) -> Self {
        phase.heads.fetch_add(1, Ordering::Relaxed);
        phase.answering.store(true, Ordering::Relaxed);
        Self(phase)
    }

    /// Goes on until `body` is sent, or given up.
    pub(super) fn with<B>(self, body: B) -> Answer<B> {
        Answer { body, _answering: self }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.answering.store(false, Ordering::Relaxed);
    }
}

/// An answer's body.
pub(super) struct Answer<B> {
    body: B,
    _answering: Answering,
}

impl<B: Body + Unpin> Body for Answer<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection whose heads have to come in time.
pub(super) struct Headed<S> {
    stream: S,
    phase: Arc<Phase>,
    limit: Option<Duration>,
    /// How many heads had come when this was looked at last.
    heads: usize,
    /// When the head at hand has to be there.
    until: Option<Instant>,
    /// Wakes the connection then; made only for a head that does not come in one piece.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl<S> Headed<S> {
    /// `stream`, whose heads may take `limit` each.
    pub(super) fn new(stream: S, phase: Arc<Phase>, limit: Option<Duration>) -> Self {
        Self { stream, phase, limit, heads: 0, until: None, alarm: None }
    }

    /// Whether the head at hand is too late; if it is not, the task is woken when it is.
    fn is_late(&mut self, cx: &mut Context<'_>, got_something: bool) -> bool {
        let Some(limit) = self.limit else { return false };
        let heads = self.phase.heads.load(Ordering::Relaxed);
        if self.heads != heads {
            // The head that was waited for has come.
            (self.heads, self.until, self.alarm) = (heads, None, None);
        }
        if self.phase.answering.load(Ordering::Relaxed) {
            return false;
        }
        let until = match self.until {
            Some(until) => until,
            None if got_something => *self.until.insert(Instant::now() + limit),
            None => return false,
        };
        if got_something {
            // Whether it was the last piece is known when the next one is asked for.
            return Instant::now() >= until;
        }
        self.alarm.get_or_insert_with(|| Box::pin(sleep_until(until))).as_mut().poll(cx).is_ready()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Headed<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let got_something = buffer.filled().len() > before;
        let is_over = read.is_ready() && !got_something;
        if !is_over && self.is_late(cx, got_something) {
            // Small enough for any socket's buffer; who cannot be told is closed all the same.
            let _ = Pin::new(&mut self.stream).poll_write(cx, TOO_LATE);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the request's head took too long")));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Headed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }
}
