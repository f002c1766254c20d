//! `/v1/agent/conversations`: what users see of their conversations, and what they may do with them. An invalid id, an
//! unknown one and another user's are all the same 404.

use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::{Extension, Json};
use serde::Deserialize;

use super::Services;
use super::auth::Authenticated;
use super::body::Taken;
use super::conversation_views::{ConversationBody, ExportBody, HeadBody, ListBody, TrailBody};
use super::export::{Export, Format};
use super::problem::Problem;
use super::share::Slot;
use super::versions::Tree;
use crate::agent::ports::conversations::{BranchRef, Listed, Page};
use crate::agent::ports::places::{Changes, Opening};
use crate::agent::ports::store_error::StoreError;
use crate::bounded::memory::Kind;
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::input::Screen;
use crate::chat::place::Place;
use crate::dialect::agent_chat::{ConversationBody as ConversationRequest, PlaceRequest};

/// Items of a list where the request does not say.
pub(super) const DEFAULT_LIMIT: u32 = 20;

/// Items of a list at most.
const MAX_LIMIT: u32 = 100;

/// Messages of a conversation where the request does not say.
const DEFAULT_MESSAGES: u32 = 200;

/// Messages of a conversation at most, but for those of its first run.
const MAX_MESSAGES: u32 = 1000;

/// What such a part takes of its user's memory.
const MESSAGES_BYTES: usize = 1 << 20;

/// A path's conversation, as far as the path tells.
pub(super) type ConversationPath = Result<Path<String>, PathRejection>;

/// Which part of a list.
#[derive(Deserialize)]
pub(super) struct Part {
    limit: Option<String>,
    cursor: Option<String>,
}

/// Which part of which branch.
#[derive(Deserialize)]
pub(super) struct BranchPart {
    limit: Option<String>,
    cursor: Option<String>,
    branch: Option<String>,
}

/// Which part of the list of conversations, and which of them.
#[derive(Deserialize)]
pub(super) struct ListPart {
    archived: Option<String>,
    pinned: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

/// 200 with the caller's conversations, pinned ones first, then newest change first.
#[utoipa::path(
    get,
    path = "/v1/agent/conversations",
    operation_id = "listConversations",
    tag = "Conversations",
    summary = "List conversations",
    description = "The caller's own, pinned ones first, then newest change first.",
    params(
        ("archived" = Option<bool>, Query, description = "`true`: the archived ones; else all others."),
        ("pinned" = Option<bool>, Query, description = "`true`: only the pinned ones of them; `false`: only the others."),
        ("limit" = Option<String>, Query, description = "How many, 1 to 100; else 20.", pattern = "^([1-9][0-9]?|100)?$"),
        ("cursor" = Option<String>, Query, description = "What the last part named as `next_cursor`."),
    ),
    responses(
        (status = 200, description = "A part of the list.", body = ListBody),
        (status = 400, description = "`invalid_request`, `cursor_invalid`: a limit that is none, or neither `true` nor `false`; a cursor that this list has not given."),
    ),
)]
pub(super) async fn list(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    part: Result<Query<ListPart>, QueryRejection>,
) -> Result<Json<ListBody>, Problem> {
    let Query(ListPart { archived, pinned, limit, cursor }) =
        part.map_err(|_| Problem::bad_request("archived, pinned, limit and cursor must each be given once at most"))?;
    let (archived, pinned) = (flag("archived", archived)?.unwrap_or_default(), flag("pinned", pinned)?);
    let page = page_of((limit, cursor), DEFAULT_LIMIT, MAX_LIMIT)?;
    let conversations = services.conversations.conversations(&caller.owner, Listed { archived, pinned }, page).await?;
    Ok(Json(ListBody::from_page(conversations)))
}

