//! The answer of a backend as HTTP has it: its head, its body up to a bound, and the words of one that is no good.

use bytes::BytesMut;
use futures::StreamExt;
use jiff::Timestamp;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use reqwest::{Response, StatusCode, Url};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::error::BackendError;
use super::request::Request;
use super::secrets::Secrets;
use crate::bounded::intake::LARGE;
use crate::bounded::json::{self, JsonError, JsonText, NodeBudget, Wanted};
use crate::bounded::memory::Reservation;
use crate::bounded::retry_after::retry_after;

/// How much of a backend's own error text the model gets to read, in bytes.
const ERROR_TEXT_BYTES: usize = 2048;

/// How much more of it is read, so that a repeated token (8 KiB at most) is seen whole before the text is cut.
pub(super) const MAX_ECHO_BYTES: usize = 8 * 1024;

/// The longest address that a model is told, in bytes.
const MAX_LOCATION_BYTES: usize = 1024;

/// Room that a large answer gets at once, also when it has not said its length: as much as one may have by default. What is
/// not written takes no memory, and a buffer that doubles is there twice while it is moved.
const ROOM_BYTES: usize = 8 << 20;

/// The parts of an answer that its reader takes.
#[derive(Debug, Clone)]
pub struct Parts {
    /// Its values.
    pub values: Wanted,
    /// Whether its text as well.
    pub text: bool,
}

/// What is read of an answer.
#[derive(Debug)]
pub struct Read {
    /// The values that are wanted.
    pub value: Value,
    /// All of it as it is passed on, where that is wanted and it did not come in frames.
    pub text: Option<JsonText>,
    /// What its head says that a write has done, which counts where it has no body.
    pub done: Option<Value>,
}

impl Read {
    /// The `parts` of an answer's text, read in memory of `budget`. A text whose values would take too much is refused too.
    ///
    /// # Errors
    /// See [`JsonError`].
    pub fn new(text: String, parts: &Parts, budget: &mut NodeBudget) -> Result<Self, JsonError> {
        let text = if parts.text { kept(text, budget)? } else { text };
        let value = json::mended(&text, budget, |text, budget| json::read(text, &parts.values, budget))?;
        let text = if parts.text { Some(RawValue::from_string(text)?.into()) } else { None };
        Ok(Self { value, text, done: None })
    }
}

/// `text` as it is kept, which others read. It takes the place of `text` before there are values of it.
fn kept(text: String, budget: &mut NodeBudget) -> Result<String, JsonError> {
    json::mended(&text, budget, |text, budget| {
        json::fits(text, 1)?;
        json::compact(text, budget)
    })
}

/// What a write has done, as the head of its answer says it: where the new thing is, or where work is followed.
pub(super) fn done(response: &Response, secrets: &Secrets) -> Option<Value> {
    let word = match response.status() {
        StatusCode::CREATED => "done",
        StatusCode::ACCEPTED => "accepted",
        _ => return None,
    };
    let place = response.headers().get(LOCATION).or_else(|| response.headers().get("operation-location"))?;
    // What opens an address to whoever has it stands in its query.
    let place = place.to_str().ok()?.split(['?', '#']).next()?;
    // A path alone has no user.
    let place = secrets.removed(place);
    if Url::parse(&place).is_ok_and(|url| !url.username().is_empty() || url.password().is_some()) {
        return None;
    }
    (place.len() <= MAX_LOCATION_BYTES).then(|| json!({word: true, "location": place}))
}

/// What an answer says that it is, where that is no JSON that can be read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Other {
    /// A page.
    Page,
    /// It is compressed in this way.
    Compressed(&'static str),
}

impl Other {
    /// What `response` says.
    pub(super) fn of(response: &Response) -> Option<Self> {
        if has_type(response, "text/html") {
            return Some(Self::Page);
        }
        let encoding = response.headers().get(CONTENT_ENCODING)?.to_str().ok()?.trim();
        let mut known = ["gzip", "br", "deflate", "zstd", "compress"].into_iter();
        known.find(|known| encoding.eq_ignore_ascii_case(known)).map(Self::Compressed)
    }

