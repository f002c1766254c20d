//! `/v1/agent/directives`: commands that outlive their request. Request them, look at them, decide, cancel, run again. An
//! invalid id, an unknown one and one that the caller cannot see are all the same 404.

mod refusals;
mod views;

use axum::Extension;
use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use self::refusals::{failed, no_such_directive};
use self::views::DirectiveBody;
pub(super) use self::views::{ActorBody, SubjectBody};
use super::Services;
use super::audit::{note_read, note_read_of};
use super::auth::Authenticated;
use super::body::Taken;
use super::code::Code;
use super::pages::{Cursored, limit, own_or_tenant};
use super::previews::COMMENT_BYTES;
use super::problem::Problem;
use super::request_id::RequestId;
use crate::agent::ports::directives::{Access, Asked, Change, ChangeError, Decided, DirectiveFilter, Requested};
use crate::agent::ports::pages::Cursor;
use crate::bounded::json::{self, Tree};
use crate::chat::day::ms_of;
use crate::chat::directive::{Directive, DirectiveStatus};
use crate::chat::ids::DirectiveId;

/// Directives of a page where the request does not say, and at most.
const LIMITS: (u32, u32) = (20, 100);

/// The longest key, and the longest correlation id.
const KEY_BYTES: usize = 255;

/// What is requested.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DirectiveRequest)]
pub(super) struct RequestBody {
    /// Which directive, such as `forum.thread.create`.
    name: String,
    /// The arguments of its tool.
    #[schema(value_type = Option<Object>)]
    payload: Option<Tree>,
    /// Not before this time (RFC 3339).
    scheduled_at: Option<String>,
    /// What it belongs to; else the request's id.
    correlation_id: Option<String>,
}

/// A directive that was requested.
#[derive(Serialize, ToSchema)]
#[schema(as = DirectiveRequested)]
pub(super) struct RequestedBody {
    directive: DirectiveBody,
    /// Whether this request has made it.
    created: bool,
}

/// A directive that was changed.
#[derive(Serialize, ToSchema)]
#[schema(as = DirectiveChanged)]
pub(super) struct ChangedBody {
    directive: DirectiveBody,
}

/// Some directives, newest first.
#[derive(Serialize, ToSchema)]
#[schema(as = DirectiveList)]
pub(super) struct ListBody {
    items: Vec<DirectiveBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// What the caller may see and do beside what is their own: `own`, `reader` or `operator`.
    access: &'static str,
}

/// What is decided.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DirectiveDecision)]
pub(super) struct DecisionBody {
    decision: Word,
    comment: Option<String>,
    /// The digest that its user saw.
    digest: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = DirectiveWord)]
pub(super) enum Word {
    Approve,
    Reject,
}

/// Which directives.
#[derive(Deserialize)]
pub(super) struct Which {
    status: Option<String>,
    name: Option<String>,
    subject_type: Option<String>,
    subject_id: Option<String>,
    correlation_id: Option<String>,
    of: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

/// 201 with a new directive, 200 with the one that this request is.
#[utoipa::path(
    post,
    path = "/v1/agent/directives",
    operation_id = "requestDirective",
    tag = "Directives",
    summary = "Request a directive",
    description = "A declared tool with `[tool.directive]`, with these arguments, at once or at its time.",
    params(("Idempotency-Key" = Option<String>, Header, description = "Of the caller's own: the same key with the same request is the same directive.")),
    request_body = RequestBody,
    responses(
        (status = 201, description = "It is kept.", body = RequestedBody),
        (status = 200, description = "It was kept before: the same key, or a live one of the same intent.", body = RequestedBody),
        (status = 403, description = "`role_required`: none of the caller's roles may request it."),
        (status = 404, description = "`not_found`: there is no such directive."),
        (status = 413, description = "`field_too_large`: the payload."),
        (status = 422, description = "`invalid_request`, `secret_in_payload`, `idempotency_mismatch`."),
        (status = 429, description = "`too_many_directives`: as many are not over as may be."),
    ),
)]
pub(super) async fn request(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    Extension(request_id): Extension<RequestId>,
    headers: HeaderMap,
    body: Taken,
) -> Result<Response, Problem> {
    refuse_while_draining(&services)?;
    let RequestBody { name, payload, scheduled_at, correlation_id } = json::parse_bytes(&body)
        .map_err(|error| Problem::unprocessable(format!("the body must be {{\"name\", \"payload\"?, …}}: {error}")))?;
    let key = client_key(&headers)?;
    let correlation = match correlation_id {
        Some(id) => printable(&id, "correlation_id")?,
        None => request_id.0,
    };
    let scheduled_at_ms = match scheduled_at {
        None => None,
        Some(text) => Some(ms_of(&text).ok_or_else(|| {
            Problem::unprocessable("scheduled_at: must be a time by RFC 3339, such as 2026-11-25T10:00:00Z")
        })?),
    };
    let payload = match payload {
        None | Some(Tree(Value::Null)) => Map::new(),
        Some(Tree(Value::Object(fields))) => fields,
        Some(_) => return Err(Problem::unprocessable("payload: must be an object")),
    };
    let asked = Asked { name: &name, payload: &payload, correlation, key, scheduled_at_ms };
    let Requested { directive, created } = services.directives.ask(asked, &caller).await?;
    let status = if created { StatusCode::CREATED } else { StatusCode::OK };
    let directive = DirectiveBody::from_directive(directive);
    Ok((status, Json(RequestedBody { directive, created })).into_response())
}

