//! This protocol among all others: its route, and how its requests are answered.

use utoipa::OpenApi;

use super::AgentStream;
use super::encoder::{AgentStreamEncoder, NO_ACCESS, NOT_LOADED, refusal};
use super::request::{Read, StreamBody, read};
use crate::chat::approval::DecisionRule;
use crate::chat::failure::FailureCode;
use crate::chat::input::Screen;
use crate::chat::session::Session;
use crate::dialect::asked::{Asked, ConversationRef, Question, Shape, What};
use crate::dialect::reply::{Position, Refusal, RefusalReason, RefusalResponse, Reply};
use crate::dialect::{DecodeError, Dialect, Encoder, Request, RunIds, Settings};

#[derive(OpenApi)]
#[openapi(
    paths(stream),
    tags((name = "Agent Stream", description = "A chat with sessions and places. An error's body is `{\"error\", \"code\", \"details\"?}`."))
)]
struct Api;

#[utoipa::path(
    post,
    path = "/api/agent/stream",
    operation_id = "agentStream",
    tag = "Agent Stream",
    summary = "Answer a message of a session",
    description = "Starts a run and streams it; one that still lives in that session is cancelled first. A session that is not there is told in the stream.",
    request_body = StreamBody<'static>,
    responses(
        (status = 200, description = "Frames without a name; their JSON says what each is.", content((String = "text/event-stream"))),
    ),
)]
#[expect(dead_code, reason = "has the description")]
fn stream() {}

impl From<&Settings> for AgentStream {
    fn from(settings: &Settings) -> Self {
        Self { max_message_bytes: settings.message_bytes, max_context_bytes: settings.context_bytes }
    }
}

impl Dialect for AgentStream {
    fn api(&self) -> utoipa::openapi::OpenApi {
        Api::openapi()
    }

    fn decode(&self, request: &Request<'_>) -> Result<Asked, DecodeError> {
        let Read { ask, session, screen, earlier, options } = read(self, request.body)?;
        let conversation = match session {
            Some(id) => ConversationRef::Existing(id),
            None => ConversationRef::Id(None),
        };
        let context_type = match &screen {
            Screen::Type(name) => name.clone(),
            Screen::OfConversation | Screen::Page { .. } => String::new(),
        };
        Ok(Asked {
            what: What::Answer(Question { earlier, ..Question::new(ask, screen) }),
            rule: DecisionRule::Any,
            conversation,
            options,
            mark: "agent-stream".to_owned(),
            shape: Shape::Stream,
            reply: Box::new(Frames { session: None, context_type }),
        })
    }
}

/// A stream of frames, which tells of its session.
struct Frames {
    session: Option<Session>,
    /// Where the request says that its user is.
    context_type: String,
}

impl Reply for Frames {
    fn wants_session(&self) -> bool {
        true
    }

    fn learn(&mut self, session: Session) {
        self.session = Some(session);
    }

    fn encoder(&mut self, _of: RunIds, _at: Position) -> Box<dyn Encoder> {
        Box::new(AgentStreamEncoder::new(self.session.clone()))
    }

    fn refused(&mut self, refused: &Refusal<'_>) -> RefusalResponse {
        let (words, code) = match refused.why {
            RefusalReason::NoSuchConversation => ("Session not found.", "session_not_found"),
            RefusalReason::DataDenied => (NO_ACCESS, FailureCode::DataDenied.name()),
            RefusalReason::DataUnavailable => (NOT_LOADED, FailureCode::DataUnavailable.name()),
            _ => return RefusalResponse::AsUsual,
        };
        RefusalResponse::Stream(refusal(&self.context_type, words, code))
    }
}
