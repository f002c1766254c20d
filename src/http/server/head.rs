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

use crate::observe::metrics::{self, Rejection};

/// What a client is told whose head takes too long; then the connection is closed.
const TOO_LATE: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// How long a connection may say nothing before its first request, where heads have a limit: longer than that, since browsers
/// open connections ahead of time, and much shorter than the silence between two requests, since one that never asks for
/// anything holds a place for nothing.
pub(super) const FIRST: Duration = Duration::from_secs(15);

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
    /// Whether a byte of the head at hand has come.
    has_begun: bool,
    /// When the head at hand has to be there; before the first one has begun, when it has to.
    until: Option<Instant>,
    /// Wakes the connection then; made only where there is something to wait for.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl<S> Headed<S> {
    /// `stream`, which was just taken, and whose heads may take `limit` each; the first one has to begin within `first`, or
    /// that limit if it is more.
    pub(super) fn new(stream: S, phase: Arc<Phase>, limit: Option<Duration>, first: Duration) -> Self {
        let until = limit.map(|limit| Instant::now() + limit.max(first));
        Self { stream, phase, limit, heads: 0, has_begun: false, until, alarm: None }
    }

    /// Whether the head at hand is too late; if it is not, the task is woken when it is.
    fn is_late(&mut self, cx: &mut Context<'_>, got_something: bool) -> bool {
        let Some(limit) = self.limit else { return false };
        let heads = self.phase.heads.load(Ordering::Relaxed);
        if self.heads != heads {
            // The head that was waited for has come.
            (self.heads, self.has_begun, self.until, self.alarm) = (heads, false, None, None);
        }
        if self.phase.answering.load(Ordering::Relaxed) {
            return false;
        }
        if got_something && !self.has_begun {
            (self.has_begun, self.until, self.alarm) = (true, Some(Instant::now() + limit), None);
        }
        let Some(until) = self.until else { return false };
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
            if self.has_begun {
                metrics::rejected(Rejection::Head);
                // Small enough for any socket's buffer; who cannot be told is closed all the same.
                let _ = Pin::new(&mut self.stream).poll_write(cx, TOO_LATE);
            }
            // Who has asked nothing is told nothing: it would be read as the answer to what is asked just now.
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, split};
    use tokio::time::{sleep, timeout};

    use super::*;

    /// What a client hears, until it is closed, that sends each of these after a while; a head may take five of these whiles,
    /// and the silence before it 15.
    async fn heard(sent: &[(u32, &str)]) -> String {
        let a_while = Duration::from_millis(20);
        let (server, client) = duplex(1024);
        let mut headed = Headed::new(server, Arc::default(), Some(a_while * 5), a_while * 15);
        let (mut reads, mut writes) = split(client);
        let serving = async {
            while headed.read(&mut [0; 1024]).await.is_ok_and(|read| read > 0) {}
            drop(headed);
        };
        let sending = async {
            for (after, bytes) in sent {
                sleep(a_while * *after).await;
                if writes.write_all(bytes.as_bytes()).await.is_err() {
                    break;
                }
            }
        };
        let mut told = String::new();
        let all = async { tokio::join!(serving, sending, reads.read_to_string(&mut told)) };
        timeout(Duration::from_secs(20), all).await.unwrap().2.unwrap();
        told
    }

    #[tokio::test]
    async fn a_connection_is_closed_that_never_asks_for_anything() {
        let late = String::from_utf8_lossy(TOO_LATE);
        assert_eq!(heard(&[]).await, "", "silent from the beginning, and told nothing");
        assert_eq!(heard(&[(0, "GET")]).await, late, "a head that is begun at once and left");
        assert_eq!(heard(&[(8, "GET")]).await, late, "one that is begun late and left");
        assert_eq!(heard(&[(2, "G"), (2, "E"), (2, "T"), (2, " ")]).await, late, "bytes that come one by one");
    }
}
