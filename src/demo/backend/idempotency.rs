//! `Idempotency-Key`: a write that comes again with its key is answered as it was the first time, and done once.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequest, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::caller::Member;
use super::error::{ApiError, Code};
use super::records::answers::Answer;
use super::state::Demo;

/// The longest key that is taken.
const MAX_KEY: usize = 255;

/// Lets a write through whose key is new, and answers one whose key is known. Writes with keys are made one after the other,
/// so that two of one key are never both new. A refusal has done nothing, and is not kept.
pub async fn once(
    State(demo): State<Arc<Demo>>,
    Member(caller): Member,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let key = request.headers().get("idempotency-key").filter(|_| request.method() != Method::GET);
    let Some(key) = key else { return Ok(next.run(request).await) };
    let key = key.to_str().ok().filter(|key| (1..=MAX_KEY).contains(&key.len()));
    let key = key.ok_or_else(|| ApiError::invalid(format!("Idempotency-Key: must have 1 to {MAX_KEY} characters")))?;
    let key = (caller.owner.tenant, caller.owner.user, key.to_owned());

    let (parts, body) = request.into_parts();
    let read = Bytes::from_request(Request::new(body), &()).await;
    let body = read.map_err(|rejection| ApiError::new(Code::ResourceExhausted, rejection.body_text()))?;
    let written = [parts.method.as_str().as_bytes(), parts.uri.path().as_bytes(), &body].join(&b' ');
    let written = digest(&SHA256, &written).as_ref().to_vec();

    let mut answers = demo.answers.lock().await;
    if let Some(known) = answers.find(&key) {
        return match known.request == written {
            true => Ok(json(known.body.clone())),
            false => Err(ApiError::new(Code::Mismatch, "the Idempotency-Key is that of another request")),
        };
    }
    let response = next.run(Request::from_parts(parts, Body::from(body))).await;
    if response.status() != StatusCode::OK {
        return Ok(response);
    }
    let body =
        to_bytes(response.into_body(), usize::MAX).await.map_err(|error| ApiError::invalid(error.to_string()))?;
    answers.keep(Answer { key, request: written, body: body.clone() });
    Ok(json(body))
}

fn json(body: Bytes) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}
