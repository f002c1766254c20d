//! Checkpoints and sessions as editors know them: one view of what [`crate::http::changes`] shows.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::{Extension, Json};
use serde::Serialize;
use utoipa::ToSchema;

use super::{desk, dialog};
use crate::agent::ports::checkpoints::{Approved, Reset, Restored, Session, session_name};
use crate::bounded::json;
use crate::bounded::memory::Kind;
use crate::chat::day::rfc3339 as time;
use crate::dialect::{DecodeError, Mistake};
use crate::http::Services;
use crate::http::auth::Authenticated;
use crate::http::body::Taken;
use crate::http::changes::{ApproveBody, ChangedFileBody, RestoreBody, refused};
use crate::http::held;
use crate::http::problem::Problem;
use crate::http::share::Slot;

/// The checkpoints of a dialog, oldest first.
#[derive(Serialize, ToSchema)]
#[schema(as = SmithyCheckpoints)]
pub(super) struct CheckpointsBody {
    dialog_id: String,
    checkpoints: Vec<CheckpointBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    initial_checkpoint: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SmithyCheckpoint)]
struct CheckpointBody {
    commit_id: String,
    message: String,
}

/// What has piled up.
#[derive(Serialize, ToSchema)]
#[schema(as = SmithySession)]
pub(super) struct SessionBody {
    active_session: Option<String>,
    session_ref: Option<String>,
    has_unapproved: bool,
    last_approved_at: Option<String>,
    changed_files: Vec<ChangedFileBody>,
}

/// What became of a restore.
#[derive(Serialize, ToSchema)]
#[schema(as = SmithyRestored)]
pub(super) struct RestoredBody {
    restored_to: String,
    new_checkpoint: String,
}

/// What became of an approval.
#[derive(Serialize, ToSchema)]
#[schema(as = SmithyApproved)]
pub(super) struct ApprovedBody {
    approved_commit: String,
    new_session: String,
    commits_approved: usize,
}

/// What became of a reset.
#[derive(Serialize, ToSchema)]
#[schema(as = SmithyReset)]
pub(super) struct ResetBody {
    reset_to: String,
    new_session: String,
    pre_reset_checkpoint: Option<String>,
}

/// 200 with a dialog's checkpoints.
#[utoipa::path(
    get,
    path = "/api/dialogs/{dialog_id}/checkpoints",
    operation_id = "smithyCheckpoints",
    tag = "Smithy",
    summary = "List a dialog's checkpoints",
    description = "Oldest first; the first is the initial one.",
    params(("dialog_id" = String, Path, description = "The caller's own dialog.")),
    responses(
        (status = 200, description = "The checkpoints.", body = CheckpointsBody),
        (status = 404, description = "`not_found`: there is no such dialog, it is another's, or there is no workspace."),
    ),
)]
pub(in crate::http) async fn checkpoints(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<CheckpointsBody>, Problem> {
    let (id, _) = dialog(&services, &caller, id).await?;
    let kept = desk(&services, &caller)?.changes.checkpoints((&caller.owner, &id)).await.map_err(refused)?;
    let initial_checkpoint = kept.first().map(|first| first.id.clone());
    let checkpoints = kept.into_iter().map(|kept| CheckpointBody { commit_id: kept.id, message: kept.message });
    Ok(Json(CheckpointsBody { dialog_id: id.to_string(), checkpoints: checkpoints.collect(), initial_checkpoint }))
}

/// 200 with what has changed since the files were approved.
#[utoipa::path(
    get,
    path = "/api/dialogs/{dialog_id}/session",
    operation_id = "smithySession",
    tag = "Smithy",
    summary = "What a dialog has changed",
    description = "The approved files against those now.",
    params(("dialog_id" = String, Path, description = "The caller's own dialog.")),
    responses(
        (status = 200, description = "The changes.", body = SessionBody),
        (status = 503, description = "`memory_exhausted`, `workspace_unavailable`: there is no memory for them now, or the files cannot be read."),
        (status = 404, description = "`not_found`: there is no such dialog, it is another's, or there is no workspace."),
    ),
)]
pub(in crate::http) async fn session(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    Extension(slot): Extension<Slot>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let (id, _) = dialog(&services, &caller, id).await?;
    let held = services.intake.memory().reserve(Kind::Export, 0)?;
    let session = desk(&services, &caller)?.changes.session((&caller.owner, &id), held).await;
    let (Session { number, approved, files }, held) = session.map_err(refused)?;
    let active = (!files.is_empty()).then(|| session_name(number));
    let body = SessionBody {
        session_ref: active.as_ref().map(|name| format!("refs/heads/{name}")),
        active_session: active,
        has_unapproved: !files.is_empty(),
        last_approved_at: approved.map(|(_, at_ms)| time(at_ms)),
        changed_files: files.into_iter().map(ChangedFileBody::from_file).collect(),
    };
    held::json(body, held, &slot).await
}