/// 200 with the conversation and the newest messages of its newest branch, or those before a cursor.
#[utoipa::path(
    get,
    path = "/v1/agent/conversations/{conversation_id}",
    operation_id = "getConversation",
    tag = "Conversations",
    summary = "Read a conversation",
    description = "With the newest messages of its newest branch, or of the one that `branch` names, oldest first. A run is there whole or not at all, and one always is, so there may be more of them than asked for. A message that was edited, or answered again, says where its other versions are.",
    params(
        ("conversation_id" = String, Path, description = "The caller's own conversation."),
        ("limit" = Option<String>, Query, description = "How many messages, 1 to 1000; else 200. At most 1 MiB of them.", pattern = "^([1-9][0-9]{0,2}|1000)?$"),
        ("cursor" = Option<String>, Query, description = "What the part after these named as `next_cursor`."),
        ("branch" = Option<String>, Query, description = "The run that the branch ends with, as `versions` and `answers` name them; else the newest one."),
    ),
    responses(
        (status = 200, description = "The conversation.", body = ConversationBody),
        (status = 400, description = "`invalid_request`, `cursor_invalid`: a limit that is none; a cursor that this conversation has not given."),
        (status = 404, description = "`not_found`: there is no such conversation or branch, or it is another's."),
    ),
)]
pub(super) async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    Extension(slot): Extension<Slot>,
    id: ConversationPath,
    part: Result<Query<BranchPart>, QueryRejection>,
) -> Result<Json<ConversationBody>, Problem> {
    let id = parse(id)?;
    let Query(BranchPart { limit, cursor, branch }) =
        part.map_err(|_| Problem::bad_request("limit, cursor and branch must each be given once at most"))?;
    let page = page_of((limit, cursor), DEFAULT_MESSAGES, MAX_MESSAGES)?;
    let tip = branch.filter(|branch| !branch.is_empty()).map(|branch| RunId::parse(&branch)).transpose();
    let tip = tip.map_err(|_| no_such_conversation())?;
    let _share = slot.bytes(MESSAGES_BYTES)?;
    let mut held = services.intake.memory().reserve(Kind::Export, 0)?;
    // Before its messages: a run that ends in between is named though its answer is there already, which does no harm;
    // the other way round its answer would be in neither.
    let live = services.runs.live_run(&caller.owner, &id).await.map_err(failed)?;
    let branch = BranchRef { conversation: &id, tip };
    let found = services.conversations.conversation(&caller.owner, branch, page, &mut held).await?;
    let view = found.ok_or_else(no_such_conversation)?;
    let tree = Tree::of(services.branches.tree(&caller.owner, &id).await.map_err(failed)?);
    Ok(Json(ConversationBody::from_view(view, live, &tree)))
}

/// What a body opens or changes.
fn read(body: &[u8]) -> Result<PlaceRequest, Problem> {
    PlaceRequest::decode(body).map_err(|error| Problem::unprocessable(error.to_string()))
}

/// 201 with a conversation that has no run yet: its first one goes on where it is. No list shows it before.
#[utoipa::path(
    post,
    path = "/v1/agent/conversations",
    operation_id = "openConversation",
    tag = "Conversations",
    summary = "Open a conversation before its first message",
    description = "It has a place and perhaps a title, is in no list, and is gone after a day without a run; of a user's such conversations the newest hundred are kept.",
    request_body = ConversationRequest<'static>,
    responses(
        (status = 201, description = "As lists show it when it has a run; `Location` is its address.", body = HeadBody),
        (status = 400, description = "`invalid_request`: no such profile."),
        (status = 403, description = "`forbidden`: the profile asks for a role."),
        (status = 422, description = "`invalid_request`: a field that is wrong."),
    ),
)]
pub(super) async fn open(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    body: Taken,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<HeadBody>), Problem> {
    let PlaceRequest { title, context_type, place, .. } = read(&body)?;
    let screen = context_type.map_or(Screen::OfConversation, Screen::Type);
    let context_type = services.runs.context_type_at(&caller, &screen)?;
    let place = Place::begun(context_type, &place);
    let id = ConversationId::fresh();
    let head = services
        .places
        .open(&caller.owner, &id, &place, Opening::Named { title: title.as_deref() })
        .await
        .map_err(failed)?;
    let location = (header::LOCATION, format!("/v1/agent/conversations/{id}"));
    Ok((StatusCode::CREATED, [location], Json(HeadBody::from_head(head))))
}

