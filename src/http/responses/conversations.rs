//! `/v1/conversations`: conversations as clients of OpenAI's Responses know them. Their items are what was said and done on
//! the newest branch.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::items::{self, Items, ItemsPart, ItemsQuery, Part};
use super::{DeletedBody, field};
use crate::agent::ports::conversations::ConversationHead;
use crate::agent::ports::places::Opening;
use crate::bounded::json;
use crate::chat::caller::{Caller, Owner};
use crate::chat::ids::ConversationId;
use crate::chat::input::Screen;
use crate::chat::place::{Place, PlaceUpdate};
use crate::dialect::responses::{self, Item};
use crate::http::Services;
use crate::http::auth::Authenticated;
use crate::http::body::Taken;
use crate::http::conversations::{failed, no_such_conversation};
use crate::http::problem::Problem;

/// These routes.
pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(open)).routes(routes!(get, delete)).routes(routes!(list)).routes(routes!(item))
}

/// A path's conversation, as far as the path tells.
type ConversationPath = Result<Path<String>, PathRejection>;

/// A conversation.
#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiConversation)]
pub(super) struct ConversationBody {
    /// `conv_` and the conversation's id.
    id: String,
    object: &'static str,
    /// In seconds since the Unix epoch.
    created_at: i64,
    /// Always empty.
    #[schema(value_type = Object)]
    metadata: BTreeMap<String, String>,
}

impl ConversationBody {
    fn new(head: &ConversationHead) -> Self {
        Self {
            id: responses::conversation_id(&head.id),
            object: "conversation",
            created_at: head.created_at_ms / 1000,
            metadata: BTreeMap::new(),
        }
    }
}

/// What a conversation begins with.
#[derive(Deserialize, Default, ToSchema)]
#[schema(as = OpenAiConversationRequest)]
pub(super) struct OpenBody<'a> {
    /// None: what is said is kept as it is said.
    #[serde(borrow)]
    #[schema(value_type = Option<Vec<Object>>)]
    items: Option<&'a RawValue>,
}

/// 200 with a conversation that has no response yet.
#[utoipa::path(
    post,
    path = "/v1/conversations",
    operation_id = "createConversation",
    tag = "Responses",
    summary = "Open a conversation",
    description = "It is in no list, and is gone after a day without a response; of a user's such conversations the newest hundred are kept. The body may be empty.",
    request_body = Option<OpenBody<'static>>,
    responses(
        (status = 200, description = "The conversation.", body = ConversationBody),
        (status = 400, description = "`malformed_json`, `invalid_request`: what is wrong."),
        (status = 403, description = "`forbidden`: no profile is for this user."),
    ),
)]
pub(super) async fn open(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    body: Taken,
) -> Result<Json<ConversationBody>, Problem> {
    let text = json::utf8(&body).map_err(|error| Problem::not_json(error.to_string()))?;
    let asked: OpenBody<'_> = match text.trim().is_empty() {
        true => OpenBody::default(),
        false => json::parse(text).map_err(|error| Problem::not_json(error.to_string()))?,
    };
    if asked.items.is_some_and(|items| !matches!(items.get(), "null" | "[]")) {
        return Err(field("items", "must be empty: what is said is kept as it is said"));
    }
    let id = ConversationId::fresh();
    let place = Place::begun(context_type(&services, &caller)?, &PlaceUpdate::default());
    let opened = services.places.open(&caller.owner, &id, &place, Opening::Named { title: None }).await;
    Ok(Json(ConversationBody::new(&opened.map_err(failed)?)))
}

/// The profile of a conversation whose first request has not named one yet.
fn context_type(services: &Services, caller: &Caller) -> Result<String, Problem> {
    let usual = services.runs.context_type_at(caller, &Screen::OfConversation);
    let first = || services.runs.profiles_for(caller).first().map(|profile| profile.context_type.clone());
    usual.ok().or_else(first).ok_or_else(|| Problem::forbidden("no assistant is for this user"))
}

