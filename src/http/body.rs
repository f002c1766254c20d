//! What of a request is taken in: a head of bounded size, a body of bounded size in bounded time, JSON of bounded depth. The
//! memory for a body is reserved before it is there, of the process and of the user whose request it is ([`Taken`]).

use std::error::Error;
use std::future::{Future, poll_fn};
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use memchr::memchr2;
use tokio::time::{Instant, Sleep, sleep_until};

use super::Services;
use super::problem::Problem;
use super::share::{self, Slot};
use super::wire_info::WireInfo;
use crate::bounded::memory::{Kind, Memory, Reservation};

/// How deep the JSON of a body may be nested. serde stops at twice that, with an error for each dialect to tell; real bodies
/// have a tenth of it.
const MAX_DEPTH: usize = 64;

/// Bytes of a body that need no reservation: so many are its connection's, whose number is bounded, and who says little is
/// heard while others fill the memory.
const SMALL: usize = 4096;

/// 256 KiB a second is slow for a telephone.
const BYTES_A_SECOND: u64 = 256 << 10;

/// No body gets more than 5 minutes besides, however long it is.
const MOST_TIME: Duration = Duration::from_secs(300);

/// What a request's head has besides its names and values: the method's blank, ` HTTP/1.1`, and the ends of two lines.
const HEAD_REST: usize = 14;

/// What a request may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyBounds {
    /// Bytes of the head.
    pub(super) head_bytes: Option<usize>,
    /// Bytes of the body.
    pub(super) body_bytes: Option<usize>,
    /// For the whole body.
    pub(super) time: Option<Duration>,
}

/// Refuses a head that is too large, and gives the body its time.
pub(super) async fn layer(State(bounds): State<BodyBounds>, mut request: Request, next: Next) -> Response {
    if bounds.head_bytes.is_some_and(|most| head_bytes(&request) > most) {
        return Problem::head_too_large().into_response();
    }
    // RFC 9112, section 3.2: whoever stands before this server may have believed the other one.
    if request.headers().get_all(header::HOST).iter().nth(1).is_some() {
        return Problem::bad_request("Host must be given once").into_response();
    }
    request.extensions_mut().insert(bounds);
    let Some(time) = bounds.time.filter(|_| !request.body().is_end_stream()) else { return next.run(request).await };
    let (plain, said) = (Instant::now() + time, request.body().size_hint().exact().unwrap_or_default());
    let until = Box::pin(sleep_until(plain + time_for(said)));
    next.run(request.map(|body| Body::new(Timely { body, plain, said, heard: 0, until }))).await
}

/// The time that a body of so many bytes gets besides: a picture comes slowly over the line of a telephone.
fn time_for(bytes: u64) -> Duration {
    Duration::from_secs(bytes / BYTES_A_SECOND).min(MOST_TIME)
}

/// Refuses the head of an `OPTIONS` that is too large: with CORS no inner layer sees one.
pub(super) async fn preflight(State(bounds): State<BodyBounds>, request: Request, next: Next) -> Response {
    if request.method() == Method::OPTIONS && bounds.head_bytes.is_some_and(|most| head_bytes(&request) > most) {
        return Problem::head_too_large().into_response();
    }
    next.run(request).await
}

/// As it stood on the wire, where each header had one blank.
fn head_bytes(request: &Request) -> usize {
    let headers: usize = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    let target = request.uri().path_and_query().map_or(1, |target| target.as_str().len());
    request.method().as_str().len() + target + HEAD_REST + headers
}

/// A whole body, as it is: a compressed one is refused, and so is one of JSON that is nested too deep. Its memory counts
/// until this is dropped.
pub(super) struct Taken {
    bytes: Vec<u8>,
    _held: Held,
}

impl Deref for Taken {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl FromRequest<Services> for Taken {
    type Rejection = Problem;

    async fn from_request(request: Request, services: &Services) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        plain(&parts.headers)?;
        let of_wire = parts.extensions.get::<WireInfo>().map_or(0, |wire| wire.body_bytes);
        let most = parts.extensions.get::<BodyBounds>().and_then(|bounds| bounds.body_bytes);
        let most = most.map_or(usize::MAX, |most| most.max(of_wire));
        let taken = read(body, most, Held::nothing(services.intake.memory(), parts.extensions.get::<Slot>())?).await?;
        let says_json = parts.extensions.get::<WireInfo>().is_some_and(|wire| wire.says_json);
        if says_json && !taken.is_empty() && !is_json(&parts.headers) {
            return Err(Problem::not_json("Content-Type must be application/json"));
        }
        let bytes = taken.len();
        let look = move || (is_deeper_than(MAX_DEPTH, &taken), taken);
        match services.intake.work(bytes, look).await {
            (true, _) => Err(Problem::too_deep(MAX_DEPTH)),
            (false, taken) => Ok(taken),
        }
    }
}

/// Goes on where a body is plain.
///
/// # Errors
/// When it is compressed.
pub(super) fn plain(headers: &HeaderMap) -> Result<(), Problem> {
    match headers
        .get(header::CONTENT_ENCODING)
        .is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
    {
        true => Err(Problem::encoded_body()),
        false => Ok(()),
    }
}

/// Whether the headers say that a body is JSON.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

