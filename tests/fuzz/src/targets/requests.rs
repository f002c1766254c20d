//! Bodies of requests, in each protocol: they are understood or refused, in words that name what is wrong.

use switchboard::chat::ids::ConversationId;
use switchboard::dialect::DecodeError;
use switchboard::dialect::ag_ui::{AgUi, OpenInterrupts};
use switchboard::dialect::agent_chat::AgentChat;
use switchboard::dialect::ai_sdk::{AiSdk, Query, Version};
use switchboard::dialect::chat_message::ChatMessage;
use switchboard::dialect::chat_stream::ChatStream;
use switchboard::dialect::openai_chat::{Key, OpenAiChat};
use switchboard::dialect::told::Limits;

use super::parts;

/// Small, so that a fuzzer finds both sides of them.
const MESSAGE_BYTES: usize = 200;
const CONTEXT_BYTES: usize = 400;

pub fn native(input: &[u8]) {
    let dialect = AgentChat { max_message_bytes: MESSAGE_BYTES, max_context_bytes: CONTEXT_BYTES };
    twice(|| dialect.parse(input).map_err(checked));
    twice(|| dialect.decode_options(input).map_err(checked));
}

pub fn ag_ui(input: &[u8]) {
    let open_interrupts = OpenInterrupts::Error;
    let dialect = AgUi { max_message_bytes: MESSAGE_BYTES, max_context_bytes: CONTEXT_BYTES, open_interrupts };
    let asker = dialect.decode_asker(input).map_err(checked);
    let asked = dialect.parse(input).map_err(checked);
    assert!(asker.is_ok() || asked.is_err(), "who asks cannot be told of what can be answered");
}

/// The URL's query before the body, a line for each key.
pub fn ai_sdk(input: &[u8]) {
    let dialect = AiSdk { version: Version::V5, max_message_bytes: MESSAGE_BYTES, max_context_bytes: CONTEXT_BYTES };
    let _ = dialect.parse(&Query::default(), input).map_err(checked);
    let (query, body) = parts(input);
    let mut lines = query.lines().map(|line| Some(line.to_owned()).filter(|line| !line.is_empty()));
    let mut next = || lines.next().flatten();
    let query = Query { sdk: next(), context_type: next(), profile: next() };
    let _ = dialect.version(&query).map_err(checked);
    let _ = dialect.parse(&query, body.as_bytes()).map_err(checked);
}

pub fn chat_stream(input: &[u8]) {
    let dialect = ChatStream { max_message_bytes: MESSAGE_BYTES, max_context_bytes: CONTEXT_BYTES, history_bytes: 0 };
    let _ = dialect.parse(input).map_err(checked);
}

pub fn chat_message(input: &[u8]) {
    let dialect = ChatMessage { context_type: "forum".into(), max_message_bytes: MESSAGE_BYTES, now_ms: || 0 };
    let _ = dialect.parse(input).map_err(checked);
}

/// A conversation's id in a header before the body.
pub fn openai(input: &[u8]) {
    let dialect = OpenAiChat(Limits {
        max_message_bytes: MESSAGE_BYTES,
        max_result_bytes: CONTEXT_BYTES,
        max_history_bytes: 2 * CONTEXT_BYTES,
    });
    let _ = dialect.parse(input, Key::None).map_err(checked);
    let (id, body) = parts(input);
    if let Ok(id) = ConversationId::parse(&id) {
        let _ = dialect.parse(body.as_bytes(), Key::Chat(id.clone())).map_err(checked);
        let _ = dialect.parse(body.as_bytes(), Key::Conversation(id)).map_err(checked);
    }
}

/// The same bytes mean the same each time.
fn twice<T: std::fmt::Debug>(decode: impl Fn() -> T) {
    assert_eq!(format!("{:?}", decode()), format!("{:?}", decode()));
}

/// A refusal that tells its sender something, and not too much.
fn checked(error: DecodeError) -> DecodeError {
    match &error {
        DecodeError::NotJson(reason) => assert!(reason.len() < 1000, "{} bytes of reason", reason.len()),
        DecodeError::Fields(fields) => {
            assert!(!fields.is_empty(), "a refusal without a reason");
            for field in fields {
                assert!(!field.reason.is_empty() && field.reason.len() < 2000, "{field:?}");
            }
        }
        DecodeError::Request(reason) => assert!(!reason.is_empty() && reason.len() < 1000, "{reason:?}"),
        DecodeError::NoSuchModel(model) => assert!(model.len() < 1000, "{} bytes of a model", model.len()),
        DecodeError::Mistakes(mistakes) => assert!(!mistakes.is_empty(), "a refusal without a reason"),
        DecodeError::NoSuchAssistant | DecodeError::NotForYou | DecodeError::NoSuchResponse => {}
        DecodeError::TooLarge { field, max_bytes } => assert!(!field.is_empty() && *max_bytes > 0),
    }
    error
}
