//! This protocol among all others: its route, and how its requests are answered.

use utoipa::OpenApi;

use super::ChatMessage;
use super::encoder::ChatMessageEncoder;
use super::request::{Body, Read};
use crate::chat::approval::DecisionRule;
use crate::chat::input::{RunOptions, Screen};
use crate::dialect::asked::{Asked, ConversationRef, Question, Shape, What};
use crate::dialect::given::Ask;
use crate::dialect::reply::{Position, Reply};
use crate::dialect::{DecodeError, Dialect, Encoder, Request, RunIds, Settings};

#[derive(OpenApi)]
#[openapi(
    paths(message),
    tags((name = "Chat Message", description = "A chat that keeps no conversation. An error's body is `{\"error\", \"code\", \"request_id\"}`."))
)]
struct Api;

#[utoipa::path(
    post,
    path = "/chat/message",
    operation_id = "chatMessage",
    tag = "Chat Message",
    summary = "Answer a message",
    description = "Starts a run and streams it; it ends when its client goes away. There only where `chat_message.profile` names who answers.",
    request_body = Body<'static>,
    responses(
        (status = 200, description = "Frames without a name; their JSON says what each is.", content((String = "text/event-stream"))),
        (status = 404, description = "`not_found`: nobody answers here."),
        (status = 422, description = "`invalid_request`, `idempotency_mismatch`: what is wrong."),
    ),
)]
#[expect(dead_code, reason = "has the description")]
fn message() {}

impl From<&Settings> for ChatMessage {
    fn from(settings: &Settings) -> Self {
        let Settings { message_bytes, chat_message, now_ms, .. } = settings;
        Self { context_type: chat_message.clone(), max_message_bytes: *message_bytes, now_ms: *now_ms }
    }
}

impl Dialect for ChatMessage {
    fn api(&self) -> utoipa::openapi::OpenApi {
        Api::openapi()
    }

    fn decode(&self, request: &Request<'_>) -> Result<Asked, DecodeError> {
        if self.context_type.is_empty() {
            return Err(DecodeError::NoSuchAssistant);
        }
        let Read { message, context, conversation } = self.parse(request.body)?;
        let screen = Screen::Type(self.context_type.to_string());
        Ok(Asked {
            what: What::Answer(Question::new(Ask::message(message), screen)),
            rule: DecisionRule::Any,
            conversation: ConversationRef::Id(conversation),
            options: RunOptions { context, background: Some(false), ..RunOptions::default() },
            mark: "chat-message".to_owned(),
            shape: Shape::Stream,
            reply: Box::new(Frames { roles: request.roles.to_vec(), now_ms: self.now_ms }),
        })
    }
}

/// A stream of frames.
struct Frames {
    /// The roles of whoever reads it.
    roles: Vec<String>,
    now_ms: fn() -> i64,
}

impl Reply for Frames {
    fn encoder(&mut self, of: RunIds, _at: Position) -> Box<dyn Encoder> {
        Box::new(ChatMessageEncoder::new(&of, self.roles.clone(), self.now_ms))
    }
}