/// The whole of `body`, of at most `most` bytes. Where its length is known, all of it is reserved at once.
async fn read(mut body: Body, most: usize, mut held: Held) -> Result<Taken, Problem> {
    let too_large = || Problem::body(StatusCode::PAYLOAD_TOO_LARGE);
    let length = body.size_hint().exact().unwrap_or_default();
    let length = usize::try_from(length).ok().filter(|length| *length <= most).ok_or_else(too_large)?;
    held.grow(length.saturating_sub(SMALL))?;
    let mut bytes = Vec::with_capacity(length.max(SMALL));
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let Ok(piece) = frame.map_err(|error| unread(&error))?.into_data() else { continue };
        let length = bytes.len().saturating_add(piece.len());
        if length > most {
            return Err(too_large());
        }
        if let Some(missing) = length.checked_sub(bytes.capacity()).filter(|missing| *missing > 0) {
            // As much again, so that a long body in small pieces is not moved for each of them.
            let more = missing.max(bytes.len()).min(most - bytes.capacity());
            held.grow(more)?;
            bytes.reserve_exact(bytes.capacity() + more - bytes.len());
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(Taken { bytes, _held: held })
}

/// The body of somebody without a token, of at most `most` bytes. Nothing is reserved for it, since nobody can be counted: it takes
/// as much memory as has come of it, and belongs to its connection, as a small body does.
pub(super) async fn of_stranger(mut body: Body, most: usize) -> Result<Vec<u8>, Problem> {
    let too_large = || Problem::bad_request("the body is larger than any real one");
    if body.size_hint().lower() > most as u64 {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let Ok(piece) = frame.map_err(|error| unread(&error))?.into_data() else { continue };
        if bytes.len() + piece.len() > most {
            return Err(too_large());
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// Memory of the process, counted for one user.
pub(super) struct Held {
    memory: Reservation,
    share: Option<share::Bytes>,
}

impl Held {
    fn nothing(memory: &Memory, slot: Option<&Slot>) -> Result<Self, Problem> {
        let share = slot.map(|slot| slot.bytes(0)).transpose()?;
        Ok(Self { memory: memory.reserve(Kind::Body, 0)?, share })
    }

    fn grow(&mut self, more: usize) -> Result<(), Problem> {
        if let Some(share) = &mut self.share {
            share.grow(more)?;
        }
        Ok(self.memory.grow(more)?)
    }
}

/// Whether `json` has more than `most` lists and objects in each other. Brackets in texts do not count. The result for
/// invalid JSON has no meaning: the parser refuses it.
fn is_deeper_than(most: usize, json: &[u8]) -> bool {
    let (mut depth, mut rest) = (0_usize, json);
    while let [byte, behind @ ..] = rest {
        rest = behind;
        match byte {
            b'"' => rest = behind_text(behind),
            b'[' | b'{' => {
                depth += 1;
                if depth > most {
                    return true;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// What stands behind the quote that ends a text.
fn behind_text(mut json: &[u8]) -> &[u8] {
    while let Some(at) = memchr2(b'"', b'\\', json) {
        json = match &json[at..] {
            [b'"', behind @ ..] => return behind,
            // A back-slash, and what it stands before.
            [_, _, behind @ ..] => behind,
            [..] => break,
        };
    }
    &[]
}

/// A body that has to be there in time. The time is one for all of it, by the length that it says or has come to: bytes that
/// come one by one do not make it longer.
struct Timely {
    body: Body,
    /// Its end without what a long one gets besides.
    plain: Instant,
    /// The bytes that it says it has; 0 where it does not say.
    said: u64,
    /// The bytes that have come.
    heard: u64,
    until: Pin<Box<Sleep>>,
}

#[derive(Debug, thiserror::Error)]
#[error("the body took too long")]
struct Late;

impl HttpBody for Timely {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(frame) => {
                if let Some(bytes) = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()) {
                    self.heard = self.heard.saturating_add(bytes.len() as u64);
                    let end = self.plain + time_for(self.heard.max(self.said));
                    if end > self.until.deadline() {
                        self.until.as_mut().reset(end);
                    }
                }
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
            Poll::Pending => self.until.as_mut().poll(cx).map(|()| Some(Err(Late.into()))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Why a body could not be taken from its connection.
pub(super) fn unread(error: &(dyn Error + 'static)) -> Problem {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<Late>() {
            return Problem::body_too_late();
        }
        cause = error.source();
    }
    Problem::body(StatusCode::BAD_REQUEST)
}

#[cfg(test)]
mod tests {
    use super::{MAX_DEPTH, is_deeper_than};

    #[test]
    fn depth_is_that_of_lists_and_objects_in_each_other() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let rows = [
            (nested(MAX_DEPTH), false, "as deep as may be"),
            (nested(MAX_DEPTH + 1), true, "one deeper"),
            ("[".repeat(100_000), true, "never closed"),
            ("]".repeat(1000) + &nested(MAX_DEPTH), false, "closed more often than opened: no JSON"),
            ("[]".repeat(1000), false, "beside each other"),
            (format!("{{\"a\":\"{}\"}}", "[".repeat(1000)), false, "in a text"),
            (format!(r#"{{"a":"\"{}"}}"#, "[".repeat(1000)), false, "in a text, behind a quote"),
            (format!(r#"{{"a":"\\",{}"#, "[".repeat(1000)), true, "behind a text that ends with a backslash"),
            (r#"{"a":"#.repeat(MAX_DEPTH + 1), true, "objects"),
        ];
        for (json, expected, reason) in rows {
            assert_eq!(is_deeper_than(MAX_DEPTH, json.as_bytes()), expected, "{reason}");
        }
    }
}
