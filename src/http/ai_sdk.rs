//! `/v1/ai-sdk/chat/{chat_id}`: the other routes that `useChat` calls for a chat, which is a conversation of ours
//! (`docs/protocol/ai-sdk.md`). It reconnects to an answer by the chat's id, and gets the whole answer again.

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Services;
use super::auth::Authenticated;
use super::conversations::{Part, limit_and_cursor, no_such_conversation, page_of};
use super::problem::Problem;
use super::restored::{self, Restored};
use super::serve::stream;
use super::share::Slot;
use crate::agent::ports::store_error::StoreError;
use crate::chat::caller::{Caller, Owner};
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::run::RunState;
use crate::dialect::ai_sdk::{self, AiSdk, Own, UiMessages};

/// The URL's part behind the question mark, as far as it can be read.
type QueryPart = Result<Query<ai_sdk::Query>, QueryRejection>;

/// What is wrong with a query that cannot be read.
const ONCE: &str = "each parameter may be given once";

/// A path's chat, as far as the path tells.
type ChatPath = Result<Path<String>, PathRejection>;

/// These routes.
pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(history))
        .routes(routes!(resume))
        .routes(routes!(resume_behind_query))
        .routes(routes!(stop))
}

/// The messages of a chat where the request does not say how many.
const DEFAULT_MESSAGES: u32 = 200;

/// The messages of a chat at most, but for those of its first run.
const MAX_MESSAGES: u32 = 1000;

/// What they take of their user's memory.
const MESSAGES_BYTES: usize = 1 << 20;

/// 200 with the messages of a chat, as a page that was loaded again gives them to `useChat`.
#[utoipa::path(
    get,
    path = "/v1/ai-sdk/chat/{chat_id}",
    operation_id = "aiSdkHistory",
    tag = "AI SDK",
    summary = "Read a chat",
    description = "Its messages as `useChat` takes them: the newest ones of its newest branch, oldest first. Calls have neither arguments nor results but while they wait; an answer that is being given is at `/stream`.",
    params(
        ("chat_id" = String, Path, description = "The client's chat."),
        ("sdk" = Option<String>, Query, description = "The client's major version: 5, 6 or 7."),
        ("limit" = Option<String>, Query, description = "How many messages, 1 to 1000; else 200. At most 1 MiB of them.", pattern = "^([1-9][0-9]{0,2}|1000)?$"),
        ("cursor" = Option<String>, Query, description = "What the part after these named as `nextCursor`."),
    ),
    responses(
        (status = 200, description = "The chat.", body = ai_sdk::Chat),
        (status = 400, description = "`invalid_request`, `cursor_invalid`: a version or limit that is none; a cursor that this chat has not given."),
        (status = 404, description = "`not_found`: there is no such chat, or it is another's."),
    ),
)]
pub(super) async fn history(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    Extension(slot): Extension<Slot>,
    chat: ChatPath,
    query: QueryPart,
    part: Result<Query<Part>, QueryRejection>,
) -> Result<Json<ai_sdk::Chat>, Problem> {
    let version = AiSdk::from(&services.dialects).version(&read(query)?)?;
    let chat = chat_of(chat).ok_or_else(no_such_conversation)?;
    let page = page_of(limit_and_cursor(part)?, DEFAULT_MESSAGES, MAX_MESSAGES)?;
    let _share = slot.bytes(MESSAGES_BYTES)?;
    // Before its messages: what a run says that ends in between is there then.
    let live = services.runs.live_run(&caller.owner, &chat).await?;
    let found = restored::of(&services, &caller.owner, &chat, page, live).await?;
    let Restored { messages, earlier, held: _held, .. } = found.ok_or_else(no_such_conversation)?;
    Ok(Json(ai_sdk::Chat::new(chat.to_string(), messages, earlier, version)))
}

/// 200 with all of the answer that is being given in a chat, and what is still to come; 204 where there is none.
#[utoipa::path(
    get,
    path = "/v1/ai-sdk/chat/{chat_id}/stream",
    operation_id = "aiSdkResume",
    tag = "AI SDK",
    summary = "Come back to an answer",
    description = "All of the answer that is being given in a chat, and what is still to come.",
    params(
        ("chat_id" = String, Path, description = "The client's chat."),
        ("sdk" = Option<String>, Query, description = "The client's major version: 5, 6 or 7."),
        ("context_type" = Option<String>, Query, description = "Which profile answers."),
        ("profile" = Option<String>, Query, description = "The same, in shorter words."),
    ),
    responses(
        (status = 200, description = "A UI message stream: nameless frames of JSON chunks, `[DONE]` at the end.", content((String = "text/event-stream"))),
        (status = 204, description = "There is none."),
        (status = 400, description = "`invalid_request`: a version that is none."),
        (status = 404, description = "`not_found`: the run is gone."),
        (status = 410, description = "`cursor_evicted`: its events are not kept any more."),
        (status = 429, description = "`too_many_readers`: as many read this run as may."),
        (status = 503, description = "`events_unavailable`: not now."),
    ),
)]
pub(super) async fn resume(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    chat: ChatPath,
    query: QueryPart,
) -> Result<Response, Problem> {
    come_back(&services, &caller, chat_of(chat), &read(query)?).await
}

