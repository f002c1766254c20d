//! `GET /api/chats` and what is below it: a user's chats, and those of all users of a tenant for its administrators.

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::views::{AdminChatBody, AdminListBody, ChatBody, ListBody};
use crate::agent::ports::chats::Chats;
use crate::chat::approval::Approval;
use crate::chat::caller::Caller;
use crate::chat::input::Screen;
use crate::chat::run::RunState;
use crate::dialect::{DecodeError, Mistake};
use crate::http::Services;
use crate::http::audit::note_read;
use crate::http::auth::Authenticated;
use crate::http::problem::Problem;

/// Chats of a list where the request does not say.
const DEFAULT_LIMIT: u32 = 50;

/// Chats of a user's list at most.
const MAX_LIMIT: u32 = 100;

/// Chats of an administrator's list at most.
const MAX_ADMIN_LIMIT: u32 = 200;

/// Which part of which chats. Numbers are parsed by hand, so that a bad one is reported like every other mistake.
#[derive(Deserialize)]
pub(in crate::http) struct Part {
    app: Option<String>,
    user_id: Option<String>,
    limit: Option<String>,
    offset: Option<String>,
}

/// A path's chat, as far as the path tells.
type ChatPath = Result<Path<String>, PathRejection>;

/// 200 with the caller's chats of one application, newest change first: that of the pages without a profile of their
/// own, where the request names none.
#[utoipa::path(
    get,
    path = "/api/chats",
    operation_id = "listChats",
    tag = "Chat Stream",
    summary = "List chats",
    description = "The caller's own of one application, newest change first.",
    params(
        ("app" = Option<String>, Query, description = "The application."),
        ("limit" = Option<String>, Query, description = "How many: 1 to 100, for administrators 200; else 50."),
        ("offset" = Option<String>, Query, description = "How many to skip."),
    ),
    responses(
        (status = 200, description = "The chats.", body = super::views::ListBody),
        (status = 422, description = "`invalid_request`: what is wrong, parameter by parameter."),
    ),
)]
pub(in crate::http) async fn list(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    part: Result<Query<Part>, QueryRejection>,
) -> Result<Response, Problem> {
    let (part, limit, offset) = match read(part, MAX_LIMIT) {
        Ok(read) => read,
        Err(wrong) => return Err(DecodeError::Mistakes(wrong).into()),
    };
    let of_any_page = || services.runs.app_at(&Screen::Page { page: None, tab: None, subtab: None });
    let app = part.app.filter(|app| !app.is_empty()).or_else(of_any_page);
    let of = Chats::Own { owner: &caller.owner, app: app.as_deref() };
    let (chats, _) = services.chats.chats(of, limit, offset).await?;
    Ok(Json(ListBody::from_chats(chats)).into_response())
}

/// 200 with the chat and its newest messages; 404 for another's.
#[utoipa::path(
    get,
    path = "/api/chats/{chat_id}",
    operation_id = "getChat",
    tag = "Chat Stream",
    summary = "Read a chat",
    params(
        ("chat_id" = String, Path, description = "The chat's number."),
    ),
    responses(
        (status = 200, description = "The chat.", body = super::views::ChatBody),
        (status = 404, description = "`not_found`: there is no such chat, or it is another's."),
        (status = 422, description = "`invalid_request`: what is wrong, parameter by parameter."),
    ),
)]
pub(in crate::http) async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    number: ChatPath,
) -> Result<Response, Problem> {
    let number = match chat_number(number) {
        Ok(number) => number,
        Err(wrong) => return Err(DecodeError::Mistakes(wrong).into()),
    };
    let of = Chats::Own { owner: &caller.owner, app: None };
    let mut chat = services.chats.chat(of, number).await?.ok_or_else(no_such_chat)?;
    if !services.runs.shows_diagnostics(&caller) {
        // They were made for a token with a role that this one has not.
        for answer in chat.runs.iter_mut().filter_map(|run| run.answer.as_mut()) {
            answer.diagnostics = None;
        }
    }
    let waiting = match chat.runs.iter().any(|run| run.state == RunState::AwaitingApproval) {
        true => waiting(&services, &caller, number).await?,
        false => Vec::new(),
    };
    Ok(Json(ChatBody::from_chat(chat, &waiting)).into_response())
}

/// The calls of the caller's chat that wait for a decision, oldest first.
async fn waiting(services: &Services, caller: &Caller, number: i64) -> Result<Vec<Approval>, Problem> {
    let Some(conversation) = services.chats.numbered(&caller.owner, number).await? else { return Ok(Vec::new()) };
    let waiting = services.runs.approvals_in(&caller.owner, &conversation).await?;
    Ok(waiting.into_iter().map(|view| view.approval).collect())
}

