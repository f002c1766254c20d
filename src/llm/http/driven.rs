//! The bytes of an answer, whose reader drives their connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use futures::Stream;
use http::Response;

use super::broken::Broken;
use super::connection::Connection;
use super::framing::{Framing, Step};
use super::head::RequestHead;
use super::pool::{Host, SendError};

impl Host {
    /// The answer to `request`, as soon as its head is there.
    ///
    /// # Errors
    /// When there is no connection, or it ends without an answer.
    pub(super) async fn send(self: &Arc<Self>, request: RequestHead) -> Result<Response<Driven>, SendError> {
        let mut connection = self.ask(&request).await?;
        // While the model thinks, nobody needs it.
        drop(request);
        let answer = connection.answer().await.map_err(SendError::Unanswered)?;
        Ok(answer.map(|framing| Driven::new(framing, connection, self)))
    }
}

/// A body while it comes. At its end the connection goes back to its host; when it is dropped before that, the connection is
/// closed.
pub(super) struct Driven {
    framing: Framing,
    /// `None` once the body has ended, well or badly.
    connection: Option<Connection>,
    host: Arc<Host>,
}

impl Driven {
    /// The body, as `framing` says, that comes on `connection` to `host`.
    pub(super) fn new(framing: Framing, connection: Connection, host: &Arc<Host>) -> Self {
        Self { framing, connection: Some(connection), host: Arc::clone(host) }
    }

    /// The next piece, or `None` where the body is whole.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Broken>> {
        let Some(connection) = &mut self.connection else { return Poll::Ready(Ok(None)) };
        loop {
            match self.framing.next(&mut connection.unread)? {
                Step::Piece(piece) => return Poll::Ready(Ok(Some(piece))),
                Step::End => return Poll::Ready(Ok(None)),
                // Nothing is left of what was read; its memory goes with it.
                Step::More => connection.unread = Bytes::new(),
            }
            let bytes = ready!(connection.poll_read(cx))?;
            if bytes.is_empty() {
                return Poll::Ready(if self.framing.is_until_close() { Ok(None) } else { Err(Broken::Ended) });
            }
            connection.unread = bytes.freeze();
        }
    }
}

impl Stream for Driven {
    type Item = Result<Bytes, Broken>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let driven = self.get_mut();
        let next = ready!(driven.poll_piece(cx)).transpose();
        if let None | Some(Err(_)) = next
            && let Some(connection) = driven.connection.take()
            && next.is_none()
            && connection.is_free()
        {
            driven.host.keep(connection);
        }
        Poll::Ready(next)
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        // Whoever has read all that they want may leave the end of the body unread. Where it is there, the connection is kept.
        let mut nobody = Context::from_waker(Waker::noop());
        let _ = Pin::new(self).poll_next(&mut nobody);
    }
}
