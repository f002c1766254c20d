//! `/api/agent/stream` read, and `/api/chat/sessions`. An unknown session and another's are the same 404.

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use super::views::{Closed, Data, Deleted, ListData, OneData, Queued, ReadData, SessionData, ViewData};
use crate::agent::ports::chats::ChatRun;
use crate::agent::ports::places::Changes;
use crate::agent::ports::plans::PlanRecord;
use crate::bounded::json;
use crate::chat::caller::Owner;
use crate::chat::ids::ConversationId;
use crate::chat::input::Screen;
use crate::chat::place::{PlaceUpdate, Update};
use crate::chat::session::Session;
use crate::dialect::FieldError;
use crate::http::Services;
use crate::http::auth::Authenticated;
use crate::http::body::Taken;
use crate::http::code::Code;
use crate::http::conversations::failed;
use crate::http::problem::Problem;

/// Sessions of a list.
const LISTED: u32 = 10;

/// The longest title, in characters.
const TITLE_CHARS: usize = 120;

/// The longest id of an entity, in characters.
const ENTITY_CHARS: usize = 200;

/// Plans of a session whose calls are shown, the newest.
const PLANS: u32 = 50;

type Found = (Session, Vec<ChatRun>, Vec<PlanRecord>);

/// A path's session, as far as the path tells.
type SessionPath = Result<Path<String>, PathRejection>;

#[derive(Deserialize)]
pub(in crate::http) struct Which {
    session_id: Option<String>,
}

/// 200 with the caller's sessions, or with one and all of its messages.
#[utoipa::path(
    get,
    path = "/api/agent/stream",
    operation_id = "readAgentSessions",
    tag = "Agent Stream",
    summary = "List sessions, or read one",
    description = "Without `session_id` the ten that changed last, in `data.sessions`; with it that one, in `data.session`, with the newest 400 messages in all roles.",
    params(("session_id" = Option<String>, Query, description = "The caller's own session.")),
    responses(
        (status = 200, description = "The sessions, or the session.", body = Data<ReadData<'static>>),
        (status = 400, description = "`invalid_request`: a parameter that comes twice."),
        (status = 404, description = "`not_found`: there is no such session, or it is another's."),
    ),
)]
pub(in crate::http) async fn list(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Response, Problem> {
    let Ok(Query(which)) = which else { return Err(Problem::bad_request("each parameter may be given once")) };
    match which.session_id.filter(|id| !id.is_empty()) {
        None => {
            let sessions = services.sessions.sessions(&caller.owner, LISTED).await.map_err(failed)?;
            Ok(Json(Data::new(ReadData::Several(ListData::from_sessions(&sessions)))).into_response())
        }
        Some(id) => {
            let (session, runs, plans) = find(&services, &caller.owner, &id).await?;
            Ok(Json(Data::new(ReadData::One(Box::new(OneData::from_session(&session, &runs, &plans))))).into_response())
        }
    }
}

/// 200 with the session and what its user and the model said.
#[utoipa::path(
    get,
    path = "/api/chat/sessions/{session_id}",
    operation_id = "getAgentSession",
    tag = "Agent Stream",
    summary = "Read a session",
    params(("session_id" = String, Path, description = "The caller's own session.")),
    responses(
        (status = 200, description = "The session with its newest 400 messages.", body = Data<ViewData<'static>>),
        (status = 404, description = "`not_found`: there is no such session, or it is another's."),
    ),
)]
pub(in crate::http) async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: SessionPath,
) -> Result<Response, Problem> {
    let (session, runs, plans) = find(&services, &caller.owner, &path(id)?).await?;
    Ok(Json(Data::new(ViewData::from_session(&session, &runs, &plans))).into_response())
}

#[derive(Deserialize, ToSchema)]
#[schema(as = AgentSessionRenaming)]
pub(in crate::http) struct Renaming<'a> {
    /// 1 to 120 characters.
    #[serde(borrow)]
    #[schema(value_type = String, min_length = 1)]
    title: Option<&'a RawValue>,
}

