//! `/v1/ai-sdk/chat`: the routes of the AI SDK's `useChat` (`docs/protocol/ai-sdk.md`). A chat of its is a conversation of
//! ours. It comes back to an answer by the chat's id, and is shown all of it again.

mod deciding;
mod edited;

use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Serialize;
use utoipa::ToSchema;

use super::Services;
use super::auth::Authenticated;
use super::body::Taken;
use super::chat::{of, request};
use super::problem::Problem;
use super::request_id::RequestId;
use super::sse::{self, View};
use super::views::{self, header_value};
use crate::agent::ports::store::{BeginError, StoreError};
use crate::chat::caller::{Caller, Owner};
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::input::{RunInput, Screen};
use crate::chat::run::RunState;
use crate::dialect::ai_sdk::{self, Answer, Asked, Own, Spent, Version, What};
use crate::dialect::{DecodeError, FieldError};
use crate::runs::chain::Context;
use crate::runs::{Attached, StartError};

/// What tells its clients that a stream is one of theirs.
const IS_UI_MESSAGES: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-vercel-ai-ui-message-stream"), HeaderValue::from_static("v1"));

/// The URL's part behind the question mark, as far as it can be read.
type QueryPart = Result<Query<ai_sdk::Query>, QueryRejection>;

/// A path's chat, as far as the path tells.
type ChatPath = Result<Path<String>, PathRejection>;

/// How an answer is shown.
#[derive(Clone)]
struct Shown {
    version: Version,
    continues: Option<String>,
    client_tools: Own,
}

/// Starts a run, or decides calls that wait, and streams what comes of it.
#[utoipa::path(
    post,
    path = "/v1/ai-sdk/chat",
    operation_id = "aiSdkChat",
    tag = "AI SDK",
    summary = "Answer a chat of useChat",
    description = "Starts a run, or decides calls that wait, and streams what comes of it.",
    params(
        ("sdk" = Option<String>, Query, description = "The client's major version: 5, 6 or 7."),
        ("context_type" = Option<String>, Query, description = "Which profile answers."),
        ("profile" = Option<String>, Query, description = "The same, in shorter words."),
    ),
    request_body = crate::dialect::ai_sdk::RequestBody<'static>,
    responses(
        (status = 200, description = "A UI message stream: nameless frames of JSON chunks, `[DONE]` at the end.", content((String = "text/event-stream"))),
        (status = 409, description = "`conversation_busy`, `no_such_call`, `already_decided`, `digest_mismatch`: the chat has a run; nothing waits for these results; decided already."),
        (status = 410, description = "`approval_expired`, `cursor_evicted`: too late."),
    ),
)]
pub(super) async fn post(
    State(services): State<Services>,
    Extension(request_id): Extension<RequestId>,
    Authenticated(caller): Authenticated,
    query: QueryPart,
    headers: HeaderMap,
    body: Taken,
) -> Result<Response, Problem> {
    let query = read(query)?;
    let Asked { what, conversation, context_type, version, continues, manner } =
        services.ai_sdk.decode(&query, &body)?;
    // The profile may be named outside of the body.
    let asked = context_type.as_deref().map_or_else(|| "ai-sdk".to_owned(), |profile| format!("ai-sdk {profile}"));
    let request = request(request_id, &headers, &asked, &body)?;
    let client_tools = manner.client_tools.iter().map(|tool| tool.name.clone()).collect();
    let shown = Shown { version, continues, client_tools: Own::These(client_tools) };
    match what {
        What::Answer { ask, from } => {
            let context_type = match context_type {
                Some(context_type) => context_type,
                None => only_context_type(&services, &caller)?,
            };
            let parent = edited::parent(&services, &caller.owner, &conversation, from).await?;
            let input = RunInput {
                ask,
                screen: Screen::Type(context_type),
                conversation: Some(conversation),
                parent,
                earlier: Vec::new(),
                unlisted: false,
                manner,
            };
            let started = services.runs.start(caller, input, request).await;
            let attached = started.map_err(told)?;
            let headers = headers_of(&attached);
            Ok((sse::HEADERS, headers, stream(&services, attached, &shown)).into_response())
        }
        What::Decide(decisions) => {
            let context = Context { caller, conversation, manner, request };
            deciding::decide(services, context, decisions, shown).await
        }
    }
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
    let version = services.ai_sdk.version(&read(query)?)?;
    let Some(run) = live_run(&services, &caller.owner, chat).await? else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    let client_tools = Own::NoneOf(server_tools(&services, &caller, run).await?);
    let attached = services.runs.attach(&caller.owner, run, None).await?;
    if attached.is_over() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let headers = headers_of(&attached);
    let shown = Shown { version, continues: None, client_tools };
    Ok((sse::HEADERS, headers, stream(&services, attached, &shown)).into_response())
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

/// The one assistant that the caller may use, where there is just one.
fn only_context_type(services: &Services, caller: &Caller) -> Result<String, Problem> {
    match services.runs.profiles_for(caller).as_slice() {
        [only] => Ok(only.context_type.clone()),
        several => {
            let names: Vec<&str> = several.iter().map(|profile| profile.context_type.as_str()).collect();
            let reason = format!("is required, in the URL or as a key of the body: one of {}", names.join(", "));
            Err(DecodeError::Fields(vec![FieldError { field: "context_type", reason }]).into())
        }
    }
}

/// A refusal that names the fields of this protocol.
fn told(error: StartError) -> Problem {
    let wrong = |field, reason: String| DecodeError::Fields(vec![FieldError { field, reason }]).into();
    if matches!(error, StartError::Begin(BeginError::NoSuchMessage)) {
        return wrong("messageId", "names no message of this conversation".to_owned());
    }
    if matches!(error, StartError::Begin(BeginError::NothingToRepeat)) {
        return wrong("trigger", "asks for another answer, and there is no question yet".to_owned());
    }
    error.into()
}

fn headers_of(attached: &Attached) -> HeaderMap {
    let mut headers = views::headers_of(attached);
    // By its id it is come back to.
    let stream_id = (HeaderName::from_static("x-resumable-stream-id"), header_value(attached.conversation.as_str()));
    headers.extend([IS_UI_MESSAGES, stream_id]);
    headers
}

fn stream(services: &Services, attached: Attached, shown: &Shown) -> Body {
    let Shown { version, continues, client_tools } = shown.clone();
    let spent = Spent::default();
    let answer = Answer { of: of(&attached), version, continues, client_tools, more_follows: false, spent };
    let view = View {
        encoder: services.ai_sdk.encoder(answer),
        // Its clients come back to the beginning.
        numbered: false,
        keep_alive: services.keep_alive,
        draining: services.runs.draining().clone(),
    };
    sse::body(attached, view)
}
