//! Dialogs: their list, the current one, and what is done to one.

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{desk, dialog, no_such_dialog, session, unread};
use crate::agent::ports::places::{Changes, Opening};
use crate::bounded::json;
use crate::chat::caller::Owner;
use crate::chat::day::rfc3339 as time;
use crate::chat::ids::ConversationId;
use crate::chat::place::{Place, PlaceUpdate};
use crate::chat::session::Session;
use crate::dialect::smithy::dialog_id;
use crate::dialect::{DecodeError, Mistake};
use crate::http::Services;
use crate::http::auth::Authenticated;
use crate::http::body::Taken;
use crate::http::current;
use crate::http::problem::Problem;

/// A part of the list of dialogs.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Part {
    /// `updated_at` (default) or `created_at`.
    sort: Option<String>,
    /// `desc` (default) or `asc`.
    order: Option<String>,
    /// At most so many; default 50.
    limit: Option<usize>,
    /// So many are left out.
    offset: Option<usize>,
}

/// The dialogs of a user.
#[derive(Serialize, ToSchema)]
#[schema(as = SmithyDialogs)]
pub(super) struct ListBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    current_dialog_id: Option<String>,
    dialogs: Vec<Meta>,
}

/// A dialog.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = SmithyDialog)]
pub(super) struct Meta {
    id: String,
    /// Not there until somebody gives one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    title: Option<String>,
    created_at: String,
    updated_at: String,
}

/// The current dialog; nothing where there is none.
#[derive(Serialize, ToSchema)]
#[schema(as = SmithyCurrent)]
pub(super) struct CurrentBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    meta: Option<Meta>,
}

/// It was done.
#[derive(Serialize, ToSchema)]
#[schema(as = SmithyDone)]
pub(super) struct DoneBody {
    ok: bool,
}

/// A dialog that was renamed.
#[derive(Serialize, ToSchema)]
#[schema(as = SmithyRenamed)]
pub(super) struct RenamedBody {
    ok: bool,
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    title: Option<String>,
    updated_at: String,
}

/// A new dialog.
#[derive(Deserialize, ToSchema)]
#[schema(as = SmithyNewDialog)]
pub(super) struct NewBody {
    #[serde(default)]
    title: Option<String>,
    /// Whether messages go to it that name none; default true.
    #[serde(default)]
    set_current: Option<bool>,
}

/// A title.
#[derive(Deserialize, ToSchema)]
#[schema(as = SmithyTitle)]
pub(super) struct TitleBody {
    #[serde(default)]
    title: Option<String>,
}

/// Which dialog.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Chosen {
    /// The dialog.
    id: Option<String>,
}

impl Meta {
    fn from_session(session: Session) -> Self {
        let Session { id, title, created_at_ms, updated_at_ms, .. } = session;
        let title = title.filter(|title| !title.is_empty());
        Self { id: id.to_string(), title, created_at: time(created_at_ms), updated_at: time(updated_at_ms) }
    }
}

/// 200 with the caller's dialogs.
#[utoipa::path(
    get,
    path = "/api/dialogs",
    operation_id = "smithyDialogs",
    tag = "Smithy",
    summary = "List dialogs",
    description = "Also those that wait for their first message.",
    params(Part),
    responses(
        (status = 200, description = "The dialogs.", body = ListBody),
        (status = 404, description = "`not_found`: there is no workspace."),
        (status = 422, description = "`invalid_request`: a parameter that is wrong."),
    ),
)]
pub(in crate::http) async fn list(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    part: Result<Query<Part>, QueryRejection>,
) -> Result<Json<ListBody>, Problem> {
    let desk = desk(&services, &caller)?;
    let Query(Part { sort, order, limit, offset }) = part.map_err(|_| wrong("query", "limit", "must be a number"))?;
    let by_creation = match sort.as_deref() {
        None | Some("updated_at") => false,
        Some("created_at") => true,
        Some(_) => return Err(wrong("query", "sort", "must be updated_at or created_at")),
    };
    let is_ascending = match order.as_deref() {
        None | Some("desc") => false,
        Some("asc") => true,
        Some(_) => return Err(wrong("query", "order", "must be desc or asc")),
    };
    let owner = &caller.owner;
    let mut found = current::dialogs(&services, owner, &desk.profile).await?;
    let chosen = current::find(&services, owner).await?;
    found.sort_by_key(|session| if by_creation { session.created_at_ms } else { session.updated_at_ms });
    if !is_ascending {
        found.reverse();
    }
    let part = found.into_iter().skip(offset.unwrap_or_default()).take(limit.unwrap_or(50));
    let dialogs = part.map(Meta::from_session).collect();
    Ok(Json(ListBody { current_dialog_id: chosen.map(|id| id.to_string()), dialogs }))
}

