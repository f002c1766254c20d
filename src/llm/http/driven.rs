//! The bytes of an answer, whose reader drives their connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures::Stream;
use hyper::body::Incoming;

use super::body::poll_piece;
use super::connection::Connection;
use super::pool::Host;

/// A body while it comes. At its end the connection goes back to its host; when it is dropped before that, the connection is
/// closed.
pub(super) struct Driven {
    /// `None` once it has ended, well or badly.
    body: Option<Incoming>,
    connection: Option<Connection>,
    host: Arc<Host>,
}

impl Driven {
    /// The `body` that comes on `connection` to `host`.
    pub(super) fn new(body: Incoming, connection: Connection, host: &Arc<Host>) -> Self {
        Self { body: Some(body), connection: Some(connection), host: Arc::clone(host) }
    }

    fn release(&mut self) {
        // Before the connection is looked at: hyper closes one whose body nobody wants, unless its end is there already.
        self.body = None;
        if let Some(mut connection) = self.connection.take()
            && connection.is_free()
        {
            self.host.keep(connection);
        }
    }
}

impl Stream for Driven {
    type Item = hyper::Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let driven = self.get_mut();
        let (Some(body), Some(connection)) = (&mut driven.body, &mut driven.connection) else {
            return Poll::Ready(None);
        };
        // hyper wakes whoever drives it whenever a piece is taken. Our own task must hear that no more than the rest, or it
        // would be run once more for each piece; it is wanted only where there is nothing left to read.
        let mut unheard = Context::from_waker(Waker::noop());
        let mut next = poll_piece(body, &mut unheard);
        if next.is_pending() {
            connection.drive(&mut unheard);
            next = poll_piece(body, &mut unheard);
        }
        if next.is_pending() {
            connection.drive(cx);
            next = poll_piece(body, &mut unheard);
        }
        if let Poll::Ready(None | Some(Err(_))) = next {
            driven.release();
        }
        next
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.release();
    }
}