/// The same for a client whose page has put the parameters into the address of the chat: what the client appends to that
/// stands behind them.
#[utoipa::path(
    get,
    path = "/v1/ai-sdk/chat",
    operation_id = "aiSdkResumeBehindQuery",
    tag = "AI SDK",
    summary = "Come back to an answer, of an address with parameters",
    description = "`useChat` appends `/{chat_id}/stream` to the address that its page has given it, also where that ends with a query. Else the same as `GET /v1/ai-sdk/chat/{chat_id}/stream`.",
    params(
        ("sdk" = Option<String>, Query, description = "The client's major version: 5, 6 or 7. The last parameter ends with `/{chat_id}/stream`."),
        ("context_type" = Option<String>, Query, description = "Which profile answers."),
        ("profile" = Option<String>, Query, description = "The same, in shorter words."),
    ),
    responses(
        (status = 200, description = "A UI message stream: nameless frames of JSON chunks, `[DONE]` at the end.", content((String = "text/event-stream"))),
        (status = 204, description = "There is none."),
        (status = 400, description = "`invalid_request`: a version that is none, or no chat at the end of the query."),
        (status = 404, description = "`not_found`: the run is gone."),
        (status = 410, description = "`cursor_evicted`: its events are not kept any more."),
        (status = 429, description = "`too_many_readers`: as many read this run as may."),
        (status = 503, description = "`events_unavailable`: not now."),
    ),
)]
pub(super) async fn resume_behind_query(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    uri: Uri,
) -> Result<Response, Problem> {
    let appended = uri.query().and_then(|query| query.strip_suffix("/stream")).and_then(|rest| rest.rsplit_once('/'));
    let Some((query, chat)) = appended else {
        return Err(Problem::bad_request("the query must end with what the client appends: /{chat_id}/stream"));
    };
    let query = serde_urlencoded::from_str(query).map_err(|_| Problem::bad_request(ONCE))?;
    come_back(&services, &caller, ConversationId::parse(chat).ok(), &query).await
}

async fn come_back(
    services: &Services,
    caller: &Caller,
    chat: Option<ConversationId>,
    query: &ai_sdk::Query,
) -> Result<Response, Problem> {
    let version = AiSdk::from(&services.dialects).version(query)?;
    let Some(run) = live_run(services, &caller.owner, chat).await? else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    let client_tools = Own::NoneOf(server_tools(services, caller, run).await?);
    let attached = services.runs.attach(&caller.owner, run, None).await?;
    if attached.is_over() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(stream(services, attached, None, None, Box::new(UiMessages::new(version, None, client_tools))))
}

/// The tools of a run's profile, as far as their names are known: no client's tool has one of these.
async fn server_tools(services: &Services, caller: &Caller, run: RunId) -> Result<Vec<String>, StoreError> {
    let record = services.runs.find(&caller.owner, run).await?;
    let profiles = services.runs.profiles_for(caller);
    let profile = record.and_then(|run| profiles.into_iter().find(|it| it.context_type == run.context_type));
    let Some(profile) = profile else { return Ok(Vec::new()) };
    let named = profile.tools.iter().map(|tool| &tool.def.name).chain(profile.sourced.iter().map(|tool| &tool.name));
    Ok(named.chain(&profile.accepts).cloned().collect())
}

/// Whether there was something to stop.
#[derive(Serialize, ToSchema)]
#[schema(as = ChatStopped)]
pub(super) struct StoppedBody {
    stopped: bool,
}

/// 200, whether or not there was an answer to stop.
#[utoipa::path(
    post,
    path = "/v1/ai-sdk/chat/{chat_id}/stop",
    operation_id = "aiSdkStop",
    tag = "AI SDK",
    summary = "Stop an answer",
    params(
        ("chat_id" = String, Path, description = "The client's chat."),
    ),
    responses(
        (status = 200, description = "Whether there was an answer to stop.", body = StoppedBody),
    ),
)]
pub(super) async fn stop(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    chat: ChatPath,
) -> Result<Json<StoppedBody>, Problem> {
    let Some(run) = live_run(&services, &caller.owner, chat_of(chat)).await? else {
        return Ok(Json(StoppedBody { stopped: false }));
    };
    let run = services.runs.cancel(&caller.owner, run).await?;
    Ok(Json(StoppedBody { stopped: run.is_some_and(|run| run.state == RunState::Cancelled || run.state.is_live()) }))
}

/// The run that lives in a chat; none in what cannot be one.
async fn live_run(
    services: &Services,
    owner: &Owner,
    chat: Option<ConversationId>,
) -> Result<Option<RunId>, StoreError> {
    match chat {
        Some(conversation) => services.runs.live_run(owner, &conversation).await,
        None => Ok(None),
    }
}

/// The chat that a path names, if it can be one.
fn chat_of(path: ChatPath) -> Option<ConversationId> {
    path.ok().and_then(|Path(id)| ConversationId::parse(&id).ok())
}

fn read(query: QueryPart) -> Result<ai_sdk::Query, Problem> {
    let Query(query) = query.map_err(|_| Problem::bad_request(ONCE))?;
    Ok(query)
}
