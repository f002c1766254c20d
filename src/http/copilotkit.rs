//! `/v1/copilotkit`: what CopilotKit's browser client asks of a runtime, without one: who is there, run, connect and
//! stop. A run is AG-UI's.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures::{StreamExt, stream};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Services;
use super::auth::Authenticated;
use super::body::Taken;
use super::problem::Problem;
use super::replies::view;
use super::restored::{self, Restored};
use super::serve::Offered;
use super::share::Slot;
use super::sse;
use super::views::headers_of;
use crate::agent::ports::conversations::Page;
use crate::chat::causes::Causes;
use crate::chat::ids::ConversationId;
use crate::dialect::DecodeError;
use crate::dialect::ag_ui::{AgUi, Stream, is_for};
use crate::dialect::reply::Position;

/// Messages that a client gets again when it connects, the newest ones.
const RESTORED: u32 = 1000;

/// The bytes that they count for in their user's memory.
const RESTORED_BYTES: usize = 1 << 20;

/// These routes.
pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(info)).routes(routes!(connect)).routes(routes!(stop))
}

/// Who is there, for the caller.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RuntimeInfo)]
pub(super) struct InfoBody {
    version: &'static str,
    agents: BTreeMap<String, AgentBody>,
    mode: &'static str,
    audio_file_transcription_enabled: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RuntimeAgent)]
struct AgentBody {
    name: String,
    description: String,
    class_name: &'static str,
}

/// 200 with the agents that the caller may ask.
#[utoipa::path(
    get,
    path = "/v1/copilotkit/info",
    operation_id = "copilotKitInfo",
    tag = "CopilotKit",
    summary = "Say who is there",
    responses(
        (status = 200, description = "The agents that the caller may ask.", body = InfoBody),
    ),
)]
pub(super) async fn info(State(services): State<Services>, Authenticated(caller): Authenticated) -> Json<InfoBody> {
    let profiles = services.runs.profiles_for(&caller).into_iter();
    let agents = profiles.map(|profile| {
        let agent = AgentBody {
            name: profile.face.title.clone().unwrap_or_else(|| profile.context_type.clone()),
            description: profile.face.description.clone().unwrap_or_default(),
            class_name: "HttpAgent",
        };
        (profile.context_type.clone(), agent)
    });
    Json(InfoBody {
        version: env!("CARGO_PKG_VERSION"),
        agents: agents.collect(),
        mode: "sse",
        audio_file_transcription_enabled: false,
    })
}

/// A stream of the messages of a thread and of what waits in it; then of its live run, if it has one.
#[utoipa::path(
    post,
    path = "/v1/copilotkit/agent/{agent}/connect",
    operation_id = "copilotKitConnect",
    tag = "CopilotKit",
    summary = "Come back to a thread",
    description = "What was said in it and what waits in it; then its live run, if it has one.",
    params(
        ("agent" = String, Path, description = "A profile's `context_type`."),
    ),
    request_body = crate::dialect::ag_ui::RequestBody<'static>,
    responses(
        (status = 200, description = "AG-UI events, each a nameless frame whose JSON says its `type`.", content((String = "text/event-stream"))),
        (status = 400, description = "`malformed_json`, `invalid_request`, `body_unreadable`: what is wrong with the body."),
        (status = 403, description = "`forbidden`: the agent is for others."),
        (status = 404, description = "`not_found`: there is no such agent."),
    ),
)]
pub(super) async fn connect(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    Extension(slot): Extension<Slot>,
    agent: Result<Path<String>, PathRejection>,
    body: Taken,
) -> Result<Response, Problem> {
    let Path(agent) = agent.map_err(|_| DecodeError::NoSuchAssistant)?;
    is_for(&Offered { runs: &services.runs, caller: &caller }, &agent)?;
    let mut asker = AgUi::from(&services.dialects).decode_asker(&body)?;
    let owner = &caller.owner;
    // Looked at before the messages: a run that ends in between has all of its there.
    let live = services.runs.live_run(owner, &asker.thread).await?;
    let attached = match live {
        None => None,
        Some(run) => match services.runs.attach(owner, run, None).await {
            Ok(attached) => Some(attached),
            Err(error) => {
                tracing::warn!(error = %Causes(&error), run.id = %run, "a live run not sent to a client");
                None
            }
        },
    };
    let live_run = attached.as_ref().map(|attached| attached.run);
    // The newest messages: a client that connects gets as many as fit, like a page that names no part.
    let page = Page { limit: RESTORED, cursor: None };
    let _share = slot.bytes(RESTORED_BYTES)?;
    let Restored { messages, waiting, held: _held, .. } =
        restored::of(&services, owner, &asker.thread, page, live_run).await?.unwrap_or_default();
    let before = Stream::new(asker.clone()).restored(&messages, &waiting);
    let Some(attached) = attached else { return Ok((sse::HEADERS, before).into_response()) };
    asker.run = attached.run.to_string();
    let ids = headers_of(&attached);
    let view = view(&services, &mut Stream::new(asker), &attached, None, Position::ALONE);
    let before = stream::once(std::future::ready(Ok(before)));
    let frames = before.chain(sse::body(attached, view).into_data_stream());
    Ok((sse::HEADERS, ids, Body::from_stream(frames)).into_response())
}

/// Whether something was stopped.
#[derive(Serialize, ToSchema)]
#[schema(as = ThreadStopped)]
pub(super) struct StoppedBody {
    stopped: bool,
}

/// 200 when nothing of the thread runs any more: it has one run at most, so the request names none.
#[utoipa::path(
    post,
    path = "/v1/copilotkit/agent/{agent}/stop/{thread}",
    operation_id = "copilotKitStop",
    tag = "CopilotKit",
    summary = "Stop a thread",
    params(
        ("agent" = String, Path, description = "A profile's `context_type`."),
        ("thread" = String, Path, description = "The thread."),
    ),
    responses(
        (status = 200, description = "Whether something was stopped.", body = StoppedBody),
        (status = 403, description = "`forbidden`: the agent is for others."),
        (status = 404, description = "`not_found`: there is no such agent."),
    ),
)]
pub(super) async fn stop(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<Json<StoppedBody>, Problem> {
    let Path((agent, thread)) = path.map_err(|_| DecodeError::NoSuchAssistant)?;
    is_for(&Offered { runs: &services.runs, caller: &caller }, &agent)?;
    let owner = &caller.owner;
    let live = match ConversationId::parse(&thread) {
        Ok(thread) => services.runs.live_run(owner, &thread).await?,
        // No thread has such a name.
        Err(_) => None,
    };
    let stopped = match live {
        Some(run) => services.runs.cancel(owner, run).await?.is_some(),
        None => false,
    };
    Ok(Json(StoppedBody { stopped }))
}
