//! The clock of request heads. hyper has one timer for the silence between two requests and for a head that does not
//! end; the first has to be long, since proxies keep connections open, and the second short, since no honest client
//! sends a head slowly. So the connection's own end notes when a head's first byte comes, and the service when its last
//! one has. And it passes heads on when they are whole ([`super::whole`]).

use std::future::{Future, poll_fn};
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout};

use super::whole::{Found, HeadsAnswered, Inbound, Scan};
use crate::observe::metrics::{self, Rejection};

/// The answer to a head that takes too long; then the connection is closed.
const TOO_LATE: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// The longest silence of a connection before its first request, where heads have a limit: longer than that, since
/// browsers open connections ahead of time, and much shorter than the silence between two requests, since one that
/// never sends a request takes a connection for nothing.
pub(super) const FIRST: Duration = Duration::from_secs(15);

/// So much of a body that its request has left is read for the sake of the connection, in bytes.
const LITTLE: u64 = 4096;

/// How long that is waited for: a client sends it right behind the head, whatever the answer.
const BRIEFLY: Duration = Duration::from_millis(100);

/// How long a connection is read on that is closed before its request was read.
const LINGER: Duration = Duration::from_secs(2);

/// How much of a head is read at once: most heads are shorter, and what a connection keeps of a half one grows by this.
const PIECE: usize = 2048;

/// The state of the connection: which heads have come, and whether a request is being answered, since a head that comes
/// meanwhile has to wait.
#[derive(Default)]
pub(super) struct Phase {
    heads: HeadsAnswered,
    answering: AtomicBool,
    /// Bytes of the request's body that are not read yet.
    unread: AtomicU64,
    rest: Mutex<Rest>,
}

/// A little of a body that its request has left unread.
#[derive(Default)]
enum Rest {
    /// It would not be read any more.
    #[default]
    Gone,
    /// The request may still leave some.
    Awaited,
    Left(Incoming),
}

impl Phase {
    /// What was left, in whose place is this.
    fn replace(&self, rest: Rest) -> Rest {
        // No holder panics, and it is whole at any time.
        std::mem::replace(&mut *self.rest.lock().unwrap_or_else(PoisonError::into_inner), rest)
    }
}

/// A request that is being answered, from the end of its head to the end of its answer.
pub(super) struct Answering(Arc<Phase>);

impl Answering {
    /// Its head has come, and a body of this length follows it; `None` where only the body itself can say.
    pub(super) fn begin(phase: Arc<Phase>, body: Option<u64>) -> Self {
        phase.heads.head(body);
        phase.unread.store(body.unwrap_or_default(), Ordering::Relaxed);
        phase.answering.store(true, Ordering::Relaxed);
        phase.replace(Rest::Awaited);
        Self(phase)
    }

    /// Whether something of the body stays unread, so that the connection ends with the answer: hyper reads what has come and no
    /// more. A little is read here first, unless its client `waits` to be asked for it.
    pub(super) async fn leaves_some(&self, waits: bool) -> bool {
        if let (Rest::Left(body), false) = (self.0.replace(Rest::Gone), waits) {
            let mut rest = self.counting(body);
            let read = async { while let Some(Ok(_)) = poll_fn(|cx| Pin::new(&mut rest).poll_frame(cx)).await {} };
            // Whether there was enough time is told by what is unread then.
            let _ = timeout(BRIEFLY, read).await;
        }
        self.0.unread.load(Ordering::Relaxed) > 0
    }

    /// The request's body, which is counted as it is read.
    pub(super) fn counting(&self, body: Incoming) -> RequestBody {
        RequestBody { body: Some(body), phase: self.0.clone() }
    }

    /// Goes on until `body` is sent, or given up, and so does what is `held` for it.
    pub(super) fn with<B, T>(self, body: B, held: T) -> Answer<B, T> {
        Answer { body, _answering: self, _held: held }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.answering.store(false, Ordering::Relaxed);
    }
}