/// 200 with a new dialog.
#[utoipa::path(
    post,
    path = "/api/dialogs",
    operation_id = "smithyNewDialog",
    tag = "Smithy",
    summary = "Begin a dialog",
    description = "It is the current one from now on, unless `set_current` is false.",
    request_body = Option<NewBody>,
    responses(
        (status = 200, description = "The dialog.", body = Meta),
        (status = 404, description = "`not_found`: there is no workspace."),
        (status = 422, description = "`invalid_request`: the body is something else."),
    ),
)]
pub(in crate::http) async fn create(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    body: Taken,
) -> Result<Json<Meta>, Problem> {
    desk(&services, &caller)?;
    let NewBody { title, set_current } = read(&body)?.unwrap_or(NewBody { title: None, set_current: None });
    let id = open(&services, &caller.owner, title.as_deref()).await?;
    if set_current.unwrap_or(true) {
        current::choose(&services, &caller.owner, &id).await;
    }
    let session = session(&services, &caller.owner, &id).await?.ok_or_else(no_such_dialog)?;
    Ok(Json(Meta::from_session(session)))
}

/// A new dialog.
///
/// # Errors
/// When there is no workspace, or it cannot be kept.
pub(super) async fn open(services: &Services, owner: &Owner, title: Option<&str>) -> Result<ConversationId, Problem> {
    let desk = services.workspace.as_ref().ok_or_else(no_such_dialog)?;
    let id = ConversationId::fresh();
    let place = Place::begun(desk.profile.clone(), &PlaceUpdate::NONE);
    services.places.open(owner, &id, &place, Opening::Named { title }).await.map_err(unread)?;
    Ok(id)
}

/// 200 with the current dialog.
#[utoipa::path(
    get,
    path = "/api/dialogs/current",
    operation_id = "smithyCurrent",
    tag = "Smithy",
    summary = "The current dialog",
    description = "The one that messages go to which name none.",
    responses(
        (status = 200, description = "The dialog, or nothing.", body = CurrentBody),
        (status = 404, description = "`not_found`: there is no workspace."),
    ),
)]
pub(in crate::http) async fn current(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
) -> Result<Json<CurrentBody>, Problem> {
    desk(&services, &caller)?;
    let found = match current::find(&services, &caller.owner).await? {
        Some(id) => session(&services, &caller.owner, &id).await?,
        None => None,
    };
    let meta = found.map(Meta::from_session);
    Ok(Json(CurrentBody { id: meta.as_ref().map(|meta| meta.id.clone()), meta }))
}

/// 200 when it is the current one.
#[utoipa::path(
    patch,
    path = "/api/dialogs/current",
    operation_id = "smithyChoose",
    tag = "Smithy",
    summary = "Choose the current dialog",
    description = "Messages go to it that name none.",
    params(Chosen),
    responses(
        (status = 200, description = "It is chosen.", body = DoneBody),
        (status = 404, description = "`not_found`: there is no such dialog, it is another's, or there is no workspace."),
        (status = 422, description = "`invalid_request`: no dialog is named."),
    ),
)]
pub(in crate::http) async fn make_current(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    chosen: Result<Query<Chosen>, QueryRejection>,
) -> Result<Json<DoneBody>, Problem> {
    let id = chosen.ok().and_then(|Query(Chosen { id })| id).ok_or_else(|| wrong("query", "id", "Field required"))?;
    let (id, _) = dialog(&services, &caller, Ok(Path(id))).await?;
    current::choose(&services, &caller.owner, &id).await;
    Ok(Json(DoneBody { ok: true }))
}