/// 200 with directives, newest first.
#[utoipa::path(
    get,
    path = "/v1/agent/directives",
    operation_id = "listDirectives",
    tag = "Directives",
    summary = "List directives",
    description = "The caller's own and those that wait for one of their roles; `of=tenant` all of the tenant, for readers. Newest first.",
    params(
        ("status" = Option<String>, Query, description = "In this status."),
        ("name" = Option<String>, Query, description = "Of this name."),
        ("subject_type" = Option<String>, Query, description = "About a thing of this kind."),
        ("subject_id" = Option<String>, Query, description = "About the thing of this id."),
        ("correlation_id" = Option<String>, Query, description = "That belong to this."),
        ("of" = Option<String>, Query, description = "`own` or `tenant`; else `own`.", pattern = "^(own|tenant)?$"),
        ("limit" = Option<String>, Query, description = "How many, 1 to 100; else 20.", pattern = "^([1-9][0-9]?|100)?$"),
        ("cursor" = Option<String>, Query, description = "What the last page named as `next_cursor`."),
    ),
    responses(
        (status = 200, description = "Directives.", body = ListBody),
        (status = 400, description = "`invalid_request`, `cursor_invalid`: a parameter that says nothing."),
        (status = 403, description = "`role_required`: `of=tenant` is for readers."),
    ),
)]
pub(super) async fn list(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Json<ListBody>, Problem> {
    let Query(which) = which.map_err(|_| Problem::bad_request("each parameter must be given once at most"))?;
    let Which { status, name, subject_type, subject_id, correlation_id, of, limit: count, cursor } = which;
    let access = services.directive_roles.access(&caller);
    let of_tenant = own_or_tenant(of.as_deref(), access)?;
    if of_tenant {
        note_read(&services, &caller, "", "/v1/agent/directives?of=tenant".to_owned()).await?;
    }
    let status = match status.as_deref() {
        None | Some("") => None,
        Some(name) => {
            let unknown = || Problem::bad_request(format!("status: {name:?} is none of directives"));
            Some(DirectiveStatus::parse(name).ok_or_else(unknown)?)
        }
    };
    let filter = DirectiveFilter {
        status,
        name,
        subject_kind: subject_type,
        subject_id,
        correlation: correlation_id,
        of_tenant,
        ascending: false,
        limit: limit(count.as_deref(), LIMITS)?,
        after: Cursor::parsed(cursor.as_deref())?,
    };
    let page = services.directive_records.directives(&caller, &filter).await.map_err(failed)?;
    let last = page.items.last().filter(|_| page.has_more);
    let next_cursor = last.map(|last| Cursor { at_ms: last.created_at_ms, id: last.id.to_string() }.written());
    let items = page.items.into_iter().map(DirectiveBody::from_directive).collect();
    Ok(Json(ListBody { items, next_cursor, access: access_name(access) }))
}

/// 200 with a directive.
#[utoipa::path(
    get,
    path = "/v1/agent/directives/{directive_id}",
    operation_id = "getDirective",
    tag = "Directives",
    summary = "Read a directive",
    description = "The caller's own, one that asks for one of their roles, or any of their tenant for readers.",
    params(("directive_id" = String, Path, description = "The directive.")),
    responses(
        (status = 200, description = "The directive.", body = DirectiveBody),
        (status = 404, description = "`not_found`: there is none that the caller can see."),
    ),
)]
pub(super) async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<DirectiveBody>, Problem> {
    let reads = services.directive_roles.access(&caller).reads;
    let found = services.directive_records.directive(&caller, directive_id(id)?, reads).await.map_err(failed)?;
    let directive = found.ok_or_else(no_such_directive)?;
    let path = format!("/v1/agent/directives/{}", directive.id);
    note_read_of(&services, &caller, &directive.owner.user, path).await?;
    Ok(Json(DirectiveBody::from_directive(directive)))
}