/// 200 with the session under its new title.
#[utoipa::path(
    patch,
    path = "/api/chat/sessions/{session_id}",
    operation_id = "renameAgentSession",
    tag = "Agent Stream",
    summary = "Rename a session",
    params(("session_id" = String, Path, description = "The caller's own session.")),
    request_body = Renaming<'static>,
    responses(
        (status = 200, description = "The session.", body = Data<SessionData<'static>>),
        (status = 400, description = "`invalid_request`: no JSON object."),
        (status = 404, description = "`not_found`: there is no such session, or it is another's."),
        (status = 422, description = "`invalid_request`: a title that is none."),
    ),
)]
pub(in crate::http) async fn rename(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: SessionPath,
    body: Taken,
) -> Result<Response, Problem> {
    let id = parse(&path(id)?)?;
    let Renaming { title } = body_of(&body)?;
    let title: Option<String> = title.and_then(|raw| json::parse(raw.get()).ok());
    let title = title.map(|title| title.trim().to_owned());
    let fits =
        |title: &String| (1..=TITLE_CHARS).contains(&title.chars().count()) && !title.chars().any(char::is_control);
    let Some(title) = title.filter(fits) else {
        let reason = format!("must have 1 to {TITLE_CHARS} characters");
        return Err(Problem::unprocessable_field(FieldError { field: "title", reason }));
    };
    change(&services, &caller.owner, &id, Changes { title: Some(title), ..Changes::default() }).await?;
    let session = services.sessions.session(&caller.owner, &id).await.map_err(failed)?;
    let session = session.ok_or_else(no_such_session)?;
    Ok(Json(Data::new(SessionData::from_session(&session))).into_response())
}

/// 200 when the session is gone with everything of it; its live runs are cancelled.
#[utoipa::path(
    delete,
    path = "/api/chat/sessions/{session_id}",
    operation_id = "deleteAgentSession",
    tag = "Agent Stream",
    summary = "Delete a session",
    params(("session_id" = String, Path, description = "The caller's own session.")),
    responses(
        (status = 200, description = "It is gone.", body = Data<Deleted>),
        (status = 404, description = "`not_found`: there is no such session, or it is another's."),
    ),
)]
pub(in crate::http) async fn delete(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: SessionPath,
) -> Result<Response, Problem> {
    let id = parse(&path(id)?)?;
    let runs = services.conversations.delete(&caller.owner, &id).await.map_err(failed)?;
    services.deleted((&caller.owner, &id), runs.ok_or_else(no_such_session)?).await;
    Ok(Json(Data::new(Deleted { deleted: true })).into_response())
}

#[derive(Default, Deserialize, ToSchema)]
#[schema(as = AgentSessionClosing)]
pub(in crate::http) struct Closing<'a> {
    /// Where the user was.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    context_type: Option<&'a RawValue>,
    /// What that was about.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    entity_id: Option<&'a RawValue>,
}

