//! The native dialect: `POST /v1/agent/chat`, sections 1 and 2 of the Agent Chat Protocol
//! (`docs/protocol/agent-chat.md`).
//!
//! Tool inputs and tool results never reach these clients, thinking only where its profile shows it. Only `error` has keys
//! beyond the documented ones.

mod encoder;
pub mod events;
mod feedback;
mod framing;
mod place;
mod wire;

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::answer_format::{self, DeclaredSchema};
use super::{DecodeError, FieldError, json};
use crate::bounded::json::parse;
use crate::chat::file::GivenFile;
use crate::chat::ids::{ConversationId, MessageId};
use crate::chat::input::{OnBusy, Parent, RunOptions, Screen};
use crate::chat::model::{Effort, ModelWish};
use crate::dialect::given::{self, Ask, RunInput};

use encoder::AgentChatEncoder;
pub use feedback::FeedbackBody;
use framing::Framing;
pub use place::{ConversationBody, PlaceRequest, PrewarmBody};
pub use wire::Native;

/// The native protocol, with the limits of its request fields.
#[derive(Debug, Clone, Copy)]
pub struct AgentChat {
    /// The longest `message`, in bytes; 0 means no limit.
    pub max_message_bytes: usize,
    /// The largest `context`, in bytes of JSON; 0 means no limit.
    pub max_context_bytes: usize,
}

/// The request body; unknown keys are ignored, `null` and `""` are a field left out.
#[derive(Deserialize, ToSchema)]
#[schema(as = ChatTurn)]
struct Body<'a> {
    /// The user's message, not blank; required unless `regenerate` is true.
    #[serde(borrow)]
    #[schema(value_type = Option<String>, example = "What does this workflow do?")]
    message: Option<&'a RawValue>,
    /// Files that belong to it, each by the `id` of an upload, or with its `data` in base64, a `name` and a `media_type`.
    #[serde(borrow)]
    #[schema(value_type = Option<Vec<Attachment>>)]
    attachments: Option<&'a RawValue>,
    /// Which profile answers: `GET /v1/agent/profiles` lists them. Without one, that of the conversation's place.
    #[serde(borrow)]
    #[schema(value_type = Option<String>, example = "workflow")]
    context_type: Option<&'a RawValue>,
    /// The caller's own conversation, to be continued or begun.
    #[serde(borrow)]
    #[schema(value_type = Option<String>, pattern = "^[A-Za-z0-9._:-]{0,128}$")]
    conversation_id: Option<&'a RawValue>,
    /// Answers an earlier message of the user again, on a branch of its own. The rest are extensions of ours.
    #[serde(borrow)]
    #[schema(value_type = Option<bool>)]
    regenerate: Option<&'a RawValue>,
    /// The message to go on from, or `root` for before the first.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    parent_message_id: Option<&'a RawValue>,
}

/// A file of a message.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Attachment {
    /// One that was uploaded (`POST /v1/agent/files`).
    id: Option<String>,
    /// Its bytes in base64.
    data: Option<String>,
    name: Option<String>,
    /// A hint: what is inside, the bytes say.
    media_type: Option<String>,
}

/// What every request may say about how it is carried out; unknown keys are ignored.
#[derive(Default, Deserialize, ToSchema)]
#[schema(as = Manner)]
pub struct OptionsBody<'a> {
    /// The state of the user's screen: goes into the system prompt as data.
    #[serde(borrow)]
    #[schema(value_type = Option<Object>)]
    context: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = Option<Wish<'a>>)]
    model: Option<&'a RawValue>,
    /// Whether the run goes on when its client goes away; the profile says where the request does not.
    #[serde(borrow)]
    #[schema(value_type = Option<bool>)]
    background: Option<&'a RawValue>,
    /// What happens when the conversation has a run already: `reject`, `enqueue` or `interrupt`.
    #[serde(borrow)]
    #[schema(value_type = Option<String>, pattern = "^(|reject|enqueue|interrupt)$")]
    on_busy: Option<&'a RawValue>,
    /// A JSON Schema, an object at its top: the answer is one JSON object that fits it.
    #[serde(borrow)]
    #[schema(value_type = Option<Object>)]
    answer_schema: Option<&'a RawValue>,
    /// What the client tells the model, where the profile has `client_instructions = "append"`.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    instructions: Option<&'a RawValue>,
}

