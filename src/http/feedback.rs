//! `/v1/agent/runs/{run_id}/feedback`: what a user thinks of an answer, once for each run.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use super::Services;
use super::auth::Authenticated;
use super::body::Taken;
use super::problem::Problem;
use super::runs::{RunPath, id};
use super::views::FeedbackBody;
use crate::agent::ports::store_error::StoreError;
use crate::dialect::agent_chat::FeedbackBody as FeedbackRequest;
use crate::observe::metrics;

/// 200 with the feedback as it is kept.
#[utoipa::path(
    post,
    path = "/v1/agent/runs/{run_id}/feedback",
    operation_id = "giveFeedback",
    tag = "Runs",
    summary = "Say what an answer is worth",
    description = "Once for each run of the caller's: a second one replaces the first. The conversation shows it, exports have it, and it goes with its conversation.",
    params(
        ("run_id" = String, Path, description = "The run."),
    ),
    request_body = FeedbackRequest<'static>,
    responses(
        (status = 200, description = "As it is kept.", body = FeedbackBody),
        (status = 404, description = "`not_found`: there is no such run, or it is another's."),
        (status = 422, description = "`invalid_request`: a field that is wrong, or no score."),
    ),
)]
pub(super) async fn give(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    run: RunPath,
    body: Taken,
) -> Result<Json<FeedbackBody>, Problem> {
    let run = id(run)?;
    let feedback = FeedbackRequest::decode(&body).map_err(|error| Problem::unprocessable(error.to_string()))?;
    let kept = services.feedback.give(&caller.owner, run, &feedback).await.map_err(failed)?;
    let kept = kept.ok_or_else(Problem::no_such_run)?;
    metrics::feedback_given(feedback.score.name());
    Ok(Json(FeedbackBody::from_kept(kept)))
}

/// 204 when there is none, as before or from now on.
#[utoipa::path(
    delete,
    path = "/v1/agent/runs/{run_id}/feedback",
    operation_id = "takeFeedbackBack",
    tag = "Runs",
    summary = "Take feedback back",
    description = "Idempotent.",
    params(
        ("run_id" = String, Path, description = "The run."),
    ),
    responses(
        (status = 204, description = "There is none."),
        (status = 404, description = "`not_found`: there is no such run, or it is another's."),
    ),
)]
pub(super) async fn take_back(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    run: RunPath,
) -> Result<StatusCode, Problem> {
    match services.feedback.take_back(&caller.owner, id(run)?).await.map_err(failed)? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::no_such_run()),
    }
}

fn failed(error: StoreError) -> Problem {
    Problem::store_failed("feedback not kept", error)
}