/// A request's body.
pub(super) struct RequestBody {
    /// Is there until this is dropped.
    body: Option<Incoming>,
    phase: Arc<Phase>,
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let is_little = (1..=LITTLE).contains(&self.phase.unread.load(Ordering::Relaxed));
        let mut rest = self.phase.rest.lock().unwrap_or_else(PoisonError::into_inner);
        if let (true, Rest::Awaited, Some(body)) = (is_little, &*rest, self.body.take()) {
            *rest = Rest::Left(body);
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = self.body.as_mut() else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(body).poll_frame(cx));
        if let Some(Some(data)) = frame.as_ref().map(|frame| frame.as_ref().ok().and_then(Frame::data_ref)) {
            // One request at a time is read, by one task.
            let unread = self.phase.unread.load(Ordering::Relaxed);
            self.phase.unread.store(unread.saturating_sub(data.len() as u64), Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

/// An answer's body.
pub(super) struct Answer<B, T> {
    body: B,
    _answering: Answering,
    _held: T,
}

impl<B: Body + Unpin, T: Unpin> Body for Answer<B, T> {
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

/// A connection whose heads have to come in time, and are passed on when they are whole.
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
    inbound: Inbound,
    scan: Scan,
    /// A head of so many bytes is passed on as far as it is there: whoever reads it refuses it.
    most: usize,
    /// How many heads were passed on.
    passed_on: usize,
    /// What has come and is not passed on.
    kept: Vec<u8>,
    /// How much of it was looked at.
    looked: usize,
    /// How much of it may be passed on.
    ready: usize,
    /// How much of that is.
    gone: usize,
    /// Until when the connection is read on while it is closed.
    linger: Option<Pin<Box<Sleep>>>,
}

impl<S> Headed<S> {
    /// `stream`, which was just taken, and whose heads may take `limit` and `most` bytes each; the first one has to begin
    /// within `first`, or that limit if it is more.
    pub(super) fn new(stream: S, phase: Arc<Phase>, limit: Option<Duration>, first: Duration, most: usize) -> Self {
        Self {
            stream,
            phase,
            limit,
            heads: 0,
            has_begun: false,
            until: limit.map(|limit| Instant::now() + limit.max(first)),
            alarm: None,
            inbound: Inbound::Head,
            scan: Scan::default(),
            most,
            passed_on: 0,
            kept: Vec::new(),
            looked: 0,
            ready: 0,
            gone: 0,
            linger: None,
        }
    }

    /// Whether the head at hand is too late; if it is not, the task is woken when it is.
    fn is_late(&mut self, cx: &mut Context<'_>, got_something: bool) -> bool {
        let Some(limit) = self.limit else { return false };
        let heads = self.phase.heads.count();
        if self.heads != heads {
            // The head that was waited for has come.
            (self.heads, self.has_begun, self.until, self.alarm) = (heads, false, None, None);
        }
        if self.phase.answering.load(Ordering::Relaxed) {
            return false;
        }
        // A part of it may have come while the request before it was answered.
        if (got_something || !self.kept.is_empty()) && !self.has_begun {
            (self.has_begun, self.until, self.alarm) = (true, Some(Instant::now() + limit), None);
        }
        let Some(until) = self.until else { return false };
        if got_something {
            // Whether it was the last piece is known at the next read.
            return Instant::now() >= until;
        }
        self.alarm.get_or_insert_with(|| Box::pin(sleep_until(until))).as_mut().poll(cx).is_ready()
    }

    /// Passes on what may be, as much as `buffer` takes; whether there was anything.
    fn pass_on(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        let Some(ready) = self.kept.get(self.gone..self.ready).filter(|ready| !ready.is_empty()) else { return false };
        let bytes = ready.len().min(buffer.remaining());
        buffer.put_slice(&ready[..bytes]);
        self.gone += bytes;
        if self.gone == self.ready {
            // Given back, and not kept for the next head: most connections are silent most of the time.
            self.kept = self.kept.split_off(self.ready);
            (self.ready, self.gone, self.looked) = (0, 0, 0);
        }
        true
    }

    /// Sees what of the kept bytes may be passed on.
    fn look(&mut self) {
        match self.inbound {
            Inbound::HeadSent => {}
            Inbound::Rest => self.ready = self.kept.len(),
            Inbound::Body(left) => {
                self.ready = usize::try_from(left).unwrap_or(usize::MAX).min(self.kept.len());
                self.inbound = behind(left, self.ready);
            }
            Inbound::Head => {
                let unseen = self.kept.get(self.looked..).unwrap_or_default();
                match self.scan.look(unseen) {
                    Found::End(at) => {
                        (self.ready, self.inbound) = (self.looked + at, Inbound::HeadSent);
                        self.passed_on += 1;
                    }
                    Found::Improper(at) => {
                        // hyper would take a line that ends so. This byte it takes nowhere, and says so in its turn.
                        if let Some(byte) = self.kept.get_mut(self.looked + at) {
                            *byte = 0;
                        }
                        (self.ready, self.inbound) = (self.kept.len(), Inbound::Rest);
                    }
                    Found::Nothing if self.kept.len() >= self.most => {
                        (self.ready, self.inbound) = (self.kept.len(), Inbound::Rest);
                    }
                    Found::Nothing => self.looked = self.kept.len(),
                }
            }
        }
    }
}

/// The state after `bytes` of a body of which `left` were left.
fn behind(left: u64, bytes: usize) -> Inbound {
    match left.saturating_sub(u64::try_from(bytes).unwrap_or(u64::MAX)) {
        0 => Inbound::Head,
        left => Inbound::Body(left),
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Headed<S> {
    /// What the stream gives, in time.
    fn poll_timely(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let got_something = buffer.filled().len() > before;
        let is_over = read.is_ready() && !got_something;
        if !is_over && self.is_late(cx, got_something) {
            if self.has_begun {
                metrics::rejected(Rejection::Head);
                // Small enough for any socket's buffer; a connection that takes no answer is closed all the same.
                let _ = Pin::new(&mut self.stream).poll_write(cx, TOO_LATE);
            }
            // Without a request there is no answer: it would be read as the answer to one that comes just now.
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the request's head took too long")));
        }
        read
    }

    /// Reads what still comes and drops it, until the client has closed. Closed with bytes unread, the connection would be reset,
    /// and the answer lost with it.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut dropped = [MaybeUninit::uninit(); PIECE];
        loop {
            if self.linger.get_or_insert_with(|| Box::pin(sleep(LINGER))).as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            let mut dropped = ReadBuf::uninit(&mut dropped);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut dropped)) {
                Ok(()) if !dropped.filled().is_empty() => {}
                Ok(()) | Err(_) => return Poll::Ready(()),
            }
        }
    }

    /// One more piece of a head, kept; whether the stream has more.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut piece = [MaybeUninit::uninit(); PIECE];
        let mut piece = ReadBuf::uninit(&mut piece);
        ready!(self.poll_timely(cx, &mut piece))?;
        self.kept.reserve_exact(piece.filled().len());
        self.kept.extend_from_slice(piece.filled());
        Poll::Ready(Ok(!piece.filled().is_empty()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Headed<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            if self.pass_on(buffer) {
                return Poll::Ready(Ok(()));
            }
            if self.inbound == Inbound::HeadSent {
                // A service that reads on before it knows what follows has refused the head, or ends it elsewhere.
                let unknown = || io::Error::new(io::ErrorKind::InvalidData, "what follows the head is unknown");
                self.inbound = self.phase.heads.behind(self.passed_on).ok_or_else(unknown)?;
            }
            if self.inbound == Inbound::Body(0) {
                self.inbound = Inbound::Head;
            }
            if self.kept.len() > self.looked {
                self.look();
                continue;
            }
            match self.inbound {
                Inbound::HeadSent => {}
                Inbound::Head => {
                    if !ready!(self.poll_piece(cx))? {
                        if self.kept.is_empty() {
                            return Poll::Ready(Ok(()));
                        }
                        // Half a head, and no more: for hyper to refuse.
                        (self.ready, self.inbound) = (self.kept.len(), Inbound::Rest);
                    }
                }
                Inbound::Rest => return self.poll_timely(cx, buffer),
                Inbound::Body(left) => {
                    let before = buffer.filled().len();
                    ready!(self.poll_timely(cx, buffer))?;
                    let came = buffer.filled().get(before..).unwrap_or_default();
                    let own = usize::try_from(left).unwrap_or(usize::MAX).min(came.len());
                    let next = came.get(own..).unwrap_or_default().to_vec();
                    buffer.set_filled(before + own);
                    (self.kept, self.inbound) = (next, behind(left, own));
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Headed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        }
        match self.inbound {
            Inbound::Body(1..) | Inbound::Rest => self.poll_linger(cx).map(Ok),
            Inbound::Head | Inbound::HeadSent | Inbound::Body(0) => Poll::Ready(Ok(())),
        }
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

    use super::*;

    /// What a client hears, until it is closed, that sends each of these after a while; a head may take five of these whiles,
    /// and the silence before it 15.
    async fn heard(sent: &[(u32, &str)]) -> String {
        let a_while = Duration::from_millis(20);
        let (server, client) = duplex(1024);
        let mut headed = Headed::new(server, Arc::default(), Some(a_while * 5), a_while * 15, 1024);
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
        let mut answer = String::new();
        let all = async { tokio::join!(serving, sending, reads.read_to_string(&mut answer)) };
        timeout(Duration::from_secs(20), all).await.unwrap().2.unwrap();
        answer
    }

    #[tokio::test]
    async fn a_connection_is_closed_that_never_asks_for_anything() {
        let late = String::from_utf8_lossy(TOO_LATE);
        assert_eq!(heard(&[]).await, "", "silent from the beginning, and no answer");
        assert_eq!(heard(&[(0, "GET")]).await, late, "a head that is begun at once and left");
        assert_eq!(heard(&[(8, "GET")]).await, late, "one that is begun late and left");
        assert_eq!(heard(&[(2, "G"), (2, "E"), (2, "T"), (2, " ")]).await, late, "bytes that come one by one");
    }
}
