//! `/v1/agent/approvals`: calls that wait for a person, and previews, which wait for their user too: look at them and
//! decide them.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Services;
use super::answer::AnswerBody;
use super::auth::Authenticated;
use super::body::Taken;
use super::code::Code;
use super::previews::{COMMENT_BYTES, DecidedBody};
use super::problem::Problem;
use super::request_id::RequestId;
use super::serve::{request, respond};
use crate::agent::ports::approvals::ApprovalView;
use crate::agent::ports::directives::DirectiveFilter;
use crate::agent::ports::previews::{ClaimError, DecisionError, WaitingPreview};
use crate::bounded::json;
use crate::chat::approval::Decision;
use crate::chat::caller::Caller;
use crate::chat::day::rfc3339 as time;
use crate::chat::directive::{Directive, DirectiveStatus};
use crate::chat::ids::{ApprovalId, PreviewId};
use crate::chat::origin::CallOrigin;
use crate::chat::preview::{Preview, Verdict};
use crate::dialect::agent_chat::AgentChat;
use crate::runs::Decided;

/// Directives that are listed.
const LISTED: u32 = 100;

/// What waits.
#[derive(Serialize, ToSchema)]
#[schema(as = ApprovalList)]
pub(super) struct ListBody {
    items: Vec<ItemBody>,
}

/// One thing that waits for a person.
#[derive(Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[schema(as = ApprovalItem)]
pub(super) enum ItemBody {
    /// A call.
    Call(ApprovalBody),
    /// A change that its user has been shown.
    Preview(PreviewBody),
    /// A directive.
    Directive(DirectiveItem),
}

/// A call as whoever decides it sees it: complete.
#[derive(Serialize, ToSchema)]
#[schema(as = WaitingCall)]
pub(super) struct ApprovalBody {
    approval_id: String,
    state: &'static str,
    conversation_id: String,
    run_id: String,
    /// Whose call it is.
    user_id: String,
    /// The call's id in that run.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_use_id: Option<String>,
    /// The plan and its step, or their sub-agent, whose call it is: `{plan_id, step, agent_id}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    origin: Option<CallOrigin>,
    tool: String,
    /// What it is about, as its tool's file says it; looked up where the call is read by itself, and not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    arguments: Map<String, Value>,
    digest: String,
    needs: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    /// Whether it has to be somebody else than the call's own user.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    not_requester: bool,
    created_at: String,
    expires_at: String,
}

/// A directive that waits, decided at `/v1/agent/directives/{approval_id}/decision`.
#[derive(Serialize, ToSchema)]
#[schema(as = WaitingDirective)]
pub(super) struct DirectiveItem {
    /// The directive's id.
    approval_id: String,
    state: &'static str,
    /// Who requested it.
    user_id: String,
    name: String,
    /// The completed arguments.
    arguments: Map<String, Value>,
    digest: String,
    needs: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    /// Whether it has to be somebody else than its requester.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    not_requester: bool,
    created_at: String,
    expires_at: String,
}

impl DirectiveItem {
    /// `None` of one that waits for nobody.
    fn from_directive(directive: Directive) -> Option<Self> {
        let approval = directive.approval?;
        let (needs, role, not_requester) = approval.consent.wire_fields();
        Some(Self {
            approval_id: directive.id.to_string(),
            state: "pending",
            user_id: directive.owner.user,
            name: directive.name.as_str().to_owned(),
            arguments: directive.payload,
            digest: approval.digest,
            needs,
            role: role.map(str::to_owned),
            not_requester,
            created_at: time(directive.created_at_ms),
            expires_at: time(approval.expires_at_ms),
        })
    }
}

/// A preview that waits.
#[derive(Serialize, ToSchema)]
#[schema(as = WaitingChange)]
pub(super) struct PreviewBody {
    approval_id: String,
    state: &'static str,
    conversation_id: String,
    what: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    existing_id: Option<String>,
    body: Value,
    /// Whether a save was sent whose answer did not come: it may be done.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    may_be_saved: bool,
    created_at: String,
    expires_at: String,
}

impl ApprovalBody {
    pub(super) fn from_view(view: ApprovalView) -> Self {
        let state = view.standing.name();
        let ApprovalView { owner, approval, .. } = view;
        let (needs, role, not_requester) = approval.consent.wire_fields();
        let role = role.map(str::to_owned);
        Self {
            approval_id: approval.id.to_string(),
            state,
            conversation_id: approval.conversation.to_string(),
            run_id: approval.run.to_string(),
            user_id: owner.user,
            tool_use_id: approval.call,
            origin: approval.origin,
            tool: approval.tool,
            title: None,
            arguments: approval.arguments,
            digest: approval.digest,
            needs,
            role,
            not_requester,
            created_at: time(approval.created_at_ms),
            expires_at: time(approval.expires_at_ms),
        }
    }
}

