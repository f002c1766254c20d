//! `/v1/agent/conversations`: what users see of their conversations, and what they may do with them. What is no id,
//! nobody's or another's is all the same 404.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::Deserialize;

use super::Services;
use super::auth::Authenticated;
use super::chat::readable;
use super::conversation_views::{ConversationBody, ExportBody, HeadBody, ListBody, TrailBody};
use super::problem::Problem;
use crate::agent::ports::conversations::{Page, PageError};
use crate::agent::ports::store::StoreError;
use crate::chat::causes::Causes;
use crate::chat::ids::ConversationId;

/// Items of a list where the request does not say.
const DEFAULT_LIMIT: u32 = 20;

/// Items of a list at most.
const MAX_LIMIT: u32 = 100;

/// The longest title, in characters.
const TITLE_CHARS: usize = 200;

/// A path's conversation, as far as the path tells.
type ConversationPath = Result<Path<String>, PathRejection>;

/// Which part of a list.
#[derive(Deserialize)]
pub(super) struct Part {
    limit: Option<String>,
    cursor: Option<String>,
}

/// 200 with the caller's conversations, newest change first.
pub(super) async fn list(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    part: Result<Query<Part>, QueryRejection>,
) -> Result<Json<ListBody>, Problem> {
    let conversations = services.conversations.conversations(&caller.owner, page(part)?).await.map_err(paged)?;
    Ok(Json(ListBody::of(conversations)))
}

/// 200 with the conversation and the messages of its newest branch.
pub(super) async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: ConversationPath,
) -> Result<Json<ConversationBody>, Problem> {
    let id = parse(id)?;
    // Before its messages: a run that ends in between is named though its answer is there already, which does no harm;
    // the other way round its answer would be in neither.
    let live = services.runs.live_run(&caller.owner, &id).await.map_err(failed)?;
    let found = services.conversations.conversation(&caller.owner, &id).await.map_err(failed)?;
    Ok(Json(ConversationBody::of(found.ok_or_else(no_such_conversation)?, live)))
}

#[derive(Deserialize)]
struct Renaming {
    title: String,
}

/// 200 with the conversation as lists show it then; 422 for a title that is none.
pub(super) async fn rename(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: ConversationPath,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<HeadBody>, Problem> {
    let body = readable(&headers, body)?;
    let id = parse(id)?;
    let Renaming { title } = serde_json::from_slice(&body)
        .map_err(|error| Problem::unprocessable(format!(r#"the body must be {{"title": text}}: {error}"#)))?;
    let fits = !title.trim().is_empty() && title.chars().count() <= TITLE_CHARS;
    if !fits || title.chars().any(char::is_control) {
        let detail = format!("title must have 1 to {TITLE_CHARS} characters, none of them a control character");
        return Err(Problem::unprocessable(detail));
    }
    let renamed = services.conversations.rename(&caller.owner, &id, &title).await.map_err(failed)?;
    Ok(Json(HeadBody::of(renamed.ok_or_else(no_such_conversation)?)))
}

/// 204 when the conversation is gone with everything of it; its live runs are cancelled.
pub(super) async fn delete(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: ConversationPath,
) -> Result<StatusCode, Problem> {
    let id = parse(id)?;
    let runs = services.conversations.delete(&caller.owner, &id).await.map_err(failed)?;
    services.runs.deleted(&id, runs.ok_or_else(no_such_conversation)?);
    Ok(StatusCode::NO_CONTENT)
}

/// 200 with everything of the conversation as one document to keep.
pub(super) async fn export(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: ConversationPath,
) -> Result<([(HeaderName, HeaderValue); 1], Json<ExportBody>), Problem> {
    let id = parse(id)?;
    let export = services.conversations.export(&caller.owner, &id).await.map_err(failed)?;
    let body = ExportBody::of(export.ok_or_else(no_such_conversation)?);
    // No other name: an id may have characters that file systems refuse.
    let attachment = HeaderValue::from_static("attachment; filename=\"conversation.json\"");
    Ok(([(header::CONTENT_DISPOSITION, attachment)], Json(body)))
}

/// 200 with what happened in the conversation, oldest first.
pub(super) async fn trail(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: ConversationPath,
    part: Result<Query<Part>, QueryRejection>,
) -> Result<Json<TrailBody>, Problem> {
    let id = parse(id)?;
    let trail = services.conversations.trail(&caller.owner, &id, page(part)?).await.map_err(paged)?;
    Ok(Json(TrailBody::of(trail.ok_or_else(no_such_conversation)?)))
}

fn parse(path: ConversationPath) -> Result<ConversationId, Problem> {
    path.ok().and_then(|Path(text)| ConversationId::parse(&text).ok()).ok_or_else(no_such_conversation)
}

fn page(part: Result<Query<Part>, QueryRejection>) -> Result<Page, Problem> {
    let Query(Part { limit, cursor }) =
        part.map_err(|_| Problem::bad_request("limit and cursor must each be given once at most"))?;
    let limit = match limit.as_deref() {
        None | Some("") => DEFAULT_LIMIT,
        Some(text) => {
            let limit =
                Some(text).filter(|text| text.bytes().all(|b| b.is_ascii_digit())).and_then(|text| text.parse().ok());
            limit
                .filter(|limit| (1..=MAX_LIMIT).contains(limit))
                .ok_or_else(|| Problem::bad_request(format!("limit must be a whole number from 1 to {MAX_LIMIT}")))?
        }
    };
    Ok(Page { limit, cursor: cursor.filter(|cursor| !cursor.is_empty()) })
}

fn no_such_conversation() -> Problem {
    Problem::not_found("there is no such conversation")
}

fn failed(error: StoreError) -> Problem {
    tracing::error!(error = %Causes(&error), "conversation not read or changed");
    error.into()
}

fn paged(error: PageError) -> Problem {
    match error {
        PageError::BadCursor => Problem::cursor_invalid(error.to_string()),
        PageError::Store(cause) => failed(cause),
    }
}