/// 200 with the conversation as lists show it then; 422 for a field that is wrong.
#[utoipa::path(
    patch,
    path = "/v1/agent/conversations/{conversation_id}",
    operation_id = "changeConversation",
    tag = "Conversations",
    summary = "Rename, pin, archive or move a conversation",
    description = "What is left out stays, as far as it fits; `entity_id` and `focus` are cleared by `null`. A run that is under way stays where it is. One without a run is in no list, and is neither pinned nor archived.",
    params(
        ("conversation_id" = String, Path, description = "The caller's own conversation."),
    ),
    request_body = ConversationRequest<'static>,
    responses(
        (status = 200, description = "As lists show it then.", body = HeadBody),
        (status = 400, description = "`invalid_request`: no such profile."),
        (status = 403, description = "`forbidden`: the profile asks for a role."),
        (status = 404, description = "`not_found`: there is no such conversation, or it is another's."),
        (status = 422, description = "`invalid_request`: a field that is wrong, or none."),
    ),
)]
pub(super) async fn change(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: ConversationPath,
    body: Taken,
) -> Result<Json<HeadBody>, Problem> {
    let id = parse(id)?;
    let PlaceRequest { title, context_type, place, pinned, archived } = read(&body)?;
    if title.is_none() && context_type.is_none() && place.is_empty() && pinned.is_none() && archived.is_none() {
        let fields = "title, context_type, entity_id, focus, pinned and archived";
        return Err(Problem::unprocessable(format!("one of {fields} must be there")));
    }
    let context_type = context_type.map(|name| services.runs.context_type_at(&caller, &Screen::Type(name)));
    let changes = Changes { title, context_type: context_type.transpose()?, place, pinned, archived };
    let changed = services.places.change(&caller.owner, &id, &changes).await.map_err(failed)?;
    Ok(Json(HeadBody::from_head(changed.ok_or_else(no_such_conversation)?)))
}

/// 204 when the conversation is gone with everything of it; its live runs are cancelled.
#[utoipa::path(
    delete,
    path = "/v1/agent/conversations/{conversation_id}",
    operation_id = "deleteConversation",
    tag = "Conversations",
    summary = "Delete a conversation",
    description = "With everything of it; its live runs are cancelled.",
    params(
        ("conversation_id" = String, Path, description = "The caller's own conversation."),
    ),
    responses(
        (status = 204, description = "It is gone."),
        (status = 404, description = "`not_found`: there is no such conversation, or it is another's."),
    ),
)]
pub(super) async fn delete(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: ConversationPath,
) -> Result<StatusCode, Problem> {
    let id = parse(id)?;
    let runs = services.conversations.delete(&caller.owner, &id).await.map_err(failed)?;
    services.deleted((&caller.owner, &id), runs.ok_or_else(no_such_conversation)?).await;
    Ok(StatusCode::NO_CONTENT)
}

/// What an export is to be.
#[derive(Deserialize)]
pub(super) struct Exported {
    format: Option<String>,
}

/// 200 with everything of the conversation as one document to keep.
#[utoipa::path(
    get,
    path = "/v1/agent/conversations/{conversation_id}/export",
    operation_id = "exportConversation",
    tag = "Conversations",
    summary = "Take a conversation away",
    description = "All of it as one document: every branch, run, payload, approval, and the trail; or as a text for people what its user sees of it. It is sent while it is read; one that breaks off is not all of it.",
    params(
        ("conversation_id" = String, Path, description = "The caller's own conversation."),
        ("format" = Option<String>, Query, description = "`json` (the default), `markdown` or `text`."),
    ),
    responses(
        (status = 200, description = "The document, as an attachment.", content((ExportBody = "application/json"), (String = "text/markdown"), (String = "text/plain"))),
        (status = 400, description = "`invalid_request`: a format that is none."),
        (status = 404, description = "`not_found`: there is no such conversation, or it is another's."),
        (status = 429, description = "`export_quota_exceeded`: as many were exported as may be on a day."),
    ),
)]
pub(super) async fn export(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    Extension(slot): Extension<Slot>,
    id: ConversationPath,
    asked: Result<Query<Exported>, QueryRejection>,
) -> Result<([(HeaderName, HeaderValue); 2], Body), Problem> {
    let id = parse(id)?;
    let Query(Exported { format }) = asked.map_err(|_| Problem::bad_request("format must be given once at most"))?;
    let format = Format::parse(format.as_deref())?;
    let begun = Export::begin(services.clone(), &slot, (caller.owner.clone(), id), format).await?;
    // A missing conversation counts too: otherwise the limit would reveal which ids exist.
    services.exports.take_export(&caller.owner, &services.quotas).await?;
    let body = begun.ok_or_else(no_such_conversation)?.body();
    let [attachment, content_type] = format.headers().map(HeaderValue::from_static);
    Ok(([(header::CONTENT_DISPOSITION, attachment), (header::CONTENT_TYPE, content_type)], body))
}

