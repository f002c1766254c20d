//! `POST /v1/agent/chat`: a chat turn in, Server-Sent Events out, or the whole answer as one JSON document.

use aws_lc_rs::digest::{SHA256, digest};
use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::Services;
use super::accept::{Shape, shape};
use super::answer;
use super::auth::Authenticated;
use super::problem::Problem;
use super::request_id::RequestId;
use super::sse::{self, View};
use super::views::{header_of_conversation, header_of_run};
use crate::chat::caller::Owner;
use crate::dialect::RunIds;
use crate::runs::{Attached, Request, StartError};

/// The longest `Idempotency-Key`, in bytes.
const MAX_KEY_BYTES: usize = 255;

/// Starts a run and streams it. Every error up to the committed user message is a [`Problem`]; after it, an event.
pub(super) async fn post(
    State(services): State<Services>,
    Extension(request_id): Extension<RequestId>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let body = readable(&headers, body)?;
    let input = services.agent_chat.decode(&body)?;
    let request = request(request_id, &headers, "chat", &body)?;
    let owner = caller.owner.clone();
    let started = services.runs.start(caller, input, request).await;
    respond(&services, owner, started, &headers).await
}

/// The body, as it is: a compressed one is refused.
///
/// # Errors
/// When it is compressed, too large, or could not be read.
pub(super) fn readable(headers: &HeaderMap, body: Result<Bytes, BytesRejection>) -> Result<Bytes, Problem> {
    if headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(Problem::encoded_body());
    }
    body.map_err(|rejection| Problem::body(rejection.status()))
}

/// The request as its run needs it. `what` tells requests with the same body apart.
///
/// # Errors
/// When its `Idempotency-Key` is none.
pub(super) fn request(id: RequestId, headers: &HeaderMap, what: &str, body: &[u8]) -> Result<Request, Problem> {
    let mut keys = headers.get_all("idempotency-key").iter();
    let key = match (keys.next(), keys.next()) {
        (None, _) => return Ok(Request { id: id.0, key: None }),
        (Some(key), None) => key.to_str().ok().map(str::trim),
        (Some(_), Some(_)) => None,
    };
    let Some(key) = key.filter(|key| (1..=MAX_KEY_BYTES).contains(&key.len())) else {
        return Err(Problem::bad_request(format!(
            "Idempotency-Key must be given once and have 1 to {MAX_KEY_BYTES} printable ASCII characters"
        )));
    };
    let mut asked = what.as_bytes().to_vec();
    asked.push(b'\n');
    asked.extend_from_slice(body);
    Ok(Request { id: id.0, key: Some((key.to_owned(), digest(&SHA256, &asked).as_ref().to_vec())) })
}

/// The run as the client wants it: a stream of its events, its answer when it is there, or, of one in the background,
/// where to look.
///
/// # Errors
/// When it did not start, or is an earlier one that cannot be read any more in that shape.
pub(super) async fn respond(
    services: &Services,
    owner: Owner,
    started: Result<Attached, StartError>,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let shape = shape(headers);
    let attached = match started {
        Ok(attached) => attached,
        Err(StartError::Joined { run, why }) => return answer::joined(services, &owner, run, why, shape).await,
        Err(error) => return Err(error.into()),
    };
    let ids = ids(&attached);
    let response = match shape {
        Shape::Json if attached.background => answer::accepted(services, &owner, &attached).await,
        Shape::Json => answer::whole(services, owner, attached).await,
        Shape::Events => {
            let numbered = attached.background;
            return Ok(stream(services, attached, numbered));
        }
    };
    Ok((ids, response).into_response())
}

fn ids(attached: &Attached) -> [(HeaderName, HeaderValue); 2] {
    [header_of_run(attached.run), header_of_conversation(&attached.conversation)]
}

/// The run's events from where `attached` stands, in the native protocol.
pub(super) fn stream(services: &Services, attached: Attached, numbered: bool) -> Response {
    let view = View {
        encoder: services.agent_chat.encoder(of(&attached)),
        numbered,
        keep_alive: services.keep_alive,
        draining: services.runs.draining().clone(),
    };
    shown(attached, view)
}

/// What the run is called.
pub(super) fn of(attached: &Attached) -> RunIds {
    RunIds { run: attached.run, conversation: attached.conversation.clone(), request: attached.request_id.clone() }
}

/// The run's events from where `attached` stands, as `view` shows them.
pub(super) fn shown(attached: Attached, view: View) -> Response {
    (sse::HEADERS, ids(&attached), sse::body(attached, view)).into_response()
}
