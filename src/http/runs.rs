//! `/v1/agent/runs/{run_id}`: a run apart from the request that began it: look at it, read it from any event on, cancel
//! it, go on with it.

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;

use super::Services;
use super::auth::Authenticated;
use super::body::readable;
use super::chat::{request, respond, stream};
use super::problem::Problem;
use super::request_id::RequestId;
use super::views::RunBody;
use crate::chat::causes::Causes;
use crate::chat::ids::RunId;
use crate::runs::AttachError;

/// A path's run, as far as the path tells.
type RunPath = Result<Path<String>, PathRejection>;

/// 200 with the run; 404 for another's.
pub(super) async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    run: RunPath,
) -> Result<Json<RunBody>, Problem> {
    let run = services.runs.find(&caller.owner, id(run)?).await?.ok_or_else(Problem::no_such_run)?;
    Ok(Json(RunBody::of(&run)))
}

/// Where to begin.
#[derive(Deserialize)]
pub(super) struct Events {
    after: Option<String>,
}

/// The run's events after `Last-Event-ID`, or without it after `?after=`; from the first one without either. The header
/// goes first: who connects again sends it with the URL of the first time. 204 when there are none
/// and none will come; 400 for a cursor that is none of this run's, 410 for one whose events are not kept any more.
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
    Ok(stream(&services, attached, true))
}

/// 200 with the run as it is after that; one that has ended stays as it is.
pub(super) async fn cancel(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    run: RunPath,
) -> Result<Json<RunBody>, Problem> {
    let run = services.runs.cancel(&caller.owner, id(run)?).await?.ok_or_else(Problem::no_such_run)?;
    Ok(Json(RunBody::of(&run)))
}

/// Goes on with a run that did not end well, in a new run that is answered like a chat turn.
pub(super) async fn go_on(
    State(services): State<Services>,
    Extension(request_id): Extension<RequestId>,
    Authenticated(caller): Authenticated,
    run: RunPath,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let run = id(run)?;
    let body = readable(&headers, body)?;
    let manner = services.agent_chat.decode_manner(&body)?;
    let request = request(request_id, &headers, &format!("continue {run}"), &body)?;
    let owner = caller.owner.clone();
    let started = services.runs.go_on(caller, run, manner, request).await;
    respond(&services, owner, started, &headers).await
}

/// What is no id is nobody's run.
fn id(path: RunPath) -> Result<RunId, Problem> {
    path.ok().and_then(|Path(text)| RunId::parse(&text).ok()).ok_or_else(Problem::no_such_run)
}

fn cursor(text: &str) -> Result<u64, Problem> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let id = digits.then(|| text.parse().ok()).flatten();
    id.ok_or_else(|| Problem::cursor_invalid("the cursor must be the id of an event: a whole number from 0"))
}

impl From<AttachError> for Problem {
    fn from(error: AttachError) -> Self {
        let told = error.to_string();
        match error {
            AttachError::NoSuchRun => Self::no_such_run(),
            AttachError::BeyondEnd => Self::cursor_invalid(told),
            AttachError::Evicted => Self::cursor_evicted(told),
            AttachError::TooManyReaders => Self::too_many_readers(told),
            AttachError::Log(cause) => {
                tracing::error!(error = %Causes(&cause), "run not read");
                cause.into()
            }
            AttachError::Store(cause) => cause.into(),
        }
    }
}
