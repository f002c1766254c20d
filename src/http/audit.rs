//! `GET /v1/agent/audit`: the audit record of the caller's tenant, for whoever has the role that the settings name. Each look
//! is a line of it.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Services;
use super::auth::Authenticated;
use super::problem::Problem;
use crate::agent::ports::audit::AuditStore;
use crate::agent::ports::store_error::StoreError;
use crate::chat::audit::{Act, AuditLine, Fact, chain_of};
use crate::chat::caller::Caller;
use crate::chat::causes::Causes;
use crate::chat::day::rfc3339 as time;

/// Lines of a page where the request does not say.
const DEFAULT_LIMIT: u32 = 100;

/// Lines of a page at most.
const MAX_LIMIT: u32 = 1000;

/// Lines that an export reads at once.
const READ_AT_ONCE: u32 = 500;

/// The media type of an export: in `Accept`, and of its answer.
const NDJSON: &str = "application/x-ndjson";

/// Which part of it.
#[derive(Deserialize)]
pub(super) struct Part {
    limit: Option<String>,
    cursor: Option<String>,
}

/// A part of the audit record.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditRecord)]
pub(super) struct RecordBody {
    items: Vec<LineBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A line of the audit record.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditLine)]
struct LineBody {
    chain: String,
    /// 1, 2, 3 … in its chain.
    seq: u64,
    at: String,
    at_ms: i64,
    act: String,
    /// Who did it; empty where nobody did.
    actor: String,
    /// Whose thing it is.
    user: String,
    conversation_id: Option<String>,
    run_id: Option<String>,
    call_id: Option<String>,
    tool: Option<String>,
    /// What it is about: an approval or a preview, or the path that was read.
    subject: Option<String>,
    /// A digest of what was sent, or would be.
    arguments_digest: Option<String>,
    /// `done`, `failed`, `not_run` or `unknown`.
    outcome: Option<String>,
    reason: Option<String>,
    /// How many of them the line tells of.
    count: u64,
    /// The digest of the line before it.
    previous: String,
    digest: String,
}

impl LineBody {
    fn from_line(line: AuditLine) -> Self {
        Self {
            chain: line.chain,
            seq: line.seq,
            at: time(line.at_ms),
            at_ms: line.at_ms,
            act: line.act,
            actor: line.actor,
            user: line.user,
            conversation_id: line.conversation,
            run_id: line.run,
            call_id: line.call,
            tool: line.tool,
            subject: line.subject,
            arguments_digest: line.arguments,
            outcome: line.outcome,
            reason: line.reason,
            count: line.count,
            previous: line.previous,
            digest: line.digest,
        }
    }
}

/// A line as JSON on one line, with its line break.
///
/// # Errors
/// When it cannot be written as JSON, which does not happen: it is texts and numbers.
pub fn json_line(line: AuditLine) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string(&LineBody::from_line(line))?;
    text.push('\n');
    Ok(text)
}

/// 200 with the record of the caller's tenant, oldest first; 403 for who has not the role.
#[utoipa::path(
    get,
    path = "/v1/agent/audit",
    operation_id = "readAudit",
    tag = "Audit",
    summary = "Read the audit record",
    description = "Who has written outside, decided or looked at what is somebody else's, in the caller's tenant, oldest first. Needs the \
                   role of `server.audit_role`. With `Accept: application/x-ndjson` all that comes after the cursor, line by line.",
    params(
        ("limit" = Option<String>, Query, description = "How many, 1 to 1000; else 100.", pattern = "^([1-9][0-9]{0,2}|1000)?$"),
        ("cursor" = Option<String>, Query, description = "What the last part named as `next_cursor`.", pattern = "^[0-9]{0,18}$"),
    ),
    responses(
        (status = 200, description = "A part of the record.", body = RecordBody),
        (status = 400, description = "`invalid_request`, `cursor_invalid`: a limit or a cursor that is none."),
        (status = 403, description = "`forbidden`: this needs the role of `server.audit_role`."),
    ),
)]
pub(super) async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    part: Result<Query<Part>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let role = &services.audit_role;
    if role.is_empty() || !caller.has_role(role) {
        return Err(Problem::forbidden("the audit record is not for this user"));
    }
    let (limit, after) = read(part)?;
    note_read(&services, &caller, "", "/v1/agent/audit".to_owned()).await?;
    services.recorder.seal().await.map_err(failed)?;
    let chain = chain_of(&caller.owner.tenant);
    if wants_lines(&headers) {
        return Ok(lines(services.audit.clone(), chain, after));
    }
    let mut page = services.audit.lines(&chain, after, limit + 1).await.map_err(failed)?;
    let has_more = page.len() > limit as usize;
    page.truncate(limit as usize);
    let next_cursor = page.last().filter(|_| has_more).map(|line| line.seq.to_string());
    Ok(Json(RecordBody { items: page.into_iter().map(LineBody::from_line).collect(), next_cursor }).into_response())
}

