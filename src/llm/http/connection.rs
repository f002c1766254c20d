//! A connection over plain HTTP/1.1 that has no task of its own: whoever waits for its answer moves its bytes. With a task of
//! its own the two would take turns for every chunk of the answer, which costs more than all that is done with a chunk.
//!
//! **Invariant:** what hyper hands over is made while its connection is driven, and by nothing else. So nobody has to be woken
//! for it; only the socket wakes.

use std::pin::{Pin, pin};
use std::task::{Context, Waker};

use bytes::Bytes;
use futures::future::poll_fn;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// A request, with its body whole.
pub(super) type Asked = Request<Full<Bytes>>;

/// A connection that is open, or was so a moment ago.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// `None` once it has ended, and its socket is closed.
    driver: Option<Box<http1::Connection<TokioIo<TcpStream>, Full<Bytes>>>>,
}

/// Why a request has no answer.
pub(super) struct Unanswered {
    pub(super) error: hyper::Error,
    /// The request, where nothing of it was sent.
    pub(super) unsent: Option<Box<Asked>>,
}

impl Connection {
    /// The connection over `socket`.
    pub(super) async fn over(socket: TokioIo<TcpStream>) -> hyper::Result<Self> {
        let (sender, driver) = http1::handshake(socket).await?;
        Ok(Self { sender, driver: Some(Box::new(driver)) })
    }

    /// The answer to `request`, as soon as its head is there.
    pub(super) async fn ask(&mut self, request: Asked) -> Result<Response<Incoming>, Unanswered> {
        let mut answer = pin!(self.sender.try_send_request(request));
        let answer = poll_fn(|cx| {
            self.drive(cx);
            answer.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        });
        answer.await.map_err(|mut failed| {
            let unsent = failed.take_message().map(Box::new);
            Unanswered { error: failed.into_error(), unsent }
        })
    }

    /// Moves what can be moved. What goes wrong is found by whoever waits for the answer or reads it.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && Pin::new(&mut **driver).poll(cx).is_ready()
        {
            self.driver = None;
        }
    }

    /// Whether it can take another request, after a look at what the server has done meanwhile.
    pub(super) fn is_free(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.driver.is_some() && self.sender.is_ready()
    }
}
