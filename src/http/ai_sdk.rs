//! `/v1/ai-sdk/chat/{chat_id}`: the other routes that `useChat` calls for a chat, which is a conversation of ours
//! (`docs/protocol/ai-sdk.md`). It reconnects to an answer by the chat's id, and gets the whole answer again.

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Services;
use super::auth::Authenticated;
use super::problem::Problem;
use super::serve::stream;
use crate::agent::ports::store_error::StoreError;
use crate::chat::caller::{Caller, Owner};
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::run::RunState;
use crate::dialect::ai_sdk::{self, AiSdk, Own, UiMessages};

/// The URL's part behind the question mark, as far as it can be read.
type QueryPart = Result<Query<ai_sdk::Query>, QueryRejection>;

/// A path's chat, as far as the path tells.
type ChatPath = Result<Path<String>, PathRejection>;

/// These routes.
pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(resume)).routes(routes!(stop))
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
    let version = AiSdk::from(&services.dialects).version(&read(query)?)?;
    let Some(run) = live_run(&services, &caller.owner, chat).await? else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    let client_tools = Own::NoneOf(server_tools(&services, &caller, run).await?);
    let attached = services.runs.attach(&caller.owner, run, None).await?;
    if attached.is_over() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(stream(&services, attached, None, None, Box::new(UiMessages::new(version, None, client_tools))))
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
    let Some(run) = live_run(&services, &caller.owner, chat).await? else {
        return Ok(Json(StoppedBody { stopped: false }));
    };
    let run = services.runs.cancel(&caller.owner, run).await?;
    Ok(Json(StoppedBody { stopped: run.is_some_and(|run| run.state == RunState::Cancelled || run.state.is_live()) }))
}

/// The run that lives in a chat; none in what cannot be one.
async fn live_run(services: &Services, owner: &Owner, chat: ChatPath) -> Result<Option<RunId>, StoreError> {
    match chat.ok().and_then(|Path(id)| ConversationId::parse(&id).ok()) {
        Some(conversation) => services.runs.live_run(owner, &conversation).await,
        None => Ok(None),
    }
}

fn read(query: QueryPart) -> Result<ai_sdk::Query, Problem> {
    let Query(query) = query.map_err(|_| Problem::bad_request("each parameter may be given once"))?;
    Ok(query)
}