/// The body of a chat turn.
#[derive(ToSchema)]
#[schema(as = ChatRequest)]
#[expect(dead_code, reason = "its parts are read one after the other")]
pub struct RequestBody<'a> {
    #[serde(flatten)]
    turn: Body<'a>,
    #[serde(flatten)]
    options: OptionsBody<'a>,
    #[serde(flatten)]
    place: place::PlaceFields<'a>,
}

/// How the model is asked, as far as the profile allows it. Not a key more: a misspelt wish must not be ignored.
#[derive(Deserialize, ToSchema)]
#[schema(as = ModelWish)]
#[serde(deny_unknown_fields)]
struct Wish<'a> {
    /// One of the names that the profile offers.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 2)]
    temperature: Option<&'a RawValue>,
    /// The longest answer of one turn.
    #[serde(borrow)]
    #[schema(value_type = Option<u32>, minimum = 1)]
    max_tokens: Option<&'a RawValue>,
    /// How much the model thinks first: `none`, `low`, `medium`, `high` or `max`.
    #[serde(borrow)]
    #[schema(value_type = Option<String>, pattern = "^(|none|low|medium|high|max)$")]
    effort: Option<&'a RawValue>,
}

impl AgentChat {
    /// The run of a request body.
    ///
    /// # Errors
    /// The body's mistakes, in words for its sender.
    pub fn parse(&self, body: &[u8]) -> Result<RunInput, DecodeError> {
        let text = json::object(body)?;
        let parse_error = |error: serde_json::Error| DecodeError::NotJson(error.to_string());
        let body: Body<'_> = parse(text).map_err(parse_error)?;
        let mut errors = Vec::new();
        let again = json::optional(body.regenerate, "regenerate", "true or false", &mut errors).unwrap_or(false);
        let files = attachments(body.attachments, &mut errors);
        let message = match again || !files.is_empty() {
            true => json::optional(body.message, "message", "a string", &mut errors),
            false => json::required_text(body.message, "message", &mut errors),
        };
        if again && !files.is_empty() {
            let reason = "must be left out with regenerate, which answers an earlier message again".to_owned();
            errors.push(FieldError { field: "attachments", reason });
        }
        if again && message.is_some() {
            let reason = "must be left out with regenerate, which answers an earlier message again".to_owned();
            errors.push(FieldError { field: "message", reason });
        }
        let context_type: Option<String> = json::optional(body.context_type, "context_type", "a string", &mut errors);
        let context_type = context_type.filter(|text| !text.trim().is_empty());
        // A conversation that is there has one.
        let is_required = json::given(body.conversation_id).is_none();
        if is_required && context_type.is_none() && errors.iter().all(|error| error.field != "context_type") {
            let reason = "is required and must not be empty".to_owned();
            errors.push(FieldError { field: "context_type", reason });
        }
        let options = self.options(text, &mut errors)?;
        let conversation: Option<String> =
            json::optional(body.conversation_id, "conversation_id", "a string", &mut errors);
        let conversation = conversation.and_then(|id| {
            ConversationId::parse(&id)
                .map_err(|error| errors.push(FieldError { field: "conversation_id", reason: error.to_string() }))
                .ok()
        });
        let parent = parent(body.parent_message_id, &mut errors);
        if conversation.is_none() && errors.is_empty() && (again || parent.is_some()) {
            let reason = "is required with regenerate and parent_message_id".to_owned();
            errors.push(FieldError { field: "conversation_id", reason });
        }
        if !errors.is_empty() {
            return Err(DecodeError::Fields(errors));
        }
        let ask = match message {
            Some(message) if self.max_message_bytes != 0 && message.len() > self.max_message_bytes => {
                return Err(DecodeError::TooLarge { field: "message", max_bytes: self.max_message_bytes });
            }
            Some(text) => Ask::Message { text, note: None, files },
            None if !files.is_empty() => Ask::Message { text: String::new(), note: None, files },
            None => Ask::Again,
        };
        let screen = context_type.map_or(Screen::OfConversation, Screen::Type);
        Ok(RunInput { ask, screen, conversation, parent, earlier: Vec::new(), unlisted: false, options })
    }