/// 200 when the files are as they were.
#[utoipa::path(
    post,
    path = "/api/dialogs/{dialog_id}/restore",
    operation_id = "smithyRestore",
    tag = "Smithy",
    summary = "Go back to a checkpoint",
    description = "What is there now is kept as another checkpoint.",
    params(("dialog_id" = String, Path, description = "The caller's own dialog.")),
    request_body = RestoreBody,
    responses(
        (status = 200, description = "The files are as they were.", body = RestoredBody),
        (status = 404, description = "`not_found`: there is no such dialog or checkpoint, it is another's, or there is no workspace."),
        (status = 409, description = "`workspace_busy`: an answer is being given in this workspace."),
        (status = 422, description = "`invalid_request`: the body names no checkpoint."),
    ),
)]
pub(in crate::http) async fn restore(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
    body: Taken,
) -> Result<Json<RestoredBody>, Problem> {
    let (id, _) = dialog(&services, &caller, id).await?;
    let RestoreBody { checkpoint_id } = json::parse_bytes(&body).map_err(|_| wrong("checkpoint_id"))?;
    let of = (&caller.owner, &id);
    let restored = desk(&services, &caller)?.changes.restore(of, &checkpoint_id).await.map_err(refused)?;
    let Restored { to, checkpoint, left: _ } = restored;
    Ok(Json(RestoredBody { restored_to: to, new_checkpoint: checkpoint }))
}

/// 200 when what is there is approved.
#[utoipa::path(
    post,
    path = "/api/dialogs/{dialog_id}/approve",
    operation_id = "smithyApprove",
    tag = "Smithy",
    summary = "Approve what a dialog has changed",
    description = "The body may be empty.",
    params(("dialog_id" = String, Path, description = "The caller's own dialog.")),
    request_body = Option<ApproveBody>,
    responses(
        (status = 200, description = "It is approved.", body = ApprovedBody),
        (status = 404, description = "`not_found`: there is no such dialog, it is another's, or there is no workspace."),
        (status = 409, description = "`workspace_busy`: an answer is being given in this workspace."),
        (status = 422, description = "`invalid_request`: the message is no text."),
    ),
)]
pub(in crate::http) async fn approve(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
    body: Taken,
) -> Result<Json<ApprovedBody>, Problem> {
    let (id, _) = dialog(&services, &caller, id).await?;
    let ApproveBody { message } = match body.is_empty() {
        true => ApproveBody::default(),
        false => json::parse_bytes(&body).map_err(|_| wrong("message"))?,
    };
    let of = (&caller.owner, &id);
    let approved = desk(&services, &caller)?.changes.approve(of, message.as_deref()).await.map_err(refused)?;
    let Approved { checkpoint, session, count } = approved;
    let new_session = session_name(session);
    Ok(Json(ApprovedBody { approved_commit: checkpoint, new_session, commits_approved: count }))
}

/// 200 when the files are as they were approved.
#[utoipa::path(
    post,
    path = "/api/dialogs/{dialog_id}/reset",
    operation_id = "smithyReset",
    tag = "Smithy",
    summary = "Take back what was not approved",
    description = "What is there now is kept as a checkpoint.",
    params(("dialog_id" = String, Path, description = "The caller's own dialog.")),
    responses(
        (status = 200, description = "The files are as approved.", body = ResetBody),
        (status = 404, description = "`not_found`: there is no such dialog, it is another's, or there is no workspace."),
        (status = 409, description = "`workspace_busy`: an answer is being given in this workspace."),
    ),
)]
pub(in crate::http) async fn reset(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<ResetBody>, Problem> {
    let (id, _) = dialog(&services, &caller, id).await?;
    let reset = desk(&services, &caller)?.changes.reset((&caller.owner, &id)).await.map_err(refused)?;
    let Reset { to, session, before, left: _ } = reset;
    Ok(Json(ResetBody { reset_to: to, new_session: session_name(session), pre_reset_checkpoint: before }))
}

fn wrong(name: &'static str) -> Problem {
    DecodeError::Mistakes(vec![Mistake::new(["body", name], "value_error", "Input should be a text")]).into()
}