/// Notes that the caller reads what is not their own: that of `user`, or of the whole tenant. The line is written
/// before the read.
///
/// # Errors
/// When it could not be noted.
pub(super) async fn note_read(services: &Services, caller: &Caller, user: &str, path: String) -> Result<(), Problem> {
    let fact = Fact { subject: Some(path), ..Fact::new(Act::Read, &caller.owner.user, user) };
    services.audit.note(&chain_of(&caller.owner.tenant), fact).await.map_err(failed)
}

/// The same of one thing of the tenant's, which may be the caller's own: that is not noted. Whose it is is known only when it has
/// been found, so that the line is written before the answer.
///
/// # Errors
/// When it could not be noted.
pub(super) async fn note_read_of(
    services: &Services,
    caller: &Caller,
    user: &str,
    path: String,
) -> Result<(), Problem> {
    match caller.owner.user == user {
        true => Ok(()),
        false => note_read(services, caller, user, path).await,
    }
}

/// Notes that an operator has signals delivered once more; the line is written before that is done.
///
/// # Errors
/// When it could not be noted.
pub(super) async fn note_retried(services: &Services, caller: &Caller, subject: String) -> Result<(), Problem> {
    let fact = Fact { subject: Some(subject), ..Fact::new(Act::DeliveryRetried, &caller.owner.user, "") };
    services.audit.note(&chain_of(&caller.owner.tenant), fact).await.map_err(failed)
}

/// Whether the request accepts lines, and not a document.
fn wants_lines(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|media| {
        let kind = media.split(';').next().unwrap_or_default();
        kind.trim().eq_ignore_ascii_case(NDJSON)
    })
}

/// All lines behind `after`, read page by page while they are sent.
fn lines(audit: Arc<dyn AuditStore>, chain: String, after: u64) -> Response {
    let pages = stream::try_unfold((audit, chain, after), async |(audit, chain, after)| {
        let page = audit.lines(&chain, after, READ_AT_ONCE).await.inspect_err(|error| {
            tracing::error!(error = %Causes(error), "the audit record was not sent whole");
        });
        let page = page.map_err(std::io::Error::other)?;
        let Some(last) = page.last().map(|line| line.seq) else { return Ok::<_, std::io::Error>(None) };
        let text: Result<String, serde_json::Error> = page.into_iter().map(json_line).collect();
        Ok(Some((Bytes::from(text?), (audit, chain, last))))
    });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(NDJSON)),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"audit.ndjson\"")),
    ];
    (headers, Body::from_stream(pages)).into_response()
}

fn read(part: Result<Query<Part>, QueryRejection>) -> Result<(u32, u64), Problem> {
    let Query(Part { limit, cursor }) =
        part.map_err(|_| Problem::bad_request("limit and cursor must each be given once at most"))?;
    let is_number = |text: &&str| !text.is_empty() && text.len() <= 18 && text.bytes().all(|b| b.is_ascii_digit());
    let limit = match limit.as_deref() {
        None | Some("") => DEFAULT_LIMIT,
        Some(text) => Some(text)
            .filter(is_number)
            .and_then(|text| text.parse().ok())
            .filter(|limit| (1..=MAX_LIMIT).contains(limit))
            .ok_or_else(|| Problem::bad_request(format!("limit must be a whole number from 1 to {MAX_LIMIT}")))?,
    };
    let after = match cursor.as_deref() {
        None | Some("") => 0,
        Some(text) => Some(text)
            .filter(is_number)
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| Problem::cursor_invalid("the audit record has not given this cursor"))?,
    };
    Ok((limit, after))
}

fn failed(error: StoreError) -> Problem {
    Problem::store_failed("audit record not read or written", error)
}
