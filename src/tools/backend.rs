//! The one client of the REST backend. It sends the caller's bearer verbatim, only to the configured origin, and never
//! follows a redirect; whatever comes back that is not JSON of bounded size is an error the model can read.

use std::time::Duration;

use bytes::BytesMut;
use futures::StreamExt;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, StatusCode, Url};
use serde_json::Value;

use crate::chat::caller::Caller;

/// How much of a backend's own error text the model gets to read, in bytes.
const ERROR_TEXT_BYTES: usize = 2048;

/// How much more of it is read, so that a repeated token (8 KiB at most) is seen whole before the text is cut.
const MAX_ECHO_BYTES: usize = 8 * 1024;

/// The longest part of a path: far above any id or name, far below what servers accept as a request line.
const MAX_SEGMENT_BYTES: usize = 1024;

/// What stands in place of a caller's token that a backend repeats.
const REDACTED: &str = "[redacted]";

/// Reaches one backend.
#[derive(Debug, Clone)]
pub struct Backend {
    http: reqwest::Client,
    base: Url,
    max_answer_bytes: usize,
}

/// What is done to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// `GET`.
    Get,
    /// `POST`.
    Post,
    /// `PUT`.
    Put,
    /// `PATCH`.
    Patch,
    /// `DELETE`.
    Delete,
}

impl Verb {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Get, Self::Post, Self::Put, Self::Patch, Self::Delete];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    fn method(self) -> Method {
        match self {
            Self::Get => Method::GET,
            Self::Post => Method::POST,
            Self::Put => Method::PUT,
            Self::Patch => Method::PATCH,
            Self::Delete => Method::DELETE,
        }
    }
}

/// One request, its path and query still unencoded: whatever a model put into them stays inside its segment or value.
#[derive(Debug)]
pub struct Request<'a> {
    verb: Verb,
    segments: Vec<&'a str>,
    query: Vec<(&'a str, &'a str)>,
    body: Option<&'a Value>,
    idempotency_key: Option<&'a str>,
}

impl<'a> Request<'a> {
    /// `verb` on the path made of `segments`.
    pub fn new(verb: Verb, segments: impl IntoIterator<Item = &'a str>) -> Self {
        let segments = segments.into_iter().collect();
        Self { verb, segments, query: Vec::new(), body: None, idempotency_key: None }
    }

    /// `GET` of the path made of `segments`.
    pub fn get(segments: impl IntoIterator<Item = &'a str>) -> Self {
        Self::new(Verb::Get, segments)
    }

    /// `POST` of `body` as JSON.
    pub fn post(segments: impl IntoIterator<Item = &'a str>, body: &'a Value) -> Self {
        Self::new(Verb::Post, segments).body(body)
    }

    /// `PUT` of `body` as JSON.
    pub fn put(segments: impl IntoIterator<Item = &'a str>, body: &'a Value) -> Self {
        Self::new(Verb::Put, segments).body(body)
    }

    /// Adds a body, sent as JSON.
    pub fn body(mut self, body: &'a Value) -> Self {
        self.body = Some(body);
        self
    }

    /// Adds an `Idempotency-Key`, by which a backend can tell a repeated save from a second one.
    pub fn idempotency_key(mut self, key: &'a str) -> Self {
        self.idempotency_key = Some(key);
        self
    }

    /// Adds a query parameter.
    pub fn query(mut self, key: &'a str, value: &'a str) -> Self {
        self.query.push((key, value));
        self
    }
}

