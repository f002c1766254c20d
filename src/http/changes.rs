//! What an agent has changed in its workspace: `/v1/agent/conversations/{conversation_id}/changes`, `…/checkpoints`,
//! `…/approve`, `…/reset`, `…/restore`. An invalid id, an unknown one and another user's are all the same 404.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Services;
use super::auth::Authenticated;
use super::body::Taken;
use super::code::Code;
use super::conversations::parse;
use super::extents::Extents;
use super::held;
use super::problem::Problem;
use super::share::Slot;
use crate::agent::ports::checkpoints::{
    Approved, ChangedFile, Changes, Checkpoint, Checkpoints, Refusal, Reset, Restored, Session, session_name,
};
use crate::agent::ports::models::ModelDesk;
use crate::agent::ports::workspace::Choices;
use crate::bounded::json;
use crate::bounded::memory::Kind;
use crate::chat::caller::Caller;
use crate::chat::day::rfc3339 as time;
use crate::chat::ids::ConversationId;

/// The workspaces, and who may see what was done in them.
#[derive(Clone)]
pub struct WorkspaceDesk {
    /// What was done, and how it is taken back.
    pub changes: Arc<dyn Changes>,
    /// What is kept, and forgotten with its conversation.
    pub checkpoints: Arc<dyn Checkpoints>,
    /// What users have chosen in their editors.
    pub choices: Arc<dyn Choices>,
    /// The models, and what editors may change of them.
    pub models: Arc<dyn ModelDesk>,
    /// Whether that is more than the choice of one.
    pub may_edit_models: bool,
    /// The `context_type` of the profile that answers editors.
    pub profile: String,
    /// The role that a user needs; empty: none.
    pub role: String,
    /// The port at which this server answers.
    pub port: u16,
    /// What is known of long dialogs of editors.
    pub extents: Arc<Extents>,
}

/// What has changed since the files were last approved.
#[derive(Serialize, ToSchema)]
#[schema(as = Changes)]
pub(super) struct ChangesBody {
    /// `session_1`, `session_2`, …: each approval and each reset begins the next one.
    session: String,
    /// Whether there is anything to approve.
    has_unapproved: bool,
    /// The checkpoint that was approved last; at first, the one that the conversation began with; null before that.
    approved_checkpoint: Option<String>,
    approved_at: Option<String>,
    /// Sorted by path.
    changed_files: Vec<ChangedFileBody>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ChangedFile)]
pub(super) struct ChangedFileBody {
    /// Relative to the workspace, with slashes.
    path: String,
    /// `added`, `modified` or `deleted`.
    status: &'static str,
    additions: usize,
    deletions: usize,
    /// A unified diff of a text that is there on both sides.
    diff: Option<String>,
    /// The text before, where there was one.
    base_content: Option<String>,
    /// Whether a side is no text.
    is_binary: bool,
    /// Whether a side is over 1 MiB, or all together are too much.
    is_too_large: bool,
}

/// The checkpoints of a conversation.
#[derive(Serialize, ToSchema)]
#[schema(as = CheckpointList)]
pub(super) struct CheckpointsBody {
    items: Vec<CheckpointBody>,
}

/// The files as they were at one time.
#[derive(Serialize, ToSchema)]
#[schema(as = Checkpoint)]
struct CheckpointBody {
    id: String,
    /// `initial`, `message`, `before_restore`, `restored`, `before_reset` or `approved`.
    kind: &'static str,
    message: String,
    session: String,
    /// The run whose message it stands before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    run_id: Option<String>,
    created_at: String,
}

/// What an approval may say.
#[derive(Default, Deserialize, ToSchema)]
#[schema(as = ApproveChanges)]
pub(super) struct ApproveBody {
    /// What is approved, in words.
    #[serde(default)]
    pub(super) message: Option<String>,
}

/// What became of an approval.
#[derive(Serialize, ToSchema)]
#[schema(as = ChangesApproved)]
pub(super) struct ApprovedBody {
    approved_checkpoint: String,
    /// The session that has begun.
    session: String,
    /// Checkpoints since the last approved one that changed something.
    checkpoints_approved: usize,
}

/// What became of a reset.
#[derive(Serialize, ToSchema)]
#[schema(as = ChangesReset)]
pub(super) struct ResetBody {
    /// The approved checkpoint.
    reset_to: String,
    /// The session that has begun.
    session: String,
    /// The files as they were before; null where nothing was pending.
    checkpoint_before: Option<String>,
    /// Files that could not be brought back: something else is in their way, or the system refused.
    not_restored: Vec<String>,
}

/// Where to go back to.
#[derive(Deserialize, ToSchema)]
#[schema(as = RestoreCheckpoint)]
pub(super) struct RestoreBody {
    pub(super) checkpoint_id: String,
}