/// 200 with the trail of the conversation, oldest first.
#[utoipa::path(
    get,
    path = "/v1/agent/conversations/{conversation_id}/trail",
    operation_id = "readTrail",
    tag = "Conversations",
    summary = "Read what happened",
    description = "The trail of a conversation, oldest first.",
    params(
        ("conversation_id" = String, Path, description = "The caller's own conversation."),
        ("limit" = Option<String>, Query, description = "How many, 1 to 100; else 20.", pattern = "^([1-9][0-9]?|100)?$"),
        ("cursor" = Option<String>, Query, description = "What the last part named as `next_cursor`."),
    ),
    responses(
        (status = 200, description = "A part of the trail.", body = TrailBody),
        (status = 400, description = "`invalid_request`, `cursor_invalid`: a limit that is none; a cursor that this list has not given."),
        (status = 404, description = "`not_found`: there is no such conversation, or it is another's."),
    ),
)]
pub(super) async fn trail(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: ConversationPath,
    part: Result<Query<Part>, QueryRejection>,
) -> Result<Json<TrailBody>, Problem> {
    let id = parse(id)?;
    let trail = services.conversations.trail(&caller.owner, &id, page(part)?).await?;
    Ok(Json(TrailBody::from_page(trail.ok_or_else(no_such_conversation)?)))
}

pub(super) fn parse(path: ConversationPath) -> Result<ConversationId, Problem> {
    path.ok().and_then(|Path(text)| ConversationId::parse(&text).ok()).ok_or_else(no_such_conversation)
}

fn page(part: Result<Query<Part>, QueryRejection>) -> Result<Page, Problem> {
    page_of(limit_and_cursor(part)?, DEFAULT_LIMIT, MAX_LIMIT)
}

/// What a request says of the part of a list that it wants.
pub(super) type LimitAndCursor = (Option<String>, Option<String>);

pub(super) fn limit_and_cursor(part: Result<Query<Part>, QueryRejection>) -> Result<LimitAndCursor, Problem> {
    let Query(Part { limit, cursor }) =
        part.map_err(|_| Problem::bad_request("limit and cursor must each be given once at most"))?;
    Ok((limit, cursor))
}

fn flag(name: &str, given: Option<String>) -> Result<Option<bool>, Problem> {
    match given.as_deref() {
        None | Some("") => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => Err(Problem::bad_request(format!("{name} must be true or false"))),
    }
}

pub(super) fn page_of((limit, cursor): LimitAndCursor, default: u32, most: u32) -> Result<Page, Problem> {
    let limit = match limit.as_deref() {
        None | Some("") => default,
        Some(text) => {
            let limit =
                Some(text).filter(|text| text.bytes().all(|b| b.is_ascii_digit())).and_then(|text| text.parse().ok());
            limit
                .filter(|limit| (1..=most).contains(limit))
                .ok_or_else(|| Problem::bad_request(format!("limit must be a whole number from 1 to {most}")))?
        }
    };
    Ok(Page { limit, cursor: cursor.filter(|cursor| !cursor.is_empty()) })
}

pub(super) fn no_such_conversation() -> Problem {
    Problem::not_found("there is no such conversation")
}

pub(super) fn failed(error: StoreError) -> Problem {
    Problem::store_failed("conversation not read or changed", error)
}
