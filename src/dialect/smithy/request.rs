//! The request body of `POST /api/chat`.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::Smithy;
use crate::bounded::json::parse;
use crate::chat::ids::ConversationId;
use crate::chat::screen::ScreenState;
use crate::dialect::{DecodeError, Mistake, json as fields};

/// What these clients are told where there is no message.
const NO_MESSAGE: &str = "No user message found";

/// The longest id of a dialog.
const DIALOG_BYTES: usize = 64;

/// Bytes of the open document that a model is told, and of each other one: the rest is cut.
const DOCUMENT_BYTES: usize = 24 * 1024;
const OTHER_BYTES: usize = 4 * 1024;

/// Other documents that a model is told of, AgentSmithy protocol.
const OTHERS: usize = 5;

/// The body; unknown keys are ignored.
#[derive(Deserialize, ToSchema)]
#[schema(as = SmithyRequest)]
pub struct Body<'a> {
    /// The last one of role `user` is the message; the server has the past.
    #[serde(borrow)]
    #[schema(value_type = Vec<Object>)]
    messages: Option<&'a RawValue>,
    /// What the editor shows: `current_file {path, language, content, selection?}`, `open_files`. Cut where it is long.
    #[serde(borrow)]
    #[schema(value_type = Option<Object>)]
    context: Option<&'a RawValue>,
    /// Whether the answer is a stream; else it is one document.
    #[serde(borrow)]
    #[schema(value_type = Option<bool>)]
    stream: Option<&'a RawValue>,
    /// 1 to 64 of `A-Z a-z 0-9 _ -`. Without one: the current dialog, else a new one.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    dialog_id: Option<&'a RawValue>,
    /// The name of the workload that answers this message; an unknown one does not count.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    workload: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Said {
    role: String,
    content: String,
}

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// The user's words.
    pub message: String,
    /// What the editor shows.
    pub context: Option<ScreenState>,
    /// Whether the answer is a stream.
    pub is_stream: bool,
    /// The dialog that it names.
    pub dialog: Option<ConversationId>,
    /// The workload that it names.
    pub workload: Option<String>,
}

impl Smithy {
    /// The request in a body.
    ///
    /// # Errors
    /// The body's mistakes, in words for its sender.
    pub fn parse(&self, body: &[u8]) -> Result<Read, DecodeError> {
        let text = fields::object(body)?;
        let body: Body<'_> = parse(text).map_err(|error| DecodeError::NotJson(error.to_string()))?;
        let mut mistakes = Vec::new();
        let mut wrong = |field, kind, words: &str| mistakes.push(Mistake::new(["body", field], kind, words));
        let said: Option<Vec<Said>> = match fields::given(body.messages) {
            None => {
                wrong("messages", "missing", "Field required");
                None
            }
            Some(raw) => {
                let said = parse(raw.get()).ok();
                if said.is_none() {
                    wrong("messages", "list_type", "Input should be a list of {role, content}, both texts");
                }
                said
            }
        };
        let context: Option<Map<String, Value>> = match fields::given(body.context) {
            None => None,
            Some(raw) => {
                let context = parse(raw.get()).ok();
                if context.is_none() {
                    wrong("context", "dict_type", "Input should be an object");
                }
                context
            }
        };
        let is_stream = match fields::given(body.stream) {
            None => true,
            Some(raw) => parse(raw.get()).unwrap_or_else(|_| {
                wrong("stream", "bool_type", "Input should be true or false");
                true
            }),
        };
        let mut text = |field, raw| -> Option<String> {
            let text = parse(fields::given(raw)?.get()).ok();
            if text.is_none() {
                mistakes.push(Mistake::new(["body", field], "string_type", "Input should be a text"));
            }
            text
        };
        let (dialog, workload) = (text("dialog_id", body.dialog_id), text("workload", body.workload));
        if !mistakes.is_empty() {
            return Err(DecodeError::Mistakes(mistakes));
        }
        let message = said.unwrap_or_default().into_iter().rfind(|said| said.role == "user").map(|said| said.content);
        let message = message.filter(|message| !message.trim().is_empty());
        let message = message.ok_or_else(|| DecodeError::Request(NO_MESSAGE.to_owned()))?;
        if self.max_message_bytes != 0 && message.len() > self.max_message_bytes {
            return Err(DecodeError::TooLarge { field: "messages", max_bytes: self.max_message_bytes });
        }
        let dialog = dialog.filter(|dialog| !dialog.is_empty()).map(|dialog| dialog_id(&dialog)).transpose()?;
        let context = context.as_ref().and_then(shown);
        Ok(Read { message, context, is_stream, dialog, workload })
    }
}

/// The id of a dialog in `text`.
///
/// # Errors
/// When it is none: nothing is looked up then.
pub fn dialog_id(text: &str) -> Result<ConversationId, DecodeError> {
    let is_id = text.len() <= DIALOG_BYTES
        && !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let wrong = || DecodeError::Request("dialog_id must be 1 to 64 characters of A-Z a-z 0-9 _ -".to_owned());
    is_id.then(|| ConversationId::parse(text).ok()).flatten().ok_or_else(wrong)
}

/// What a model is told of the editor: the open document with its selection first, then others, all of them cut.
fn shown(context: &Map<String, Value>) -> Option<ScreenState> {
    let mut told = Map::new();
    if let Some(Value::Object(file)) = context.get("current_file") {
        let document = document(file, DOCUMENT_BYTES);
        told.extend((!document.is_empty()).then(|| ("current_file".to_owned(), Value::Object(document))));
    }
    if let Some(Value::Array(files)) = context.get("open_files") {
        let objects = files.iter().filter_map(Value::as_object).take(OTHERS);
        let files: Vec<Value> = objects.map(|file| Value::Object(document(file, OTHER_BYTES))).collect();
        told.extend((!files.is_empty()).then(|| ("open_files".to_owned(), json!(files))));
    }
    if told.is_empty() { None } else { ScreenState::parse(&Value::Object(told).to_string()) }
}

fn document(file: &Map<String, Value>, most: usize) -> Map<String, Value> {
    let mut told = Map::new();
    for (name, bytes) in [("path", 1024), ("language", 100), ("selection", most), ("content", most)] {
        let Some(text) = file.get(name).and_then(Value::as_str) else { continue };
        let cut = &text[..text.floor_char_boundary(bytes)];
        told.insert(name.to_owned(), Value::from(cut));
        if cut.len() < text.len() {
            told.insert(format!("{name}_is_cut"), Value::Bool(true));
        }
    }
    told
}
