//! A connection over plain HTTP/1.1 that has no task of its own: whoever waits for its answer moves its bytes. With a task of
//! its own the two would take turns for every chunk of the answer, which costs more than all that is done with a chunk.
//!
//! **Invariant:** while nothing comes, a connection holds no memory but its own few fields. What is read into is taken when
//! there is something to read, and whoever gets the bytes shares it.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::buf::Chain;
use bytes::{Buf, Bytes, BytesMut};
use hyper::Response;
use tokio::net::TcpStream;
use tokio_util::io::{poll_read_buf, poll_write_buf};

use super::broken::Broken;
use super::broken::MAX_HEAD_BYTES;
use super::framing::Framing;
use super::head::{RequestHead, take_answer};

/// 8 KiB are read at once: forty chunks of an answer, of which one or two come at a time.
const READ_BYTES: usize = 8 << 10;

/// 1 KiB of a head: no longer one is tried at each of its bytes, so that what is no HTTP is known at once.
const SHORT_HEAD_BYTES: usize = 1 << 10;

/// A connection that is open, or was so a moment ago.
pub(super) struct Connection {
    socket: TcpStream,
    /// What the system has not taken of the request yet: its head and its body.
    unwritten: Option<Box<Chain<Bytes, Bytes>>>,
    /// What was read and belongs to nobody yet.
    pub(super) unread: Bytes,
    /// Whether it takes no request after this one.
    is_last: bool,
}

impl Connection {
    /// The connection over `socket`.
    pub(super) fn over(socket: TcpStream) -> Self {
        Self { socket, unwritten: None, unread: Bytes::new(), is_last: false }
    }

    /// Sends `request`, or the beginning of it; [`Self::answer`] and [`Self::poll_read`] send the rest.
    ///
    /// # Errors
    /// When the system took nothing of it, so that the server has seen none.
    pub(super) async fn ask(&mut self, request: &RequestHead) -> io::Result<()> {
        let mut unwritten = request.head().chain(request.body.clone());
        let written = poll_fn(|cx| poll_write_buf(Pin::new(&mut self.socket), cx, &mut unwritten)).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.unwritten = unwritten.has_remaining().then(|| Box::new(unwritten));
        Ok(())
    }

    /// The answer, as soon as its head is there.
    ///
    /// # Errors
    /// When the connection ends before that, or what comes is no answer.
    pub(super) async fn answer(&mut self) -> Result<Response<Framing>, Broken> {
        let mut head = BytesMut::new();
        let mut length = 0;
        loop {
            let bytes = poll_fn(|cx| self.poll_read(cx)).await?;
            if bytes.is_empty() {
                return Err(Broken::Ended);
            }
            length += bytes.len();
            // A long head that comes byte by byte is not parsed anew for each of them: only the end of a line can be its end.
            let may_be_whole = length <= SHORT_HEAD_BYTES || memchr::memchr(b'\n', &bytes).is_some();
            head.unsplit(bytes);
            if may_be_whole && let Some(answer) = take_answer(&mut head)? {
                self.unread = head.freeze();
                self.is_last |= answer.is_last;
                return Ok(answer.response);
            }
            if length > MAX_HEAD_BYTES {
                return Err(Broken::HeadTooLong);
            }
        }
    }

    /// What comes next; nothing where the server has closed. Meanwhile what is left of the request is sent: a server may
    /// answer before it has read it all.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<BytesMut>> {
        self.write(cx);
        ready!(self.socket.poll_read_ready(cx))?;
        let mut bytes = BytesMut::with_capacity(READ_BYTES);
        // A read that does not fill the buffer tells tokio that there is no more: it is not tried again before something comes.
        ready!(poll_read_buf(Pin::new(&mut self.socket), cx, &mut bytes))?;
        Poll::Ready(Ok(bytes))
    }

    fn write(&mut self, cx: &mut Context<'_>) {
        while let Some(unwritten) = &mut self.unwritten {
            match poll_write_buf(Pin::new(&mut self.socket), cx, unwritten) {
                Poll::Pending => return,
                Poll::Ready(Ok(written)) if written > 0 => {}
                Poll::Ready(_) => {
                    // There may be an answer nevertheless: that the request is too large. If there is none, reading fails too.
                    (self.unwritten, self.is_last) = (None, true);
                    return;
                }
            }
            if !unwritten.has_remaining() {
                self.unwritten = None;
            }
        }
    }

    /// Whether it can take another request, its last answer having ended; after a look at what the server has done meanwhile.
    pub(super) fn is_free(&self) -> bool {
        let is_done = !self.is_last && self.unwritten.is_none() && self.unread.is_empty();
        is_done && self.socket.try_read(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}