/// What became of a restore.
#[derive(Serialize, ToSchema)]
#[schema(as = CheckpointRestored)]
pub(super) struct RestoredBody {
    restored_to: String,
    /// The checkpoint behind it.
    new_checkpoint: String,
    /// Files that could not be brought back: something else is in their way, or the system refused.
    not_restored: Vec<String>,
}

impl ChangesBody {
    fn from_session(Session { number, approved, files }: Session) -> Self {
        let (approved_checkpoint, approved_at) = approved.map(|(id, at_ms)| (id, time(at_ms))).unzip();
        Self {
            session: session_name(number),
            has_unapproved: !files.is_empty(),
            approved_checkpoint,
            approved_at,
            changed_files: files.into_iter().map(ChangedFileBody::from_file).collect(),
        }
    }
}

impl ChangedFileBody {
    pub(super) fn from_file(file: ChangedFile) -> Self {
        let ChangedFile { path, status, additions, deletions, diff, base_content, is_binary, is_too_large } = file;
        let status = status.name();
        Self { path, status, additions, deletions, diff, base_content, is_binary, is_too_large }
    }
}

impl CheckpointBody {
    fn from_checkpoint(Checkpoint { id, kind, message, session, run, at_ms }: Checkpoint) -> Self {
        let (kind, session, run_id) = (kind.name(), session_name(session), run.map(|run| run.to_string()));
        Self { id, kind, message, session, run_id, created_at: time(at_ms) }
    }
}

/// 200 with what has changed.
#[utoipa::path(
    get,
    path = "/v1/agent/conversations/{conversation_id}/changes",
    operation_id = "listChanges",
    tag = "Workspace",
    summary = "What an agent has changed",
    description = "The files as they are now against those that were approved last, or that the conversation began with.",
    params(("conversation_id" = String, Path, description = "The caller's own conversation.")),
    responses(
        (status = 200, description = "The changes.", body = ChangesBody),
        (status = 403, description = "`forbidden`: the caller has not the role of the workspace."),
        (status = 404, description = "`not_found`: there is no such conversation, it is another's, or there is no workspace."),
        (status = 503, description = "`workspace_unavailable`, `memory_exhausted`: the files cannot be read now, or there is no memory for what has changed."),
    ),
)]
pub(super) async fn changes(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    Extension(slot): Extension<Slot>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let (changes, id) = desk(&services, &caller, id).await?;
    let held = services.intake.memory().reserve(Kind::Export, 0)?;
    let (session, held) = changes.session((&caller.owner, &id), held).await.map_err(refused)?;
    held::json(ChangesBody::from_session(session), held, &slot).await
}

/// 200 with the checkpoints of a conversation.
#[utoipa::path(
    get,
    path = "/v1/agent/conversations/{conversation_id}/checkpoints",
    operation_id = "listCheckpoints",
    tag = "Workspace",
    summary = "List the checkpoints of a conversation",
    description = "All of them, oldest first. Each can be restored at any time.",
    params(("conversation_id" = String, Path, description = "The caller's own conversation.")),
    responses(
        (status = 200, description = "The checkpoints.", body = CheckpointsBody),
        (status = 403, description = "`forbidden`: the caller has not the role of the workspace."),
        (status = 404, description = "`not_found`: there is no such conversation, it is another's, or there is no workspace."),
        (status = 503, description = "`workspace_unavailable`: they cannot be read now."),
    ),
)]
pub(super) async fn checkpoints(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<CheckpointsBody>, Problem> {
    let (changes, id) = desk(&services, &caller, id).await?;
    let found = changes.checkpoints((&caller.owner, &id)).await.map_err(refused)?;
    Ok(Json(CheckpointsBody { items: found.into_iter().map(CheckpointBody::from_checkpoint).collect() }))
}

/// 200 when what is there now is approved.
#[utoipa::path(
    post,
    path = "/v1/agent/conversations/{conversation_id}/approve",
    operation_id = "approveChanges",
    tag = "Workspace",
    summary = "Approve what an agent has changed",
    description = "The files as they are now become the approved ones, and the next session begins. The body may be empty.",
    params(("conversation_id" = String, Path, description = "The caller's own conversation.")),
    request_body = Option<ApproveBody>,
    responses(
        (status = 200, description = "They are approved.", body = ApprovedBody),
        (status = 403, description = "`forbidden`: the caller has not the role of the workspace."),
        (status = 404, description = "`not_found`: there is no such conversation, it is another's, or there is no workspace."),
        (status = 409, description = "`workspace_busy`: an answer is being given in this workspace."),
        (status = 422, description = "`invalid_request`: the body is something else."),
        (status = 503, description = "`workspace_unavailable`: the files cannot be kept now."),
    ),
)]
pub(super) async fn approve(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
    body: Taken,
) -> Result<Json<ApprovedBody>, Problem> {
    let (changes, id) = desk(&services, &caller, id).await?;
    let ApproveBody { message } = match body.is_empty() {
        true => ApproveBody::default(),
        false => json::parse_bytes(&body)
            .map_err(|error| Problem::unprocessable(format!("the body must be {{\"message\"?}}: {error}")))?,
    };
    let of = (&caller.owner, &id);
    let Approved { checkpoint, session, count } = changes.approve(of, message.as_deref()).await.map_err(refused)?;
    let session = session_name(session);
    Ok(Json(ApprovedBody { approved_checkpoint: checkpoint, session, checkpoints_approved: count }))
}