impl PreviewBody {
    fn from_waiting(waiting: WaitingPreview) -> Self {
        let WaitingPreview { preview, origin: _, may_be_saved, created_at_ms, expires_at_ms } = waiting;
        let Preview { id, conversation, change } = preview;
        Self {
            approval_id: id.to_string(),
            state: "pending",
            conversation_id: conversation.to_string(),
            what: change.what,
            name: change.name,
            existing_id: change.existing_id,
            body: change.body,
            may_be_saved,
            created_at: time(created_at_ms),
            expires_at: time(expires_at_ms),
        }
    }
}

/// 200 with what waits for the caller: calls of their own and those that ask for one of their roles, newest first, then
/// their previews, newest first.
#[utoipa::path(
    get,
    path = "/v1/agent/approvals",
    operation_id = "listApprovals",
    tag = "Approvals",
    summary = "List what waits",
    description = "Calls of the caller's own and those that ask for one of their roles, newest first, then directives alike, then their previews; at most 100 of each.",
    responses(
        (status = 200, description = "What waits.", body = ListBody),
    ),
)]
pub(super) async fn list(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
) -> Result<Json<ListBody>, Problem> {
    let calls = services.runs.approvals(&caller).await?;
    let previews = services.previews.waiting(&caller, None).await?;
    let waiting =
        DirectiveFilter { status: Some(DirectiveStatus::PendingApproval), limit: LISTED, ..DirectiveFilter::default() };
    let directives = services.directive_records.directives(&caller, &waiting).await;
    let directives = directives.map_err(|error| Problem::store_failed("directives not read", error))?;
    let directives = directives.items.into_iter().filter_map(DirectiveItem::from_directive).map(ItemBody::Directive);
    let calls = calls.into_iter().map(|view| ItemBody::Call(ApprovalBody::from_view(view)));
    let previews = previews.into_iter().map(|waiting| ItemBody::Preview(PreviewBody::from_waiting(waiting)));
    Ok(Json(ListBody { items: calls.chain(directives).chain(previews).collect() }))
}

/// 200 with a call, whatever its state, or a preview that waits; 404 for whoever may not decide it.
#[utoipa::path(
    get,
    path = "/v1/agent/approvals/{approval_id}",
    operation_id = "getApproval",
    tag = "Approvals",
    summary = "Look at what waits",
    description = "A call whatever its state, or a preview that waits.",
    params(
        ("approval_id" = String, Path, description = "A call, or a preview."),
    ),
    responses(
        (status = 200, description = "It.", body = ItemBody),
        (status = 404, description = "`not_found`: there is nothing that the caller may decide."),
    ),
)]
pub(super) async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<ItemBody>, Problem> {
    match find(&services, &caller, id).await? {
        Found::Call(view) => {
            let title = services.titles.title(&caller, &view.approval).await;
            Ok(Json(ItemBody::Call(ApprovalBody { title, ..ApprovalBody::from_view(*view) })))
        }
        Found::Preview(id) => {
            let previews = services.previews.waiting(&caller, Some(id)).await?;
            let waiting = previews.into_iter().next().ok_or_else(no_such_approval)?;
            Ok(Json(ItemBody::Preview(PreviewBody::from_waiting(waiting))))
        }
    }
}

/// What a decision is answered with as JSON.
#[derive(ToSchema)]
#[schema(as = Decided)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes three answers")]
pub(super) enum Decided200 {
    Answer(AnswerBody<'static>),
    Item(ItemBody),
    Preview(DecidedBody),
}

/// What a decision says; how the run goes on is the dialect's to read.
#[derive(Deserialize, ToSchema)]
#[schema(as = ApprovalDecision)]
pub(super) struct DecisionBody {
    decision: Word,
    comment: Option<String>,
    digest: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ApprovalWord)]
pub(super) enum Word {
    Approve,
    Reject,
}

