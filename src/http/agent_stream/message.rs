//! `POST /api/agentic-chat/agent-message`: what one agent says next to another. No session has it.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use super::views::{AgentSays, Data};
use crate::agent::ports::data::NotLoaded;
use crate::chat::causes::Causes;
use crate::chat::place::{Entity, Place};
use crate::dialect::agent_stream::{MessageBody, MessageRequest};
use crate::http::Services;
use crate::http::auth::Authenticated;
use crate::http::body::Taken;
use crate::http::code::Code;
use crate::http::problem::Problem;
use crate::runs::{AskError, OnceError};

/// The profile that says it.
const CONTEXT_TYPE: &str = "agent_message";

/// 200 with the message.
#[utoipa::path(
    post,
    path = "/api/agentic-chat/agent-message",
    operation_id = "writeAgentMessage",
    tag = "Agent Stream",
    summary = "Write an agent's next message",
    description = "One model call (`helpers.message`) with the prompt of the profile `agent_message` and the project's data, without tools. Nothing of it is kept.",
    request_body = MessageBody<'static>,
    responses(
        (status = 200, description = "The message.", body = Data<AgentSays>),
        (status = 400, description = "`malformed_json`, `invalid_request`: no JSON object; a field that is missing or blank; another agent."),
        (status = 403, description = "`forbidden`: the project is not the caller's."),
        (status = 404, description = "`not_found`: there is no such project, or no profile `agent_message`."),
        (status = 429, description = "`rate_limited`, `quota_exceeded`: it counts like the start of a run."),
        (status = 500, description = "`internal`: the project could not be loaded, or the model has not answered."),
        (status = 503, description = "`helper_off`, `draining`: nobody does that here; the server is shutting down."),
    ),
)]
pub(in crate::http) async fn message(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    body: Taken,
) -> Result<Response, Problem> {
    let MessageRequest { project, words } = MessageRequest::decode(&body)?;
    let entity = Some(Entity { id: project, name: None });
    let place = Place { context_type: CONTEXT_TYPE.to_owned(), entity, focus: None };
    match services.runs.answer_once(caller, place, words).await {
        Ok(message) => Ok(Json(Data::new(AgentSays { message })).into_response()),
        Err(AskError::Start(error)) => Err(error.into()),
        Err(AskError::Once(error)) => Err(match error {
            OnceError::NoProfile => Problem::not_found("nobody writes messages of agents here"),
            OnceError::Off => Problem::unavailable(Code::HelperOff, "nobody writes messages of agents here"),
            OnceError::NotLoaded(NotLoaded::NotThere) => Problem::not_found("there is no such project"),
            OnceError::NotLoaded(NotLoaded::Denied) => Problem::forbidden("the project is not the caller's"),
            error @ (OnceError::NotLoaded(NotLoaded::Failed) | OnceError::Model(_)) => {
                tracing::warn!(error = %Causes(&error), "an agent's message was not written");
                Problem::internal()
            }
        }),
    }
}