    /// Why it could not be read, where it failed with `error`.
    pub(super) fn instead(this: Option<Self>, error: BackendError) -> BackendError {
        match (error, this) {
            (BackendError::NotJson(_), Some(Self::Page)) => BackendError::Page,
            (BackendError::NotJson(_), Some(Self::Compressed(how))) => BackendError::Compressed(how),
            (error, _) => error,
        }
    }
}

/// What is known of where a redirect leads; paths may be secrets. None is followed.
pub(in crate::tools) fn redirected_to(response: &Response) -> Option<&'static str> {
    let target = response.headers().get(LOCATION).filter(|_| response.status().is_redirection())?;
    let target = response.url().join(target.to_str().ok()?).ok()?;
    let here = response.url();
    Some(match target.origin() == here.origin() {
        true if target.path().trim_end_matches('/') == here.path().trim_end_matches('/') => {
            "the address is the same with a / at its end, or without"
        }
        true => "the server is at another path of this host",
        false if target.host() == here.host() => "the server is at another port or scheme of this host",
        false => "the server is at another host",
    })
}

/// `response`, unless its status says that it is no good answer.
pub(super) async fn good(
    response: Response,
    request: &Request<'_>,
    secrets: &Secrets,
) -> Result<Response, BackendError> {
    let status = response.status();
    let later = response.headers().get(RETRY_AFTER);
    let is_refusal = BackendError::says_not_done(status, later.is_some(), request.failed_statuses);
    let retry_after = retry_after(response.headers(), Timestamp::now());
    if status.is_redirection() {
        let to = redirected_to(&response).map_or_else(String::new, |to| format!(": {to}"));
        let text = format!("the backend answered with a redirect{to}");
        return Err(BackendError::Status { status, text, is_refusal, retry_after });
    }
    if !status.is_success() {
        let text = match has_type(&response, "text/html") {
            true => "(an HTML page)".to_owned(),
            // The status is what counts, even where its words do not arrive.
            false => match read_at_most(response, ERROR_TEXT_BYTES + MAX_ECHO_BYTES, None).await {
                Ok((bytes, _)) => error_text(&bytes, secrets),
                Err(error) => format!("({error})"),
            },
        };
        return Err(BackendError::Status { status, text, is_refusal, retry_after });
    }
    Ok(response)
}

/// Whether the answer says that it is of this type, whatever its parameters.
pub(super) fn has_type(response: &Response, wanted: &str) -> bool {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(wanted))
}

/// The error of an answer that stopped coming.
pub(super) fn broken(error: reqwest::Error) -> BackendError {
    match error.is_timeout() {
        true => BackendError::TimedOut(error.without_url()),
        false => BackendError::BrokeOff(error.without_url()),
    }
}

/// The body's first `max` bytes, and whether that is all of it. They are reserved as they come, or at once where their number
/// is known.
pub(super) async fn read_at_most(
    response: Response,
    max: usize,
    mut held: Option<&mut Reservation>,
) -> Result<(BytesMut, bool), BackendError> {
    let mut reserve = |bytes| held.as_mut().map_or(Ok(()), |held| held.grow(bytes));
    let mut reserved = response.content_length().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0).min(max);
    reserve(reserved).map_err(JsonError::from)?;
    // Where any length may come, one that is told may be of no answer at all.
    let mut body = BytesMut::with_capacity(reserved.min(ROOM_BYTES));
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(broken)?;
        let length = body.len() + chunk.len();
        if length > max {
            body.extend_from_slice(&chunk[..max - body.len()]);
            return Ok((body, false));
        }
        if length > reserved {
            reserve(length - reserved).map_err(JsonError::from)?;
            reserved = length;
        }
        if length > body.capacity() && length > LARGE {
            body.reserve((max - body.len()).min(ROOM_BYTES.max(length)));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((body, true))
}

/// The backend's own words, without the secrets of the request and not too many of them.
fn error_text(bytes: &[u8], secrets: &Secrets) -> String {
    let mut text = secrets.removed(String::from_utf8_lossy(bytes).trim()).into_owned();
    text.truncate(text.floor_char_boundary(ERROR_TEXT_BYTES));
    text
}
