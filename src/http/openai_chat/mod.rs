//! `POST /v1/chat/completions` and `GET /v1/models`: clients of OpenAI's protocol (`docs/protocol/openai.md`). Errors have
//! bodies of their own here ([`refusal`]).

mod answer;
pub(super) mod models;
pub(super) mod refusal;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::Services;
use super::auth::Authenticated;
use super::body::Taken;
use super::chat::{of, request, shown};
use super::problem::Problem;
use super::request_id::RequestId;
use super::sse::View;
use crate::agent::ports::store::BeginError;
use crate::chat::ids::ConversationId;
use crate::dialect::openai_chat::{Asked, Key, Telling};
use crate::runs::StartError;

/// Starts a run and answers with its stream, or with the whole of it.
#[utoipa::path(
    post,
    path = "/v1/chat/completions",
    operation_id = "chatCompletions",
    tag = "OpenAI",
    summary = "Answer a conversation",
    description = "Starts a run and answers with its stream, or with the whole of it.",
    params(
        ("X-Conversation-Id" = Option<String>, Header, description = "The conversation to continue or begin; else `metadata.conversation_id`."),
    ),
    request_body = crate::dialect::openai_chat::RequestBody<'static>,
    responses(
        (status = 200, description = "With `stream`, chunks in nameless frames and `[DONE]` at the end; else the completion.", content((String = "text/event-stream"), (crate::dialect::openai_chat::Completion<'static> = "application/json"))),
        (status = 400, description = "`malformed_json`, `invalid_request`, `body_unreadable`, `no_such_call`, `context_too_long`: what is wrong."),
        (status = 404, description = "`model_not_found`, `not_found`: there is no such model."),
        (status = 429, description = "`provider_rate_limited`, `provider_quota_exceeded`: the model service has too much to do."),
        (status = 500, description = "`internal`, and whatever bound the run met."),
        (status = 502, description = "The model service failed."),
        (status = 504, description = "`run_timeout`, `provider_timeout`: it took too long."),
    ),
)]
pub(super) async fn post(
    State(services): State<Services>,
    Extension(request_id): Extension<RequestId>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    body: Taken,
) -> Result<Response, Problem> {
    let Asked { mut input, model, is_keyed, stream, include_usage } =
        services.openai_chat.decode(&body, key(&headers)?)?;
    let profiles = services.runs.profiles_for(&caller);
    let Some(profile) = profiles.into_iter().find(|profile| profile.context_type == model) else {
        return Ok(refusal::no_such_model(&model));
    };
    let (menu, wish) = (&profile.models, &mut input.manner.model);
    wish.temperature = wish.temperature.filter(|_| menu.temperature);
    wish.effort = wish.effort.filter(|_| menu.effort);
    let most = menu.choice.max_tokens.unwrap_or(u32::MAX);
    wish.max_tokens = wish.max_tokens.filter(|_| menu.max_tokens).map(|wished| wished.min(most));
    input.manner.background = match headers.contains_key("idempotency-key") {
        // Its client will ask for it again when the connection is lost.
        true => Some(true),
        // Nobody could come back to it where it has no name.
        false => (!is_keyed).then_some(false),
    };
    let conversation = input.conversation.as_ref().map(ConversationId::as_str).unwrap_or_default();
    let request = request(request_id, &headers, &format!("openai-chat {conversation}"), &body)?;
    let attached = match services.runs.start(caller, input, request).await {
        Ok(attached) => attached,
        // A conflict to the server; these clients would send it again.
        Err(StartError::Begin(error @ BeginError::NoSuchCall)) => {
            let detail = error.to_string();
            return Ok(refusal::told(StatusCode::BAD_REQUEST, "no_such_call", Some("messages"), &detail));
        }
        Err(error) => return Err(error.into()),
    };
    let telling = Telling { model, is_keyed, include_usage };
    if !stream {
        return Ok(answer::whole(&services, attached, telling).await);
    }
    let view = View {
        encoder: services.openai_chat.encoder(&of(&attached), telling),
        // These clients never come back to a stream.
        numbered: false,
        keep_alive: services.keep_alive,
        draining: services.runs.draining().clone(),
    };
    Ok(shown(attached, view))
}

/// What the ids of Open WebUI begin with that are no chats of one user: a chat that is not kept has the id of a connection,
/// and a channel belongs to many.
const NO_CHATS: [&str; 2] = ["local:", "channel:"];

/// The conversation that the headers name.
///
/// # Errors
/// When that is no id, or there are two.
fn key(headers: &HeaderMap) -> Result<Key, Problem> {
    let named = |name: &'static str| {
        let mut values = headers.get_all(name).iter().filter(|value| !value.is_empty());
        let (Some(value), next) = (values.next(), values.next()) else { return Ok(None) };
        let id = value.to_str().ok().filter(|_| next.is_none()).map(ConversationId::parse);
        match id {
            Some(Ok(id)) => Ok(Some(id)),
            Some(Err(error)) => Err(Problem::bad_request(format!("{name} {error}"))),
            None => Err(Problem::bad_request(format!("{name} must be given once, as printable ASCII"))),
        }
    };
    if let Some(id) = named("x-conversation-id")? {
        return Ok(Key::Conversation(id));
    }
    let chat = named("x-openwebui-chat-id")?;
    let chat = chat.filter(|id| !NO_CHATS.iter().any(|begin| id.as_str().starts_with(begin)));
    Ok(chat.map_or(Key::None, Key::Chat))
}