    /// How a request wants an earlier run to be continued; an empty body leaves everything as usual.
    ///
    /// # Errors
    /// The body's mistakes, in words for its sender.
    pub fn decode_options(&self, body: &[u8]) -> Result<RunOptions, DecodeError> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(RunOptions { may_pause: true, ..RunOptions::default() });
        }
        let text = json::object(body)?;
        let mut errors = Vec::new();
        let options = self.options(text, &mut errors)?;
        if errors.is_empty() { Ok(options) } else { Err(DecodeError::Fields(errors)) }
    }

    fn options(&self, text: &str, errors: &mut Vec<FieldError>) -> Result<RunOptions, DecodeError> {
        let body: OptionsBody<'_> = parse(text).map_err(|error| DecodeError::NotJson(error.to_string()))?;
        check_size("context", body.context, self.max_context_bytes)?;
        let context = json::screen(body.context, "context", errors);
        let place = place::update(text, errors)?;
        let model = wish(body.model, errors);
        let background = json::optional(body.background, "background", "true or false", errors);
        let on_busy: Option<String> = json::optional(body.on_busy, "on_busy", "a string", errors);
        let policy = on_busy.as_deref().and_then(OnBusy::parse);
        if on_busy.is_some() && policy.is_none() {
            let reason = format!("must be one of: {}", OnBusy::ALL.map(OnBusy::name).join(", "));
            errors.push(FieldError { field: "on_busy", reason });
        }
        let answer_format = match json::given(body.answer_schema) {
            None => None,
            Some(schema) => {
                let declared = DeclaredSchema { name: None, description: None, is_strict: true, schema };
                answer_format::schema(declared, "answer_schema", errors)?
            }
        };
        check_size("instructions", body.instructions, self.max_message_bytes)?;
        let instructions: Option<String> = json::optional(body.instructions, "instructions", "a string", errors);
        Ok(RunOptions {
            context,
            place,
            model,
            background,
            on_busy: policy,
            may_pause: true,
            answer_format,
            instructions: instructions.map(Arc::from),
            ..RunOptions::default()
        })
    }
}

/// The message to go on from: its id, or `root` for a branch before the first one.
fn parent(raw: Option<&RawValue>, errors: &mut Vec<FieldError>) -> Option<Parent> {
    let id: String = json::optional(raw, "parent_message_id", "a string", errors)?;
    match id.as_str() {
        "root" => Some(Parent::Root),
        id => MessageId::parse(id)
            .map(Parent::Message)
            .map_err(|error| {
                let reason = format!("{error}, or \"root\"");
                errors.push(FieldError { field: "parent_message_id", reason });
            })
            .ok(),
    }
}