/// 200 with the conversation.
#[utoipa::path(
    get,
    path = "/v1/conversations/{conversation}",
    operation_id = "retrieveConversation",
    tag = "Responses",
    summary = "Look at a conversation",
    params(
        ("conversation" = String, Path, description = "The caller's own conversation."),
    ),
    responses(
        (status = 200, description = "The conversation.", body = ConversationBody),
        (status = 404, description = "`not_found`: there is no such conversation, or it is another's."),
    ),
)]
pub(super) async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    conversation: ConversationPath,
) -> Result<Json<ConversationBody>, Problem> {
    let head = services.places.head(&caller.owner, &id(conversation)?).await.map_err(failed)?;
    Ok(Json(ConversationBody::new(&head.ok_or_else(no_such_conversation)?)))
}

/// 200 when the conversation is gone with everything of it.
#[utoipa::path(
    delete,
    path = "/v1/conversations/{conversation}",
    operation_id = "removeConversation",
    tag = "Responses",
    summary = "Delete a conversation and its responses",
    description = "With everything of it; its live runs are cancelled.",
    params(
        ("conversation" = String, Path, description = "The caller's own conversation."),
    ),
    responses(
        (status = 200, description = "It is gone.", body = DeletedBody),
        (status = 404, description = "`not_found`: there is no such conversation, or it is another's."),
    ),
)]
pub(super) async fn delete(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    conversation: ConversationPath,
) -> Result<Json<DeletedBody>, Problem> {
    let id = id(conversation)?;
    remove(&services, &caller.owner, &id).await?;
    let id = responses::conversation_id(&id);
    Ok(Json(DeletedBody { id, object: "conversation.deleted", deleted: true }))
}

/// Deletes a conversation with everything of it.
pub(super) async fn remove(services: &Services, owner: &Owner, id: &ConversationId) -> Result<(), Problem> {
    let runs = services.conversations.delete(owner, id).await.map_err(failed)?;
    services.deleted((owner, id), runs.ok_or_else(no_such_conversation)?).await;
    Ok(())
}

/// 200 with items of the conversation.
#[utoipa::path(
    get,
    path = "/v1/conversations/{conversation}/items",
    operation_id = "listConversationItems",
    tag = "Responses",
    summary = "Read a conversation's items",
    description = "What was said and done on its newest branch. Calls have no arguments and results here.",
    params(
        ("conversation" = String, Path, description = "The caller's own conversation."),
        Part,
    ),
    responses(
        (status = 200, description = "The items.", body = Items),
        (status = 400, description = "`invalid_request`: a parameter that is none."),
        (status = 404, description = "`not_found`: there is no such conversation, or it is another's."),
    ),
)]
pub(super) async fn list(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    conversation: ConversationPath,
    query: ItemsQuery,
) -> Result<Response, Problem> {
    let part = ItemsPart::read(query)?;
    part.of(all(&services, &caller.owner, &id(conversation)?).await?)
}

/// 200 with one item of the conversation.
#[utoipa::path(
    get,
    path = "/v1/conversations/{conversation}/items/{item_id}",
    operation_id = "getConversationItem",
    tag = "Responses",
    summary = "Look at an item of a conversation",
    params(
        ("conversation" = String, Path, description = "The caller's own conversation."),
        ("item_id" = String, Path, description = "The item."),
    ),
    responses(
        (status = 200, description = "The item.", body = Item),
        (status = 404, description = "`not_found`: there is no such conversation or item, or it is another's."),
    ),
)]
pub(super) async fn item(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<Response, Problem> {
    let Path((conversation, item)) = path.map_err(|_| no_such_conversation())?;
    let all = all(&services, &caller.owner, &id(Ok(Path(conversation)))?).await?;
    let found = all.into_iter().find(|found| found.id() == item);
    found.map(|item| Json(item).into_response()).ok_or_else(|| Problem::not_found("there is no such item"))
}

/// All items of the caller's conversation, which may have none yet.
async fn all(services: &Services, owner: &Owner, id: &ConversationId) -> Result<Vec<Item>, Problem> {
    if let Some(items) = items::of_conversation(services, owner, id).await? {
        return Ok(items);
    }
    let head = services.places.head(owner, id).await.map_err(failed)?;
    head.map(|_| Vec::new()).ok_or_else(no_such_conversation)
}

fn id(conversation: ConversationPath) -> Result<ConversationId, Problem> {
    let id = conversation.ok().and_then(|Path(id)| responses::conversation_of(&id));
    id.ok_or_else(no_such_conversation)
}
