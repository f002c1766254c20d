//! A request to the backend as data, its path and query still unencoded: whatever a model put into them stays inside its
//! segment or value.

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;

/// The methods of a request.
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

    /// Whether what it says goes into a body.
    pub fn has_body(self) -> bool {
        match self {
            Self::Get | Self::Delete => false,
            Self::Post | Self::Put | Self::Patch => true,
        }
    }

    pub(super) fn method(self) -> Method {
        match self {
            Self::Get => Method::GET,
            Self::Post => Method::POST,
            Self::Put => Method::PUT,
            Self::Patch => Method::PATCH,
            Self::Delete => Method::DELETE,
        }
    }
}

/// One request.
#[derive(Debug)]
pub struct Request<'a> {
    pub(super) verb: Verb,
    pub(super) segments: Vec<&'a str>,
    pub(super) query: Vec<(&'a str, &'a str)>,
    pub(super) headers: Vec<(&'a str, &'a str)>,
    pub(super) body: Option<&'a Value>,
    pub(super) content_type: &'a str,
    pub(super) accept: Option<&'a str>,
    pub(super) idempotency_key: Option<&'a str>,
    pub(super) timeout: Option<Duration>,
    pub(super) failed_statuses: &'a [u16],
}

impl<'a> Request<'a> {
    /// `verb` on the path made of `segments`.
    pub fn new(verb: Verb, segments: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            verb,
            segments: segments.into_iter().collect(),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
            content_type: "application/json",
            accept: None,
            idempotency_key: None,
            timeout: None,
            failed_statuses: &[],
        }
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

    /// Names the kind of JSON that the body is.
    pub fn content_type(mut self, content_type: &'a str) -> Self {
        self.content_type = content_type;
        self
    }

    /// Names what answers are wanted, where that is not what whoever sends it reads.
    pub fn accept(mut self, accept: &'a str) -> Self {
        self.accept = Some(accept);
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

    /// Adds a header; one that cannot be sent is an error of the call.
    pub fn header(mut self, name: &'a str, value: &'a str) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Names statuses with which the backend says that nothing was done, beside those of which that is plain.
    pub fn failed_statuses(mut self, statuses: &'a [u16]) -> Self {
        self.failed_statuses = statuses;
        self
    }

    /// Bounds the whole call otherwise than the backend's settings.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}