/// Decides. A call of the caller's own goes on in a new run, answered like a chat turn; a decision on another user's
/// call, or on a preview, is answered at once. 404 for what the caller may not decide, 409 when decided already or when
/// the digest differs, 410 when it is expired, 403 when a user with the role has to approve first, 422 for a bad
/// body.
#[utoipa::path(
    post,
    path = "/v1/agent/approvals/{approval_id}",
    operation_id = "decideApproval",
    tag = "Approvals",
    summary = "Decide",
    description = "A call of the caller's own goes on in a new run, answered like a chat turn. What is said to another one's call, or to a preview, is answered at once.",
    params(
        ("approval_id" = String, Path, description = "A call, or a preview."),
    ),
    request_body = DecisionBody,
    responses(
        (status = 200, description = "The new run's events or answer; or the call, or what became of the preview.", content((String = "text/event-stream"), (Decided200 = "application/json"))),
        (status = 202, description = "With `Accept: application/json`, of a run in the background: the run, or as much as is known of it.", body = super::views::Accepted),
        (status = 403, description = "`role_required`, `own_request`, `forbidden`: somebody with another role, or somebody else with the role, has to approve it first; or the token does not list a preview's role."),
        (status = 404, description = "`not_found`: there is nothing that the caller may decide."),
        (status = 409, description = "`already_decided`, `digest_mismatch`, `conversation_busy`, `preview_superseded`, `preview_stale`: it is decided; another call waits; the conversation has a run; a newer preview has taken its place; what it changes has changed since."),
        (status = 410, description = "`approval_expired`, `preview_expired`, `cursor_evicted`: nobody decided in time."),
        (status = 422, description = "`invalid_request`, `idempotency_mismatch`: the body is no decision."),
        (status = 502, description = "`backend_refused`, `save_unconfirmed`: an accepted change was not saved, or nobody knows."),
    ),
)]
pub(super) async fn decide(
    State(services): State<Services>,
    Extension(request_id): Extension<RequestId>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Taken,
) -> Result<Response, Problem> {
    let DecisionBody { decision, comment, digest } = json::parse_bytes(&body).map_err(|error| {
        Problem::unprocessable(format!(
            r#"the body must be {{"decision": "approve" or "reject", "comment": optional text, "digest": optional text}}: {error}"#
        ))
    })?;
    if comment.as_ref().is_some_and(|comment| comment.len() > COMMENT_BYTES) {
        return Err(Problem::unprocessable(format!("comment is longer than {COMMENT_BYTES} bytes")));
    }
    let options = AgentChat::from(&services.dialects).decode_options(&body)?;
    let approve = match decision {
        Word::Approve => true,
        Word::Reject => false,
    };
    let approval = match find(&services, &caller, id).await? {
        Found::Call(view) => view.approval,
        Found::Preview(id) => {
            if services.runs.draining().is_cancelled() {
                return Err(Problem::unavailable(Code::Draining, "the server is shutting down"));
            }
            let verdict = if approve { Verdict::Accept } else { Verdict::Reject };
            let decided =
                services.previews.decide(&caller, id, verdict, comment).await.map_err(|error| match error {
                    DecisionError::Claim(ClaimError::NotFound) => no_such_approval(),
                    error => error.into(),
                })?;
            return Ok(Json(DecidedBody::from_decided(&decided)).into_response());
        }
    };
    if digest.is_some_and(|digest| digest != approval.digest) {
        let detail = "the digest is not that of the waiting call; read it again before you decide";
        return Err(Problem::conflict(Code::DigestMismatch, detail));
    }
    let request = request(request_id, &headers, &format!("decide {}", approval.id), &body)?;
    let owner = caller.owner.clone();
    let decided = services.runs.decide(caller, approval.id, Decision { approve, comment }, options, request).await;
    match decided {
        Ok(Decided::Kept(view)) => Ok(Json(ItemBody::Call(ApprovalBody::from_view(*view))).into_response()),
        Ok(Decided::GoesOn(attached)) => respond(&services, owner, Ok(attached), &headers).await,
        Err(error) => respond(&services, owner, Err(error), &headers).await,
    }
}

/// What an id names.
enum Found {
    Call(Box<ApprovalView>),
    /// No call, and then it may be a preview.
    Preview(PreviewId),
}

async fn find(services: &Services, caller: &Caller, id: Result<Path<String>, PathRejection>) -> Result<Found, Problem> {
    let Path(text) = id.map_err(|_| no_such_approval())?;
    let id = ApprovalId::parse(&text).map_err(|_| no_such_approval())?;
    match services.runs.approval(caller, id).await? {
        Some(view) => Ok(Found::Call(Box::new(view))),
        None => Ok(Found::Preview(PreviewId::parse(&text).map_err(|_| no_such_approval())?)),
    }
}

fn no_such_approval() -> Problem {
    Problem::not_found("there is no such approval")
}