/// 200 with a dialog.
#[utoipa::path(
    get,
    path = "/api/dialogs/{dialog_id}",
    operation_id = "smithyDialog",
    tag = "Smithy",
    summary = "Read a dialog",
    description = "Without its messages, which are in its history.",
    params(("dialog_id" = String, Path, description = "The caller's own dialog.")),
    responses(
        (status = 200, description = "The dialog.", body = Meta),
        (status = 404, description = "`not_found`: there is no such dialog, it is another's, or there is no workspace."),
    ),
)]
pub(in crate::http) async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Meta>, Problem> {
    let (_, session) = dialog(&services, &caller, id).await?;
    Ok(Json(Meta::from_session(session)))
}

/// 200 when it has that title.
#[utoipa::path(
    patch,
    path = "/api/dialogs/{dialog_id}",
    operation_id = "smithyRename",
    tag = "Smithy",
    summary = "Rename a dialog",
    description = "Nothing but its title changes.",
    params(("dialog_id" = String, Path, description = "The caller's own dialog.")),
    request_body = TitleBody,
    responses(
        (status = 200, description = "It is renamed.", body = RenamedBody),
        (status = 404, description = "`not_found`: there is no such dialog, it is another's, or there is no workspace."),
        (status = 422, description = "`invalid_request`: the title is no text."),
    ),
)]
pub(in crate::http) async fn rename(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
    body: Taken,
) -> Result<Json<RenamedBody>, Problem> {
    let (id, _) = dialog(&services, &caller, id).await?;
    let title = read::<TitleBody>(&body)?.and_then(|body| body.title);
    if title.is_some() {
        let changes = Changes { title, ..Changes::default() };
        services.places.change(&caller.owner, &id, &changes).await.map_err(unread)?.ok_or_else(no_such_dialog)?;
    }
    let session = session(&services, &caller.owner, &id).await?.ok_or_else(no_such_dialog)?;
    let Meta { id, title, updated_at, .. } = Meta::from_session(session);
    Ok(Json(RenamedBody { ok: true, id, title, updated_at }))
}

/// 200 when it is gone, again and again.
#[utoipa::path(
    delete,
    path = "/api/dialogs/{dialog_id}",
    operation_id = "smithyDelete",
    tag = "Smithy",
    summary = "Delete a dialog",
    description = "Its messages and checkpoints go; the files of the workspace stay. One that is not there is a success.",
    params(("dialog_id" = String, Path, description = "The caller's own dialog.")),
    responses(
        (status = 200, description = "It is gone.", body = DoneBody),
        (status = 404, description = "`not_found`: there is no workspace."),
    ),
)]
pub(in crate::http) async fn delete(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<DoneBody>, Problem> {
    desk(&services, &caller)?;
    let Path(id) = id.map_err(|_| no_such_dialog())?;
    let id = dialog_id(&id)?;
    if let Some(runs) = services.conversations.delete(&caller.owner, &id).await.map_err(unread)? {
        services.deleted((&caller.owner, &id), runs).await;
    }
    Ok(Json(DoneBody { ok: true }))
}

/// The body; `None` where there is none.
fn read<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<Option<T>, Problem> {
    if body.is_empty() {
        return Ok(None);
    }
    json::parse_bytes(body).map(Some).map_err(|error| wrong("body", "title", &error.to_string()))
}

fn wrong(place: &'static str, name: &'static str, words: &str) -> Problem {
    DecodeError::Mistakes(vec![Mistake::new([place, name], "value_error", words)]).into()
}