/// 200 with a directive that was decided.
#[utoipa::path(
    post,
    path = "/v1/agent/directives/{directive_id}/decision",
    operation_id = "decideDirective",
    tag = "Directives",
    summary = "Decide a directive",
    description = "An approved one is carried out; its requester need not be there, unless it runs with their token.",
    params(("directive_id" = String, Path, description = "The directive.")),
    request_body = DecisionBody,
    responses(
        (status = 200, description = "Done.", body = ChangedBody),
        (status = 403, description = "`role_required`: another user has to decide it."),
        (status = 404, description = "`not_found`: there is none that the caller can see."),
        (status = 409, description = "`already_decided`, `digest_mismatch`."),
        (status = 410, description = "`approval_expired`: nobody decided in time."),
        (status = 422, description = "`invalid_request`: the body is no decision."),
    ),
)]
pub(super) async fn decide(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
    body: Taken,
) -> Result<Json<ChangedBody>, Problem> {
    refuse_while_draining(&services)?;
    let id = directive_id(id)?;
    let DecisionBody { decision, comment, digest } = json::parse_bytes(&body).map_err(|error| {
        let shape = r#"{"decision": "approve" or "reject", "comment": optional text, "digest": optional text}"#;
        Problem::unprocessable(format!("the body must be {shape}: {error}"))
    })?;
    if comment.as_ref().is_some_and(|comment| comment.len() > COMMENT_BYTES) {
        return Err(Problem::unprocessable(format!("comment is longer than {COMMENT_BYTES} bytes")));
    }
    let decided = Decided { approve: matches!(decision, Word::Approve), comment, digest };
    changed(services.directives.decide(&caller, id, decided).await)
}

/// 200 with a directive that will not be done.
#[utoipa::path(
    post,
    path = "/v1/agent/directives/{directive_id}/cancel",
    operation_id = "cancelDirective",
    tag = "Directives",
    summary = "Cancel a directive",
    description = "One that waits: the caller's own, or any of the tenant for operators. One that is over is answered as it is.",
    params(("directive_id" = String, Path, description = "The directive.")),
    responses(
        (status = 200, description = "It waits no more.", body = ChangedBody),
        (status = 404, description = "`not_found`: there is none of the caller's."),
        (status = 409, description = "`directive_running`: an attempt is under way."),
    ),
)]
pub(super) async fn cancel(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<ChangedBody>, Problem> {
    changed(services.directives.change(&caller, directive_id(id)?, Change::Cancel).await)
}

/// 200 with a directive that is tried once more.
#[utoipa::path(
    post,
    path = "/v1/agent/directives/{directive_id}/rerun",
    operation_id = "rerunDirective",
    tag = "Directives",
    summary = "Run a directive again",
    description = "One that failed, or of which nobody knows; for operators. One more attempt is permitted.",
    params(("directive_id" = String, Path, description = "The directive.")),
    responses(
        (status = 200, description = "It waits for its turn.", body = ChangedBody),
        (status = 403, description = "`role_required`: this is for operators."),
        (status = 404, description = "`not_found`: there is none that the caller can see."),
        (status = 409, description = "`not_rerunnable`: it has neither failed nor is it unknown, or it runs with its caller's token."),
    ),
)]
pub(super) async fn rerun(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<ChangedBody>, Problem> {
    changed(services.directives.change(&caller, directive_id(id)?, Change::Rerun).await)
}

fn changed(directive: Result<Directive, ChangeError>) -> Result<Json<ChangedBody>, Problem> {
    Ok(Json(ChangedBody { directive: DirectiveBody::from_directive(directive?) }))
}

fn directive_id(id: Result<Path<String>, PathRejection>) -> Result<DirectiveId, Problem> {
    let Path(id) = id.map_err(|_| no_such_directive())?;
    DirectiveId::parse(&id).map_err(|_| no_such_directive())
}

/// What is begun now could not be ended.
pub(super) fn refuse_while_draining(services: &Services) -> Result<(), Problem> {
    match services.runs.draining().is_cancelled() {
        true => Err(Problem::unavailable(Code::Draining, "the server is shutting down")),
        false => Ok(()),
    }
}

/// `text`, if it is 1 to 255 signs of ASCII that can be seen, or blanks.
fn printable(text: &str, what: &str) -> Result<String, Problem> {
    let is_printable = !text.is_empty() && text.len() <= KEY_BYTES && text.bytes().all(|b| (0x20..0x7f).contains(&b));
    match is_printable {
        true => Ok(text.to_owned()),
        false => Err(Problem::unprocessable(format!("{what}: must be 1 to {KEY_BYTES} printable characters of ASCII"))),
    }
}

fn access_name(access: Access) -> &'static str {
    match access {
        Access { operates: true, .. } => "operator",
        Access { reads: true, .. } => "reader",
        Access { .. } => "own",
    }
}

/// The `Idempotency-Key` of a request, where it has one.
///
/// # Errors
/// When it is no such key.
pub(super) fn client_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let key = headers.get("idempotency-key");
    key.map(|key| printable(key.to_str().unwrap_or_default(), "Idempotency-Key")).transpose()
}