/// A backend call that failed, in words for the model.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// A path segment that would leave its place, such as `..`.
    #[error("{0:?} cannot be part of a path")]
    BadSegment(String),
    /// The backend could not be reached.
    #[error("the backend could not be reached")]
    Unreachable(#[source] reqwest::Error),
    /// No answer in time.
    #[error("the backend did not answer in time")]
    TimedOut(#[source] reqwest::Error),
    /// The connection broke inside the answer.
    #[error("the backend's answer broke off")]
    BrokeOff(#[source] reqwest::Error),
    /// A status of 400 and up, or a redirect.
    #[error("HTTP {}: {text}", status.as_u16())]
    Status {
        /// The status.
        status: StatusCode,
        /// The backend's words, cut.
        text: String,
    },
    /// The answer is larger than the cap.
    #[error("the backend's answer is larger than {max_bytes} bytes")]
    TooLarge {
        /// The cap.
        max_bytes: usize,
    },
    /// A good status with something else than JSON.
    #[error("the backend's answer is not JSON")]
    NotJson(#[source] serde_json::Error),
    /// JSON of another shape than documented.
    #[error("the backend's answer has an unexpected shape: {0}")]
    Shape(String),
}

impl BackendError {
    /// Whether the backend has no such thing (404).
    pub fn is_not_found(&self) -> bool {
        self.has_status(StatusCode::NOT_FOUND)
    }

    /// Whether the caller may not do this (403).
    pub fn is_forbidden(&self) -> bool {
        self.has_status(StatusCode::FORBIDDEN)
    }

    /// Whether the backend itself said no, or was never reached, so that nothing was changed. After any other failure a
    /// write may or may not have happened.
    pub fn proves_nothing_was_done(&self) -> bool {
        match self {
            Self::BadSegment(_) => true,
            // What gateways say that lost sight of their backend (408, 502, 504, 52x) tells nothing about what it did.
            Self::Status { status, .. } => match status.as_u16() {
                408 => false,
                status => matches!(status, 300..500 | 500 | 501 | 503),
            },
            Self::Unreachable(error) => error.is_connect(),
            Self::TimedOut(_) | Self::BrokeOff(_) | Self::TooLarge { .. } | Self::NotJson(_) | Self::Shape(_) => false,
        }
    }

    fn has_status(&self, wanted: StatusCode) -> bool {
        matches!(self, Self::Status { status, .. } if *status == wanted)
    }
}

impl Backend {
    /// A client for the API root `base`. `timeout` bounds a whole call; `max_answer_bytes` its answer.
    ///
    /// # Errors
    /// When the TLS setup fails.
    pub fn new(base: Url, timeout: Option<Duration>, max_answer_bytes: usize) -> Result<Self, reqwest::Error> {
        let mut builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            // A proxy named in the environment would see the caller's token.
            .no_proxy()
            .connect_timeout(Duration::from_secs(10));
        if let Some(timeout) = timeout {
            builder = builder.timeout(timeout);
        }
        Ok(Self { http: builder.build()?, base, max_answer_bytes })
    }

    /// The backend's JSON answer; `Value::Null` for one without a body.
    ///
    /// # Errors
    /// See [`BackendError`].
    pub async fn call(&self, caller: &Caller, request: Request<'_>) -> Result<Value, BackendError> {
        let url = self.url(&request)?;
        let mut builder = self.http.request(request.verb.method(), url).header(ACCEPT, "application/json");
        if let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {}", caller.bearer.expose())) {
            value.set_sensitive(true);
            builder = builder.header(AUTHORIZATION, value);
        }
        if let Some(key) = request.idempotency_key {
            builder = builder.header("idempotency-key", key);
        }
        if let Some(body) = request.body {
            builder = builder.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }
        let response = builder.send().await.map_err(|error| match error.is_timeout() {
            true => BackendError::TimedOut(error.without_url()),
            false => BackendError::Unreachable(error.without_url()),
        })?;

        let status = response.status();
        let is_html = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.starts_with("text/html"));
        if status.is_redirection() {
            return Err(BackendError::Status { status, text: "the backend answered with a redirect".to_owned() });
        }
        if !status.is_success() {
            let text = match is_html {
                true => "(an HTML page)".to_owned(),
                // The status is what counts, even where its words do not arrive.
                false => match read_at_most(response, ERROR_TEXT_BYTES + MAX_ECHO_BYTES).await {
                    Ok((bytes, _)) => error_text(&bytes, caller.bearer.expose()),
                    Err(error) => format!("({error})"),
                },
            };
            return Err(BackendError::Status { status, text });
        }
        let (bytes, whole) = read_at_most(response, self.max_answer_bytes).await?;
        if !whole {
            return Err(BackendError::TooLarge { max_bytes: self.max_answer_bytes });
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Value::Null);
        }
        // A backend that repeats the request's token must not get it to the model and into the transcript.
        let token = caller.bearer.expose();
        match std::str::from_utf8(&bytes) {
            Ok(text) if text.contains(token) => serde_json::from_str(&text.replace(token, REDACTED)),
            Ok(_) | Err(_) => serde_json::from_slice(&bytes),
        }
        .map_err(BackendError::NotJson)
    }

    fn url(&self, request: &Request<'_>) -> Result<Url, BackendError> {
        let mut url = self.base.clone();
        {
            let Ok(mut path) = url.path_segments_mut() else {
                return Err(BackendError::BadSegment(self.base.to_string()));
            };
            path.pop_if_empty();
            for segment in &request.segments {
                // The URL standard resolves dot segments even when they are percent-encoded, so they cannot be sent.
                // It also drops tabs and line ends before it looks for dots, so that `.\t.` would be one.
                let is_usable =
                    !segment.is_empty() && segment.len() <= MAX_SEGMENT_BYTES && !segment.contains(['\t', '\n', '\r']);
                if !is_usable || matches!(*segment, "." | "..") {
                    return Err(BackendError::BadSegment(segment.chars().take(60).collect()));
                }
                path.push(segment);
            }
        }
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&request.query);
        }
        Ok(url)
    }
}

/// The body's first `max` bytes, and whether that is all of it.
async fn read_at_most(response: reqwest::Response, max: usize) -> Result<(BytesMut, bool), BackendError> {
    let mut body = BytesMut::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| match error.is_timeout() {
            true => BackendError::TimedOut(error.without_url()),
            false => BackendError::BrokeOff(error.without_url()),
        })?;
        if body.len() + chunk.len() > max {
            body.extend_from_slice(&chunk[..max - body.len()]);
            return Ok((body, false));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((body, true))
}

/// The backend's own words, without the caller's token and not too many of them.
fn error_text(bytes: &[u8], token: &str) -> String {
    let mut text = String::from_utf8_lossy(bytes).trim().replace(token, REDACTED);
    text.truncate(text.floor_char_boundary(ERROR_TEXT_BYTES));
    text
}
