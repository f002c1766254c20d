//! `/v1/agent/runs/{run_id}`: a run apart from the request that began it: look at it, read it from any event on, cancel
//! it, go on with it.

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;

use super::Services;
use super::auth::Authenticated;
use super::body::Taken;
use super::problem::Problem;
use super::request_id::RequestId;
use super::serve::{request, respond, stream};
use super::views::RunBody;
use crate::chat::ids::RunId;
use crate::dialect::agent_chat::{AgentChat, Native};
use crate::runs::AttachError;

/// A path's run, as far as the path tells.
pub(super) type RunPath = Result<Path<String>, PathRejection>;

/// 200 with the run; 404 for another's.
#[utoipa::path(
    get,
    path = "/v1/agent/runs/{run_id}",
    operation_id = "getRun",
    tag = "Runs",
    summary = "Look at a run",
    description = "A run as it is now, without its events.",
    params(
        ("run_id" = String, Path, description = "The run."),
    ),
    responses(
        (status = 200, description = "The run.", body = RunBody),
        (status = 404, description = "`not_found`: there is no such run, or it is another's."),
    ),
)]
pub(super) async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    run: RunPath,
) -> Result<Json<RunBody>, Problem> {
    let run = services.runs.find(&caller.owner, id(run)?).await?.ok_or_else(Problem::no_such_run)?;
    Ok(Json(RunBody::from_run(&run)))
}

/// The position to begin at.
#[derive(Deserialize)]
pub(super) struct Events {
    after: Option<String>,
}

/// The run's events after `Last-Event-ID`, or without it after `?after=`; from the first one without either. The header
/// goes first: who connects again sends it with the URL of the first time. 204 when there are none
/// and none will come; 400 for a cursor that is none of this run's, 410 for one whose events are not kept any more.
#[utoipa::path(
    get,
    path = "/v1/agent/runs/{run_id}/events",
    operation_id = "readRun",
    tag = "Runs",
    summary = "Read a run",
    description = "Its events with `id:` lines, after `Last-Event-ID`, or without it after `after`; from the first one without either. The same bytes while it runs and afterwards, from any replica. With `Accept: application/x-ndjson` each is a line of JSON.",
    params(
        ("run_id" = String, Path, description = "The run."),
        ("after" = Option<String>, Query, description = "The id of the last event that was read: a whole number from 0."),
        ("Last-Event-ID" = Option<String>, Header, description = "The same; goes before `after`."),
    ),
    responses(
        (status = 200, description = "The events.", content((String = "text/event-stream"))),
        (status = 204, description = "There are none after that, and none will come."),
        (status = 400, description = "`cursor_invalid`: a cursor that is none of this run's."),
        (status = 404, description = "`not_found`: there is no such run, or it is another's."),
        (status = 410, description = "`cursor_evicted`: what comes after the cursor is not kept any more."),
        (status = 429, description = "`too_many_readers`: as many read this run as may."),
        (status = 503, description = "`events_unavailable`: not now."),
    ),
)]
pub(super) async fn events(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    run: RunPath,
    query: Result<Query<Events>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let run = id(run)?;
    let Query(Events { after }) = query.map_err(|_| Problem::cursor_invalid("after must be given once"))?;
    let header = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?"));
    let given = [header, after.as_deref()].into_iter().flatten().find(|text| !text.is_empty());
    let after = given.map(cursor).transpose()?;
    let attached = services.runs.attach(&caller.owner, run, after).await?;
    if attached.is_over() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(stream(&services, attached, None, None, Box::new(Native::read(&headers))))
}

/// 200 with the run as it is after that; one that has ended stays as it is.
#[utoipa::path(
    post,
    path = "/v1/agent/runs/{run_id}/cancel",
    operation_id = "cancelRun",
    tag = "Runs",
    summary = "Cancel a run",
    description = "Idempotent; a run that has ended stays as it is.",
    params(
        ("run_id" = String, Path, description = "The run."),
    ),
    responses(
        (status = 200, description = "The run as it is then.", body = RunBody),
        (status = 404, description = "`not_found`: there is no such run, or it is another's."),
    ),
)]
pub(super) async fn cancel(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    run: RunPath,
) -> Result<Json<RunBody>, Problem> {
    let run = services.runs.cancel(&caller.owner, id(run)?).await?.ok_or_else(Problem::no_such_run)?;
    Ok(Json(RunBody::from_run(&run)))
}

/// Goes on with a run that did not end well, in a new run that is answered like a chat turn.
#[utoipa::path(
    post,
    path = "/v1/agent/runs/{run_id}/continue",
    operation_id = "continueRun",
    tag = "Runs",
    summary = "Go on with a run",
    description = "A new run that goes on where a failed, cancelled or interrupted one stopped, answered like a chat turn. The body may be empty.",
    params(
        ("run_id" = String, Path, description = "The run."),
    ),
    request_body = Option<crate::dialect::agent_chat::OptionsBody<'static>>,
    responses(
        (status = 200, description = "The run's events, or with `Accept: application/json` its whole answer when it has ended.", content((String = "text/event-stream"), (super::answer::AnswerBody<'static> = "application/json"))),
        (status = 202, description = "With `Accept: application/json`, of a run in the background: the run, or as much as is known of it.", body = super::views::Accepted),
        (status = 404, description = "`not_found`: there is no such run, or it is another's."),
        (status = 409, description = "`not_continuable`, `conversation_busy`: it is live or has its answer; the conversation has another run."),
    ),
)]
pub(super) async fn go_on(
    State(services): State<Services>,
    Extension(request_id): Extension<RequestId>,
    Authenticated(caller): Authenticated,
    run: RunPath,
    headers: HeaderMap,
    body: Taken,
) -> Result<Response, Problem> {
    let run = id(run)?;
    let options = AgentChat::from(&services.dialects).decode_options(&body)?;
    let request = request(request_id, &headers, &format!("continue {run}"), &body)?;
    let owner = caller.owner.clone();
    let started = services.runs.go_on(caller, run, options, request).await;
    respond(&services, owner, started, &headers).await
}

/// The id of a run. An invalid id is answered like an unknown run.
pub(super) fn id(path: RunPath) -> Result<RunId, Problem> {
    path.ok().and_then(|Path(text)| RunId::parse(&text).ok()).ok_or_else(Problem::no_such_run)
}

fn cursor(text: &str) -> Result<u64, Problem> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let id = digits.then(|| text.parse().ok()).flatten();
    id.ok_or_else(|| Problem::cursor_invalid("the cursor must be the id of an event: a whole number from 0"))
}

impl From<AttachError> for Problem {
    fn from(error: AttachError) -> Self {
        let detail = error.to_string();
        match error {
            AttachError::NoSuchRun => Self::no_such_run(),
            AttachError::BeyondEnd => Self::cursor_invalid(detail),
            AttachError::Evicted => Self::cursor_evicted(detail),
            AttachError::TooManyReaders => Self::too_many_readers(detail),
            AttachError::Log(cause) => Self::events_failed("run not read", cause),
            AttachError::Store(cause) => Self::store_failed("run not read", cause),
        }
    }
}