/// 200 with the chats of the administrator's tenant, or of one of its users; 403 for all others.
#[utoipa::path(
    get,
    path = "/api/chats/admin/all",
    operation_id = "listAllChats",
    tag = "Chat Stream",
    summary = "List the chats of a tenant",
    description = "For administrators.",
    params(
        ("user_id" = Option<String>, Query, description = "Of this user alone: the number or name that the list shows, or their name in tokens."),
        ("limit" = Option<String>, Query, description = "How many: 1 to 100, for administrators 200; else 50."),
        ("offset" = Option<String>, Query, description = "How many to skip."),
    ),
    responses(
        (status = 200, description = "The chats.", body = super::views::AdminListBody),
        (status = 403, description = "`forbidden`: this needs the role of `server.admin_role`."),
        (status = 422, description = "`invalid_request`: what is wrong, parameter by parameter."),
    ),
)]
pub(in crate::http) async fn all(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    part: Result<Query<Part>, QueryRejection>,
) -> Result<Response, Problem> {
    administrator(&services, &caller)?;
    let (part, limit, offset) = match read(part, MAX_ADMIN_LIMIT) {
        Ok(read) => read,
        Err(wrong) => return Err(DecodeError::Mistakes(wrong).into()),
    };
    let user = part.user_id.filter(|user| !user.is_empty());
    note_read(&services, &caller, user.as_deref().unwrap_or_default(), "/api/chats/admin/all".to_owned()).await?;
    let of = Chats::Tenant { tenant: &caller.owner.tenant, user: user.as_deref() };
    let (chats, total) = services.chats.chats(of, limit, offset).await?;
    Ok(Json(AdminListBody::from_chats(chats, total, limit, offset)).into_response())
}

/// 200 with any chat of the administrator's tenant; 403 for all others.
#[utoipa::path(
    get,
    path = "/api/chats/admin/{chat_id}",
    operation_id = "getAnyChat",
    tag = "Chat Stream",
    summary = "Read any chat of a tenant",
    description = "For administrators.",
    params(
        ("chat_id" = String, Path, description = "The chat's number."),
    ),
    responses(
        (status = 200, description = "The chat.", body = super::views::AdminChatBody),
        (status = 403, description = "`forbidden`: this needs the role of `server.admin_role`."),
        (status = 404, description = "`not_found`: there is no such chat, or it is another's."),
        (status = 422, description = "`invalid_request`: what is wrong, parameter by parameter."),
    ),
)]
pub(in crate::http) async fn of_any(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    number: ChatPath,
) -> Result<Response, Problem> {
    administrator(&services, &caller)?;
    let number = match chat_number(number) {
        Ok(number) => number,
        Err(wrong) => return Err(DecodeError::Mistakes(wrong).into()),
    };
    note_read(&services, &caller, "", format!("/api/chats/admin/{number}")).await?;
    let of = Chats::Tenant { tenant: &caller.owner.tenant, user: None };
    let found = services.chats.chat(of, number).await?;
    Ok(Json(AdminChatBody::from_chat(found.ok_or_else(no_such_chat)?)).into_response())
}

fn administrator(services: &Services, caller: &Caller) -> Result<(), Problem> {
    let role = &services.admin_role;
    match !role.is_empty() && caller.has_role(role) {
        true => Ok(()),
        false => Err(Problem::forbidden("this needs the role of an administrator")),
    }
}

fn no_such_chat() -> Problem {
    Problem::not_found("Chat not found")
}

fn chat_number(path: ChatPath) -> Result<i64, Vec<Mistake>> {
    let wrong = || vec![Mistake::new(["path", "chat_id"], "int_parsing", "Input should be a whole number")];
    path.ok().and_then(|Path(text)| text.parse().ok()).ok_or_else(wrong)
}

fn read(part: Result<Query<Part>, QueryRejection>, most: u32) -> Result<(Part, u32, u32), Vec<Mistake>> {
    let Ok(Query(part)) = part else {
        return Err(vec![Mistake::new(["query"], "value_error", "Each parameter may be given once")]);
    };
    let mut wrong = Vec::new();
    let mut number = |name, text: Option<&str>, default: u32, from: u32, most: u32| {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return default };
        let number = text.parse().ok().filter(|number| (from..=most).contains(number));
        number.unwrap_or_else(|| {
            let message = format!("Input should be a whole number from {from} to {most}");
            wrong.push(Mistake::new(["query", name], "int_parsing", message));
            default
        })
    };
    let limit = number("limit", part.limit.as_deref(), DEFAULT_LIMIT, 1, most);
    let offset = number("offset", part.offset.as_deref(), 0, 0, u32::MAX);
    if wrong.is_empty() { Ok((part, limit, offset)) } else { Err(wrong) }
}
