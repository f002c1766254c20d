//! `POST /v1/agent/chat`: a chat turn in, Server-Sent Events out.

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::Services;
use super::auth::Authenticated;
use super::problem::Problem;
use super::request_id::RequestId;
use super::sse;
use crate::dialect::RunIds;

/// Starts a run and streams it. Every error up to the committed user message is a [`Problem`]; after it, an event.
pub(super) async fn post(
    State(services): State<Services>,
    Extension(request_id): Extension<RequestId>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    if headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(Problem::encoded_body());
    }
    let body = body.map_err(|rejection| Problem::body(rejection.status()))?;
    let dialect = &services.agent_chat;
    let input = dialect.decode(&body)?;
    let attached = services.runs.start(caller, input).await?;

    let ids = [
        (HeaderName::from_static("x-run-id"), header_value(&attached.run.to_string())),
        (HeaderName::from_static("x-conversation-id"), header_value(attached.conversation.as_str())),
    ];
    let of = RunIds { run: attached.run, conversation: attached.conversation.clone(), request: request_id.0 };
    let body = sse::body(attached, dialect.encoder(of), services.keep_alive);
    Ok((sse::HEADERS, ids, body).into_response())
}

/// Our ids are printable ASCII by construction.
fn header_value(id: &str) -> HeaderValue {
    HeaderValue::from_str(id).unwrap_or_else(|_| HeaderValue::from_static(""))
}
