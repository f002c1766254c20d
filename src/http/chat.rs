//! `POST /v1/agent/chat`: a chat turn in, Server-Sent Events out, or the whole answer as one JSON document.

use aws_lc_rs::digest::{SHA256, digest};
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::Services;
use super::accept::{Shape, shape};
use super::answer;
use super::auth::Authenticated;
use super::body::Taken;
use super::problem::Problem;
use super::request_id::RequestId;
use super::sse::{self, View};
use super::views::headers_of;
use crate::chat::caller::Owner;
use crate::dialect::RunIds;
use crate::runs::{Attached, Request, StartError};

/// The longest `Idempotency-Key`, in bytes.
const MAX_KEY_BYTES: usize = 255;

/// Starts a run and streams it. Every error up to the committed user message is a [`Problem`]; after it, an event.
#[utoipa::path(
    post,
    path = "/v1/agent/chat",
    operation_id = "startRun",
    tag = "Agent Chat",
    summary = "Take one chat turn",
    description = "Starts a run and streams it. Everything that is refused is refused before the stream begins; after that, an `error` event tells. With `Accept: application/x-ndjson` each event is a line of JSON: `{\"id\"?, \"event\", \"data\"}`.",
    request_body = crate::dialect::agent_chat::RequestBody<'static>,
    responses(
        (status = 200, description = "The run's events, or with `Accept: application/json` its whole answer when it has ended.", content((String = "text/event-stream"), (super::answer::AnswerBody = "application/json"))),
        (status = 202, description = "With `Accept: application/json`, of a run in the background: the run, or as much as is known of it.", body = super::views::Accepted),
    ),
)]
pub(super) async fn post(
    State(services): State<Services>,
    Extension(request_id): Extension<RequestId>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    body: Taken,
) -> Result<Response, Problem> {
    let input = services.agent_chat.decode(&body)?;
    let request = request(request_id, &headers, "chat", &body)?;
    let owner = caller.owner.clone();
    let started = services.runs.start(caller, input, request).await;
    respond(&services, owner, started, &headers).await
}

/// The request as its run needs it. `what` tells requests with the same body apart: whatever is said outside of the body
/// and changes what is asked for stands in it, from the path, the query or a header.
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
    let ids = headers_of(&attached);
    let response = match shape {
        Shape::Json if attached.background => answer::accepted(services, &owner, &attached).await,
        Shape::Json => answer::whole(services, owner, attached).await,
        Shape::Events | Shape::Lines => {
            let numbered = attached.background;
            return Ok(stream(services, attached, numbered, shape));
        }
    };
    Ok((ids, response).into_response())
}

/// The run's events from where `attached` stands, in the native protocol: as lines where that is the shape, else as
/// Server-Sent Events.
pub(super) fn stream(services: &Services, attached: Attached, numbered: bool, shape: Shape) -> Response {
    let (dialect, content_type) = match shape {
        Shape::Lines => (&services.ndjson, "application/x-ndjson"),
        Shape::Events | Shape::Json => (&services.agent_chat, "text/event-stream"),
    };
    let view = View {
        encoder: dialect.encoder(of(&attached)),
        numbered,
        keep_alive: services.keep_alive,
        draining: services.runs.draining().clone(),
    };
    let mut response = shown(attached, view);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// What the run is called.
pub(super) fn of(attached: &Attached) -> RunIds {
    RunIds { run: attached.run, conversation: attached.conversation.clone(), request: attached.request_id.clone() }
}

/// The run's events from where `attached` stands, as `view` shows them.
pub(super) fn shown(attached: Attached, view: View) -> Response {
    (sse::HEADERS, headers_of(&attached), sse::body(attached, view)).into_response()
}