/// 200 when the files are as they were approved.
#[utoipa::path(
    post,
    path = "/v1/agent/conversations/{conversation_id}/reset",
    operation_id = "resetChanges",
    tag = "Workspace",
    summary = "Take back what was not approved",
    description = "The files become as they were approved last. What is there now is kept as a checkpoint, which can be restored.",
    params(("conversation_id" = String, Path, description = "The caller's own conversation.")),
    responses(
        (status = 200, description = "They are as approved.", body = ResetBody),
        (status = 403, description = "`forbidden`: the caller has not the role of the workspace."),
        (status = 404, description = "`not_found`: there is no such conversation, it is another's, or there is no workspace."),
        (status = 409, description = "`workspace_busy`: an answer is being given in this workspace."),
        (status = 503, description = "`workspace_unavailable`: the files cannot be changed now."),
    ),
)]
pub(super) async fn reset(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<ResetBody>, Problem> {
    let (changes, id) = desk(&services, &caller, id).await?;
    let Reset { to, session, before, left } = changes.reset((&caller.owner, &id)).await.map_err(refused)?;
    let session = session_name(session);
    Ok(Json(ResetBody { reset_to: to, session, checkpoint_before: before, not_restored: left }))
}

/// 200 when the files are as they were at a checkpoint.
#[utoipa::path(
    post,
    path = "/v1/agent/conversations/{conversation_id}/restore",
    operation_id = "restoreCheckpoint",
    tag = "Workspace",
    summary = "Go back to a checkpoint",
    description = "The files become as they were at that checkpoint. What is there now is kept as another one, so that this can be undone.",
    params(("conversation_id" = String, Path, description = "The caller's own conversation.")),
    request_body = RestoreBody,
    responses(
        (status = 200, description = "They are as they were.", body = RestoredBody),
        (status = 403, description = "`forbidden`: the caller has not the role of the workspace."),
        (status = 404, description = "`not_found`: there is no such conversation or checkpoint, it is another's, or there is no workspace."),
        (status = 409, description = "`workspace_busy`: an answer is being given in this workspace."),
        (status = 422, description = "`invalid_request`: the body names no checkpoint."),
        (status = 503, description = "`workspace_unavailable`: the files cannot be changed now."),
    ),
)]
pub(super) async fn restore(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
    body: Taken,
) -> Result<Json<RestoredBody>, Problem> {
    let (changes, id) = desk(&services, &caller, id).await?;
    let RestoreBody { checkpoint_id } = json::parse_bytes(&body)
        .map_err(|error| Problem::unprocessable(format!("the body must be {{\"checkpoint_id\"}}: {error}")))?;
    let of = (&caller.owner, &id);
    let Restored { to, checkpoint, left } = changes.restore(of, &checkpoint_id).await.map_err(refused)?;
    Ok(Json(RestoredBody { restored_to: to, new_checkpoint: checkpoint, not_restored: left }))
}

/// The workspaces for `caller`, and the conversation, which is theirs.
async fn desk<'a>(
    services: &'a Services,
    caller: &Caller,
    id: Result<Path<String>, PathRejection>,
) -> Result<(&'a dyn Changes, ConversationId), Problem> {
    let Some(WorkspaceDesk { changes, role, .. }) = &services.workspace else {
        return Err(Problem::not_found("this server has no workspace"));
    };
    if !role.is_empty() && !caller.has_role(role) {
        return Err(Problem::forbidden("the role of the workspace is needed"));
    }
    let id = parse(id)?;
    let found = services.places.head(&caller.owner, &id).await;
    let found = found.map_err(|error| Problem::store_failed("conversation not found", error))?;
    found.ok_or_else(|| Problem::not_found("there is no such conversation"))?;
    Ok((&**changes, id))
}

pub(super) fn refused(refusal: Refusal) -> Problem {
    let detail = refusal.to_string();
    match refusal {
        Refusal::Busy => Problem::conflict(Code::WorkspaceBusy, detail),
        Refusal::Unknown => Problem::not_found(&detail),
        Refusal::Exhausted(exhausted) => exhausted.into(),
        Refusal::Failed(failure) => {
            tracing::error!(error.kind = failure.code, reason = failure.message, "the workspace failed");
            Problem::unavailable(Code::WorkspaceUnavailable, "the files of the workspace cannot be kept or changed now")
        }
    }
}
