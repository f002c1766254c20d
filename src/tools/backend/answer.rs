//! The answer of a backend as HTTP has it: its head, its body up to a bound, and the words of one that is no good.

use std::time::Duration;

use bytes::BytesMut;
use futures::StreamExt;
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::BackendError;
use super::request::Request;
use super::secrets::Secrets;
use crate::bounded::intake::LARGE;
use crate::bounded::json::{self, JsonError, JsonText, NodeBudget, Wanted};
use crate::bounded::memory::Reservation;

/// How much of a backend's own error text the model gets to read, in bytes.
const ERROR_TEXT_BYTES: usize = 2048;

/// How much more of it is read, so that a repeated token (8 KiB at most) is seen whole before the text is cut.
pub(super) const MAX_ECHO_BYTES: usize = 8 * 1024;

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
}

impl Read {
    /// The `parts` of an answer's text, read in memory of `budget`. A text whose values would take too much is refused too.
    ///
    /// # Errors
    /// See [`JsonError`].
    pub fn new(text: String, parts: &Parts, budget: &mut NodeBudget) -> Result<Self, JsonError> {
        let text = if parts.text { kept(text, budget)? } else { text };
        let value = json::read(&text, &parts.values, budget)?;
        let text = if parts.text { Some(RawValue::from_string(text)?.into()) } else { None };
        Ok(Self { value, text })
    }
}

/// `text` as it is kept, which others read. It takes the place of `text` before there are values of it.
fn kept(text: String, budget: &mut NodeBudget) -> Result<String, JsonError> {
    json::fits(&text, 1)?;
    json::compact(&text, budget)
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
    let retry_after = later.and_then(|seconds| seconds.to_str().ok()?.trim().parse().ok()).map(Duration::from_secs);
    if status.is_redirection() {
        let text = "the backend answered with a redirect".to_owned();
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
