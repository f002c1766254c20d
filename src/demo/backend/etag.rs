//! Versions of records: an `ETag` with each that is read alone or saved, and `If-Match` for who saves over what they have read.

use std::convert::Infallible;

use aws_lc_rs::digest::{SHA256, digest};
use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::error::{ApiError, Code};

/// The version of `record`: a digest of all of it.
pub fn etag(record: &impl Serialize) -> String {
    let text = serde_json::to_vec(record).unwrap_or_default();
    let hex: String = digest(&SHA256, &text).as_ref().iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{hex}\"")
}

/// `body` with the version of the record that it shows.
pub fn tagged(version: String, body: &impl Serialize) -> Response {
    ([(ETAG, version)], Json(body)).into_response()
}

/// All of `record`, with its version.
pub fn whole(record: &impl Serialize) -> Response {
    tagged(etag(record), record)
}

/// What the request says it has read; `None` where it does not care.
#[derive(Debug)]
pub struct IfMatch(Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let given = parts.headers.get(IF_MATCH);
        Ok(Self(given.map(|value| value.to_str().unwrap_or_default().to_owned())))
    }
}

impl IfMatch {
    /// Nothing, when the record is at the version that was read.
    ///
    /// # Errors
    /// `precondition_failed` when it is at another.
    pub fn require(&self, version: &str) -> Result<(), ApiError> {
        let Some(given) = &self.0 else { return Ok(()) };
        match given.split(',').map(str::trim).any(|tag| tag == "*" || tag == version) {
            true => Ok(()),
            false => Err(ApiError::new(Code::PreconditionFailed, "somebody has changed the record since it was read")),
        }
    }
}
