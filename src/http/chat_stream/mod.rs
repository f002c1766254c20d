//! `/api/chat/stream` and `/api/chats`: the routes of page assistants (`docs/protocol/chat-stream.md`). Errors have
//! bodies of their own here ([`refusal`]).

pub(super) mod chats;
pub(super) mod refusal;
pub(super) mod views;

use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

pub(super) use chats::{all, get, list, of_any};

use super::Services;
use super::auth::Authenticated;
use super::body::Taken;
use super::chat::{of, request, shown};
use super::problem::Problem;
use super::request_id::RequestId;
use super::sse::{self, View};
use crate::agent::ports::store::BeginError;
use crate::chat::caller::Caller;
use crate::chat::causes::Causes;
use crate::chat::input::{RunInput, Screen};
use crate::dialect::chat_stream::{self, Asked, What, Wrong};
use crate::runs::{Attached, Decided, StartError};

/// `[chat_stream]`: pages of this protocol.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The claim with the number that pages know a user by; empty where that is `sub`.
    pub user_claim: String,
}

/// What somebody is told whose token lists none of the roles of the page's profile.
const NOT_FOR_YOU: &str = "You are not allowed to use the assistant on this page.";

/// What somebody is told whose button does not say which call they saw, or shows another one.
const OTHER_CALL: &str = "This is not what waits for your decision. Please reload the chat and look at it again.";

/// What somebody is told who decides another user's call.
const KEPT: &str = "Your decision is kept; whoever asked can go on now.";

/// Silence on a stream before a comment is sent: these clients are promised one each second.
const PING: Duration = Duration::from_millis(900);

/// Starts a run, or decides a call that waits, and streams it.
#[utoipa::path(
    post,
    path = "/api/chat/stream",
    operation_id = "chatStream",
    tag = "Chat Stream",
    summary = "Answer a page assistant",
    description = "Starts a run, or decides a call that waits, and streams it.",
    request_body = crate::dialect::chat_stream::RequestBody<'static>,
    responses(
        (status = 200, description = "Frames called `message`; their JSON says what each is.", content((String = "text/event-stream"))),
        (status = 400, description = "`body_unreadable`, `invalid_request`: the body did not arrive whole; an `Idempotency-Key` that is none."),
        (status = 422, description = "`invalid_request`, `idempotency_mismatch`: what is wrong, field by field."),
    ),
)]
pub(super) async fn post(
    State(services): State<Services>,
    Extension(request_id): Extension<RequestId>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    body: Taken,
) -> Result<Response, Problem> {
    let Asked { what, screen, number, manner } = match services.chat_stream.decode(&body) {
        Ok(asked) => asked,
        Err(refused) => return Ok(refusal::refused(refused)),
    };
    let request = request(request_id, &headers, "chat-stream", &body)?;
    let (owner, asker) = (caller.owner.clone(), caller.clone());
    let started = match what {
        What::Answer(ask) => {
            let conversation = match number {
                Some(number) => services.chats.numbered(&owner, number).await?,
                None => None,
            };
            let input = RunInput {
                ask,
                screen: screen.clone(),
                conversation,
                parent: None,
                earlier: Vec::new(),
                unlisted: false,
                manner,
            };
            services.runs.start(caller, input, request).await
        }
        What::Decide { approval, digest, decision } => {
            let found = services.runs.approval(&caller, approval).await?;
            if found.is_some_and(|found| digest.is_none_or(|digest| digest != found.approval.digest)) {
                return Ok(whole(chat_stream::refusal(OTHER_CALL)));
            }
            match services.runs.decide(caller, approval, decision, manner, request).await {
                Ok(Decided::GoesOn(attached)) => Ok(attached),
                Ok(Decided::Kept(_)) => return Ok(whole(chat_stream::said(KEPT))),
                Err(error) => match undecided(&error) {
                    Some(why) => return Ok(whole(chat_stream::refusal(why))),
                    None => Err(error),
                },
            }
        }
    };
    match started {
        Ok(attached) => Ok(stream(&services, &asker, &screen, attached).await),
        // 403 would sign these clients' users out.
        Err(StartError::Forbidden) => Ok(whole(chat_stream::refusal(NOT_FOR_YOU))),
        Err(StartError::UnknownContextType(_)) => {
            let at = ["body", "context", "current_page"];
            Ok(refusal::invalid(vec![Wrong::new(at, "value_error", "No assistant is configured for this page")]))
        }
        Err(error) => Err(error.into()),
    }
}

/// The run's events. One whose conversation could not be given its number is shown all the same: its client then begins
/// another one with its next message.
async fn stream(services: &Services, caller: &Caller, screen: &Screen, attached: Attached) -> Response {
    let app = services.runs.app_at(screen).unwrap_or_default();
    let number =
        match services.chats.number(&caller.owner, caller.known_as.as_deref(), &attached.conversation, &app).await {
            Ok(number) => Some(number),
            Err(error) => {
                tracing::error!(error = %Causes(&error), conversation.id = %attached.conversation, "chat not numbered");
                None
            }
        };
    let view = View {
        encoder: services.chat_stream.encoder(&of(&attached), number),
        // These clients never come back to a stream.
        numbered: false,
        keep_alive: Some(services.keep_alive.map_or(PING, |silence| silence.min(PING))),
        draining: services.runs.draining().clone(),
    };
    shown(attached, view)
}

/// Why a decision was not taken, where that is about what was to be decided: an HTTP error of some kinds would sign
/// these clients' users out.
fn undecided(error: &StartError) -> Option<&'static str> {
    match error {
        StartError::RoleRequired(_) => Some("Somebody with another role has to approve this first."),
        StartError::Begin(BeginError::OwnRequest(_)) => Some("Somebody else has to approve this first."),
        StartError::Forbidden => Some("You are not allowed to decide this any more."),
        StartError::Begin(BeginError::NoSuchApproval) => Some("There is nothing here that you could decide."),
        StartError::Begin(BeginError::AlreadyDecided) => Some("This has been decided already."),
        StartError::Begin(BeginError::ApprovalExpired) => Some("It is too late to decide this. Please ask again."),
        StartError::UnknownContextType(_)
        | StartError::NotOffered(_)
        | StartError::Draining
        | StartError::NoSuchRun
        | StartError::TooFast(_)
        | StartError::Full
        | StartError::OverBudget { .. }
        | StartError::Begin(
            BeginError::Busy { .. }
            | BeginError::QueueFull
            | BeginError::KeyMismatch
            | BeginError::NoSuchMessage
            | BeginError::NoSuchRun
            | BeginError::NoSuchCall
            | BeginError::NothingToRepeat
            | BeginError::NotContinuable(_)
            | BeginError::TooMany(_)
            | BeginError::Unconfirmed(_)
            | BeginError::OverQuota(_)
            | BeginError::Store(_),
        )
        | StartError::Log(_)
        | StartError::Joined { .. }
        | StartError::Failed => None,
    }
}

/// A stream that is there as a whole, since no run was begun.
fn whole(frames: Bytes) -> Response {
    (sse::HEADERS, frames).into_response()
}
