//! The bytes of an answer, and how long they may take.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use hyper::Response;
use hyper::body::Body as HttpBody;
use jiff::Timestamp;
use reqwest::Url;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use crate::agent::ports::llm::{ProviderError, ProviderErrorKind};
use crate::llm::failure;

/// 10 s for the body of an error, which is small.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// 64 KiB of an error's body are read; only its message is kept.
const MAX_ERROR_BODY_BYTES: usize = 64 << 10;

/// A body while it comes; dropping it closes the connection.
pub(crate) type Body = BoxStream<'static, Result<Bytes, ProviderError>>;

/// The next bytes of `body`; what may follow them in HTTP is of no use here. An error says that it broke off.
fn poll_piece(body: &mut reqwest::Body, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ProviderError>>> {
    loop {
        match ready!(Pin::new(&mut *body).poll_frame(cx)) {
            Some(Ok(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    return Poll::Ready(Some(Ok(bytes)));
                }
            }
            Some(Err(error)) => {
                let error = ProviderError::new(ProviderErrorKind::Truncated, error.without_url());
                return Poll::Ready(Some(Err(error)));
            }
            None => return Poll::Ready(None),
        }
    }
}

/// The bytes of `body`: the first until `first_byte`, each further piece within `idle` of the one before it.
pub(super) fn timed(body: reqwest::Body, first_byte: Option<Instant>, idle: Option<Duration>) -> Body {
    let alarm = Box::pin(sleep_until(first_byte.unwrap_or_else(Instant::now)));
    Timed { bytes: Some(body), idle, deadline: first_byte, what: "first byte", alarm }.boxed()
}

/// A body while it comes. Its one timer is not set anew for every piece: when it rings, it looks whether the time is
/// really up.
struct Timed {
    /// `None` once it has failed.
    bytes: Option<reqwest::Body>,
    idle: Option<Duration>,
    /// When the next piece must be there.
    deadline: Option<Instant>,
    /// Its name, for errors.
    what: &'static str,
    alarm: Pin<Box<Sleep>>,
}

impl Stream for Timed {
    type Item = Result<Bytes, ProviderError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { bytes, idle, deadline, what, alarm } = self.get_mut();
        let Some(coming) = bytes else { return Poll::Ready(None) };
        if let Poll::Ready(next) = poll_piece(coming, cx) {
            *what = "next byte";
            *deadline = idle.and_then(|idle| Instant::now().checked_add(idle));
            // The first byte may have had longer than any later one has.
            if let Some(deadline) = deadline.filter(|deadline| *deadline < alarm.deadline()) {
                alarm.as_mut().reset(deadline);
            }
            if let Some(Err(_)) = next {
                *bytes = None;
            }
            return Poll::Ready(next);
        }
        while let Some(deadline) = *deadline {
            ready!(alarm.as_mut().poll(cx));
            if Instant::now() >= deadline {
                *bytes = None;
                return Poll::Ready(Some(Err(timed_out(what))));
            }
            alarm.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

/// The error of an answer from `url` that is no success.
pub(super) async fn refusal(answer: Response<reqwest::Body>, url: &Url) -> ProviderError {
    let (head, mut source) = answer.into_parts();
    let mut body = Vec::new();
    // A body that does not come, or breaks off, leaves the status to speak for itself.
    let _ = timeout(ERROR_BODY_TIMEOUT, async {
        while let Some(Ok(bytes)) = poll_fn(|cx| poll_piece(&mut source, cx)).await {
            let space = MAX_ERROR_BODY_BYTES - body.len();
            body.extend_from_slice(&bytes[..bytes.len().min(space)]);
            if body.len() == MAX_ERROR_BODY_BYTES {
                break;
            }
        }
    })
    .await;
    failure::of_status(head.status, &head.headers, &body, url, Timestamp::now())
}

/// The error of an answer whose `what` is late.
pub(super) fn timed_out(what: &'static str) -> ProviderError {
    ProviderError::new(ProviderErrorKind::TimedOut, format!("the {what} did not come in time"))
}
