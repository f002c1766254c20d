//! The request body of `POST /chat/message`.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::ChatMessage;
use crate::bounded::json::parse;
use crate::chat::ids::ConversationId;
use crate::chat::screen::ScreenState;
use crate::dialect::{DecodeError, Mistake, json as fields};

/// What these clients show where there is no message.
const NO_MESSAGE: &str = "expected JSON body with a string field `message`";

/// The same where it says nothing.
const EMPTY: &str = "message cannot be empty";

/// The longest name of an agent that counts, in bytes.
const AGENT_BYTES: usize = 256;

/// The body; unknown keys are ignored, those that name a tenant or a user among them: who somebody is says their token.
#[derive(Deserialize, ToSchema)]
#[schema(as = ChatMessageRequest)]
pub struct Body<'a> {
    /// Trimmed; not blank.
    #[serde(borrow)]
    #[schema(value_type = String)]
    message: Option<&'a RawValue>,
    /// The agent that the user has selected: a hint, which the model gets as `context.agent_id`. Anything but a text is none.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    agent_id: Option<&'a RawValue>,
    /// The conversation to go on with; without one a new one begins.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    conversation_id: Option<&'a RawValue>,
}

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// The user's words.
    pub message: String,
    /// What the client says of its screen.
    pub context: Option<ScreenState>,
    /// The conversation to go on with.
    pub conversation: Option<ConversationId>,
}

impl ChatMessage {
    /// The request in a body.
    ///
    /// # Errors
    /// The body's mistakes, in words for its sender.
    pub fn parse(&self, body: &[u8]) -> Result<Read, DecodeError> {
        let text = fields::object(body)?;
        let body: Body<'_> = parse(text).map_err(|error| DecodeError::NotJson(error.to_string()))?;
        let Some(message) = body.message.and_then(text_of) else {
            return Err(mistake("message", "string_type", NO_MESSAGE));
        };
        let message = message.trim();
        if message.is_empty() {
            return Err(mistake("message", "missing", EMPTY));
        }
        if self.max_message_bytes != 0 && message.len() > self.max_message_bytes {
            return Err(DecodeError::TooLarge { field: "message", max_bytes: self.max_message_bytes });
        }
        let agent = body.agent_id.and_then(text_of).filter(|agent| !agent.trim().is_empty());
        let agent = agent.filter(|agent| agent.len() <= AGENT_BYTES);
        let context = agent.and_then(|agent| ScreenState::parse(&json!({ "agent_id": agent }).to_string()));
        let conversation = match fields::given(body.conversation_id) {
            None => None,
            Some(raw) => Some(conversation(raw)?),
        };
        Ok(Read { message: message.to_owned(), context, conversation })
    }
}

fn conversation(raw: &RawValue) -> Result<ConversationId, DecodeError> {
    let wrong = |reason: &str| mistake("conversation_id", "value_error", &format!("conversation_id {reason}"));
    let id = text_of(raw).ok_or_else(|| wrong("must be a string"))?;
    ConversationId::parse(&id).map_err(|error| wrong(&error.to_string()))
}

fn text_of(raw: &RawValue) -> Option<String> {
    parse(raw.get()).ok()
}

fn mistake(field: &'static str, kind: &'static str, message: &str) -> DecodeError {
    DecodeError::Mistakes(vec![Mistake::new(["body", field], kind, message)])
}