/// 200 when it is noted where its user has left the session. A body that makes no sense says nothing.
#[utoipa::path(
    post,
    path = "/api/chat/sessions/{session_id}/close",
    operation_id = "closeAgentSession",
    tag = "Agent Stream",
    summary = "Leave a session",
    params(("session_id" = String, Path, description = "The caller's own session.")),
    request_body = Option<Closing<'static>>,
    responses(
        (status = 200, description = "It is noted.", body = Data<Closed>),
        (status = 404, description = "`not_found`: there is no such session, or it is another's."),
    ),
)]
pub(in crate::http) async fn close(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: SessionPath,
    body: Taken,
) -> Result<Response, Problem> {
    let id = parse(&path(id)?)?;
    let Closing { context_type, entity_id } = body_of(&body).unwrap_or_default();
    let word = |raw: Option<&RawValue>| -> Option<String> {
        raw.and_then(|raw| json::parse::<String>(raw.get()).ok()).filter(|text| !text.trim().is_empty())
    };
    let context_type = word(context_type);
    let context_type = context_type.and_then(|name| services.runs.context_type_at(&caller, &Screen::Type(name)).ok());
    let entity = word(entity_id).filter(|id| id.chars().count() <= ENTITY_CHARS && !id.chars().any(char::is_control));
    let place = PlaceUpdate { entity: entity.map_or(Update::Keep, Update::Set), focus: Update::Keep };
    let updated = context_type.is_some() || !place.is_empty();
    change(&services, &caller.owner, &id, Changes { context_type, place, ..Changes::default() }).await?;
    let session = services.sessions.session(&caller.owner, &id).await.map_err(failed)?.ok_or_else(no_such_session)?;
    let labelled = session.labels.as_ref().map(|labels| labels.at_ms);
    let is_new = session.message_count > 1
        && session.last_message_at_ms.is_some_and(|at| labelled.is_none_or(|labelled| labelled < at));
    let classification_queued = is_new && services.runs.label(&caller.owner, &session);
    Ok(Json(Data::new(Closed { updated, classification_queued })).into_response())
}

/// 200 when a helper will label the session behind the scenes.
#[utoipa::path(
    post,
    path = "/api/chat/sessions/{session_id}/classify",
    operation_id = "classifyAgentSession",
    tag = "Agent Stream",
    summary = "Have a session labelled",
    params(("session_id" = String, Path, description = "The caller's own session.")),
    responses(
        (status = 200, description = "It will be tried.", body = Data<Queued>),
        (status = 404, description = "`not_found`: there is no such session, or it is another's."),
        (status = 503, description = "`helper_off`: nobody does that here (`helpers.title`)."),
    ),
)]
pub(in crate::http) async fn classify(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: SessionPath,
) -> Result<Response, Problem> {
    let id = parse(&path(id)?)?;
    let session = services.sessions.session(&caller.owner, &id).await.map_err(failed)?.ok_or_else(no_such_session)?;
    match services.runs.label(&caller.owner, &session) {
        true => Ok(Json(Data::new(Queued { queued: true, job_id: Uuid::now_v7().to_string() })).into_response()),
        false => Err(Problem::unavailable(Code::HelperOff, "nobody labels conversations here")),
    }
}

/// A session with its runs, and the newest of its plans.
async fn find(services: &Services, owner: &Owner, id: &str) -> Result<Found, Problem> {
    let id = parse(id)?;
    let (session, runs) =
        services.sessions.session_runs(owner, &id, None).await.map_err(failed)?.ok_or_else(no_such_session)?;
    let plans = services.plans.plans(owner, &id, PLANS).await.map_err(failed)?;
    Ok((session, runs, plans))
}

async fn change(services: &Services, owner: &Owner, id: &ConversationId, changes: Changes) -> Result<(), Problem> {
    let changed = services.places.change(owner, id, &changes).await.map_err(failed)?;
    changed.map(drop).ok_or_else(no_such_session)
}

fn body_of<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Problem> {
    let text = json::utf8(body).map_err(|error| Problem::bad_request(error.to_string()))?;
    json::check(text).map_err(|error| Problem::bad_request(error.to_string()))?;
    match text.trim_start().starts_with('{') {
        true => json::parse(text).map_err(|error| Problem::bad_request(error.to_string())),
        false => Err(Problem::bad_request("the body must be a JSON object")),
    }
}

fn path(id: SessionPath) -> Result<String, Problem> {
    id.map(|Path(id)| id).map_err(|_| no_such_session())
}

pub(super) fn parse(id: &str) -> Result<ConversationId, Problem> {
    ConversationId::parse(id).map_err(|_| no_such_session())
}

pub(super) fn no_such_session() -> Problem {
    Problem::not_found("there is no such session")
}
