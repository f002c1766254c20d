//! Page assistants' protocol among all others: its route, and how its requests are answered.

use std::time::Duration;

use utoipa::OpenApi;

use super::{ChatStream, Read, encoder};
use crate::chat::approval::{Deciding, DecisionRule, Seen};
use crate::dialect::asked::{Asked, ConversationRef, Question, Shape, What};
use crate::dialect::reply::{Position, Refusal, RefusalReason, RefusalResponse, Reply, StreamOptions};
use crate::dialect::{DecodeError, Dialect, Encoder, Mistake, Request, RunIds, Settings};

/// The answer to a user whose token lists none of the roles of the page's profile.
const NOT_FOR_YOU: &str = "You are not allowed to use the assistant on this page.";

/// The answer to a user whose button does not name the call they saw, or names another one.
const OTHER_CALL: &str = "This is not what waits for your decision. Please reload the chat and look at it again.";

/// The answer to a user who decides another one's call.
const KEPT: &str = "Your decision is kept; whoever asked can go on now.";

/// Silence on a stream before a comment is sent: these clients are promised one each second.
const PING: Duration = Duration::from_millis(900);

#[derive(OpenApi)]
#[openapi(
    paths(chat),
    tags((name = "Chat Stream", description = "The routes of page assistants. An error's body is `{\"detail\"}`."))
)]
struct Api;

#[utoipa::path(
    post,
    path = "/api/chat/stream",
    operation_id = "chatStream",
    tag = "Chat Stream",
    summary = "Answer a page assistant",
    description = "Starts a run, or decides a call that waits, and streams it.",
    request_body = super::RequestBody<'static>,
    responses(
        (status = 200, description = "Frames called `message`; their JSON says what each is.", content((String = "text/event-stream"))),
        (status = 400, description = "`body_unreadable`, `invalid_request`: the body did not arrive whole; an `Idempotency-Key` that is none."),
        (status = 422, description = "`invalid_request`, `idempotency_mismatch`: what is wrong, field by field."),
    ),
)]
#[expect(dead_code, reason = "has the description")]
fn chat() {}

impl From<&Settings> for ChatStream {
    fn from(settings: &Settings) -> Self {
        let Settings { message_bytes, context_bytes, history_bytes, .. } = *settings;
        Self { max_message_bytes: message_bytes, max_context_bytes: context_bytes, history_bytes }
    }
}

impl Dialect for ChatStream {
    fn api(&self) -> utoipa::openapi::OpenApi {
        Api::openapi()
    }

    fn decode(&self, request: &Request<'_>) -> Result<Asked, DecodeError> {
        let Read { what, screen, number, options } = self.parse(request.body)?;
        let what = match what {
            super::What::Answer(ask) => What::Answer(Question::new(ask, screen.clone())),
            super::What::Decide { approval, digest, decision } => {
                let deciding = Deciding { approval, decision, is_farewell: false, seen: Seen::Digest(digest) };
                What::Decide(vec![deciding], None)
            }
        };
        Ok(Asked {
            what,
            rule: DecisionRule::Any,
            conversation: ConversationRef::Number(number, screen),
            options,
            mark: "chat-stream".to_owned(),
            shape: Shape::Stream,
            reply: Box::new(Frames { history_bytes: self.history_bytes }),
        })
    }
}

/// A stream of frames. To these clients an HTTP error of some kinds means that their user has to sign in again, so a
/// refusal is a stream too.
struct Frames {
    history_bytes: usize,
}

impl Reply for Frames {
    fn options(&self) -> StreamOptions {
        StreamOptions { silence: Some(PING), ..StreamOptions::default() }
    }

    fn encoder(&mut self, of: RunIds, _at: Position) -> Box<dyn Encoder> {
        Box::new(encoder::ChatStreamEncoder::new(of.run.to_string(), of.number, self.history_bytes))
    }

    fn refused(&mut self, refusal: &Refusal<'_>) -> RefusalResponse {
        let words = match refusal.why {
            RefusalReason::Kept => return RefusalResponse::Stream(encoder::whole_answer(KEPT)),
            RefusalReason::NoSuchAssistant => {
                let at = ["body", "context", "current_page"];
                let mistake = Mistake::new(at, "value_error", "No assistant is configured for this page");
                return RefusalResponse::Mistake(DecodeError::Mistakes(vec![mistake]));
            }
            RefusalReason::Forbidden if refusal.call.is_some() => "You are not allowed to decide this any more.",
            RefusalReason::Forbidden => NOT_FOR_YOU,
            RefusalReason::OtherCall => OTHER_CALL,
            RefusalReason::RoleRequired => "Somebody with another role has to approve this first.",
            RefusalReason::OwnRequest => "Somebody else has to approve this first.",
            RefusalReason::NoSuchApproval => "There is nothing here that you could decide.",
            RefusalReason::AlreadyDecided => "This has been decided already.",
            RefusalReason::Expired => "It is too late to decide this. Please ask again.",
            RefusalReason::Waiting(_)
            | RefusalReason::NothingLeft
            | RefusalReason::NotOnBranch(_)
            | RefusalReason::NoSuchMessage
            | RefusalReason::NothingToRepeat
            | RefusalReason::NoSuchConversation
            | RefusalReason::DataDenied
            | RefusalReason::DataUnavailable
            | RefusalReason::NoSuchRun
            | RefusalReason::Other => return RefusalResponse::AsUsual,
        };
        RefusalResponse::Stream(encoder::refusal(words))
    }
}