/// The client's wishes for the model; mistakes go to `errors`.
fn wish(raw: Option<&RawValue>, errors: &mut Vec<FieldError>) -> ModelWish {
    let Some(raw) = json::given(raw) else { return ModelWish::default() };
    // A list would pass for the fields in their order.
    let wish = Some(raw.get()).filter(|text| text.starts_with('{')).and_then(|text| parse(text).ok());
    let Some(Wish { name, temperature, max_tokens, effort }) = wish else {
        let reason = "must be an object of name, temperature, max_tokens and effort, each at most once".to_owned();
        errors.push(FieldError { field: "model", reason });
        return ModelWish::default();
    };
    let name: Option<String> = json::optional(name, "model.name", "a string", errors);
    let temperature: Option<f64> = json::optional(temperature, "model.temperature", TEMPERATURE, errors);
    let max_tokens: Option<u32> = json::optional(max_tokens, "model.max_tokens", MAX_TOKENS, errors);
    let effort: Option<String> = json::optional(effort, "model.effort", "a string", errors);
    let mut refuse = |field, reason: String| errors.push(FieldError { field, reason });
    if temperature.is_some_and(|temperature| !(0.0..=2.0).contains(&temperature)) {
        refuse("model.temperature", format!("must be {TEMPERATURE}"));
    }
    if max_tokens == Some(0) {
        refuse("model.max_tokens", format!("must be {MAX_TOKENS}"));
    }
    let known = effort.as_deref().and_then(Effort::parse);
    if effort.is_some() && known.is_none() {
        refuse("model.effort", format!("must be one of: {}", Effort::ALL.map(Effort::name).join(", ")));
    }
    ModelWish { name, workload: None, temperature, max_tokens, effort: known }
}

const TEMPERATURE: &str = "a number from 0 to 2";
const MAX_TOKENS: &str = "a whole number of at least 1";

fn check_size(field: &'static str, raw: Option<&RawValue>, max_bytes: usize) -> Result<(), DecodeError> {
    match raw {
        Some(raw) if max_bytes != 0 && raw.get().len() > max_bytes => Err(DecodeError::TooLarge { field, max_bytes }),
        Some(_) | None => Ok(()),
    }
}

/// The files of a message; what is wrong with them is noted in `errors`.
fn attachments(raw: Option<&RawValue>, errors: &mut Vec<FieldError>) -> Vec<GivenFile> {
    let Some(raw) = json::given(raw) else { return Vec::new() };
    let mut refuse = |reason: String| errors.push(FieldError { field: "attachments", reason });
    let Ok(all) = parse::<Vec<&RawValue>>(raw.get()) else {
        refuse("must be a list of objects".to_owned());
        return Vec::new();
    };
    let mut files = Vec::with_capacity(all.len());
    for (at, raw) in all.into_iter().enumerate() {
        let file = match json::fields::<Attachment>(raw) {
            Some(Attachment { id: Some(id), data: None, name: None, media_type: None }) => given::uploaded(&id),
            Some(Attachment { id: None, data: Some(data), name, media_type }) => given::inline(&data, name, media_type),
            Some(_) | None => {
                Err("must have the id of an upload, or data in base64 with maybe a name and a media_type")
            }
        };
        match file {
            Ok(file) => files.push(file),
            Err(reason) => refuse(format!("[{at}] {reason}")),
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::AgentChat;

    #[test]
    fn an_empty_text_is_an_optional_field_left_out() {
        let dialect = AgentChat { max_message_bytes: 0, max_context_bytes: 0 };
        let bare = dialect.parse(br#"{"message": "hi", "context_type": "w"}"#).unwrap();
        let fields = [
            "context",
            "conversation_id",
            "model",
            "background",
            "on_busy",
            "regenerate",
            "parent_message_id",
            "answer_schema",
            "instructions",
        ];
        for field in fields {
            for absent in ["null", r#""""#] {
                let body = format!(r#"{{"message": "hi", "context_type": "w", "{field}": {absent}}}"#);
                assert_eq!(dialect.parse(body.as_bytes()).unwrap(), bare, "{body}");
            }
        }
        for field in ["name", "temperature", "max_tokens", "effort"] {
            let body = format!(r#"{{"message": "hi", "context_type": "w", "model": {{"{field}": ""}}}}"#);
            assert_eq!(dialect.parse(body.as_bytes()).unwrap(), bare, "{body}");
        }
        for field in ["context", "background", "on_busy"] {
            let blank = format!(r#"{{"message": "hi", "context_type": "w", "{field}": " "}}"#);
            assert!(dialect.parse(blank.as_bytes()).is_err(), "{blank} is not empty");
        }
        let again = br#"{"message": "", "context_type": "w", "conversation_id": "c", "regenerate": true}"#;
        dialect.parse(again).unwrap();
    }
}
