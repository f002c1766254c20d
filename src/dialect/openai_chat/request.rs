//! The request body of `POST /v1/chat/completions`. Its clients send many fields that only a model service knows;
//! what is not named here is accepted and ignored.
//!
//! **Invariant:** what a client tells of a conversation is text of a user and of an assistant and nothing else: no
//! instructions, no calls and no results, which it could make up.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{Key, OpenAiChat, call_ids, tools};
use crate::bounded::json::parse;
use crate::chat::ids::ConversationId;
use crate::chat::input::{Ask, ClientMessage, ClientResult, RunInput, RunOptions, Screen};
use crate::chat::model::{Effort, ModelWish};
use crate::dialect::{DecodeError, FieldError, json};

/// The beginning of Open WebUI's own requests to a model, and also of a question with documents, which is no task.
const TASK: &str = "### Task:";

/// The texts of its tasks behind that: a title, tags, a picture, what to ask next, what to search for, and how a
/// message goes on.
const TASKS: [&str; 6] = [
    "Generate a concise",
    "Generate 1-3 broad tags",
    "Generate a detailed prompt",
    "Suggest 3-5 relevant follow-up",
    "Analyze the chat history",
    "You are an autocompletion system",
];

/// The tag in which all of them quote the chat.
const QUOTED_CHAT: &str = "<chat_history>";

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// The run. What it wishes of the model is a wish: the profile may not let requests choose.
    pub input: RunInput,
    /// The model's id, which is a profile's `context_type`.
    pub model: String,
    /// Whether the client names the conversation.
    pub is_keyed: bool,
    /// Whether the answer is a stream.
    pub stream: bool,
    /// Whether the stream tells the tokens at its end.
    pub include_usage: bool,
}

/// The body; what is not named here is accepted and ignored.
#[derive(Deserialize, ToSchema)]
#[schema(as = OpenAiRequest)]
pub struct Body<'a> {
    /// A profile's `context_type`.
    #[serde(borrow)]
    #[schema(value_type = String, example = "workflow")]
    model: Option<&'a RawValue>,
    /// The conversation so far. It ends with a message of the user, or with results of tools.
    #[serde(borrow)]
    #[schema(value_type = Vec<Message<'a>>, example = json!([{"role": "user", "content": "What does this workflow do?"}]))]
    messages: Option<&'a RawValue>,
    /// Whether the answer is a stream.
    #[serde(borrow)]
    #[schema(value_type = Option<bool>)]
    stream: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = Option<Object>)]
    stream_options: Option<&'a RawValue>,
    /// 1: there is one answer.
    #[serde(borrow)]
    #[schema(value_type = Option<u64>)]
    n: Option<&'a RawValue>,
    /// Tools that the client runs.
    #[serde(borrow)]
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = Option<Value>)]
    tool_choice: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = Option<f64>)]
    temperature: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = Option<i64>)]
    max_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = Option<i64>)]
    max_completion_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    reasoning_effort: Option<&'a RawValue>,
    /// `conversation_id` names the conversation.
    #[serde(borrow)]
    #[schema(value_type = Option<Object>)]
    metadata: Option<&'a RawValue>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = OpenAiInputMessage)]
struct Message<'a> {
    #[serde(borrow)]
    #[schema(value_type = Role)]
    role: Option<&'a RawValue>,
    /// A text, or parts.
    #[serde(borrow)]
    #[schema(value_type = Option<Value>)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    tool_call_id: Option<&'a RawValue>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = OpenAiRole)]
enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
    /// What tools were called before there were tools.
    Function,
}

#[derive(Deserialize)]
struct Part {
    r#type: String,
    text: Option<String>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    conversation_id: Option<&'a RawValue>,
}

pub(super) fn read(limits: &OpenAiChat, body: &[u8], key: Key) -> Result<Read, DecodeError> {
    let text = json::object(body)?;
    let body: Body<'_> = parse(text).map_err(|error| DecodeError::NotJson(error.to_string()))?;
    let mut errors = Vec::new();
    let model = json::required_text(body.model, "model", &mut errors);
    let stream = json::optional(body.stream, "stream", "true or false", &mut errors).unwrap_or(false);
    let options = json::given(body.stream_options).map(json::fields::<StreamOptions>);
    if matches!(options, Some(None)) {
        let reason = "must be an object, its include_usage true or false".to_owned();
        errors.push(FieldError { field: "stream_options", reason });
    }
    if json::optional::<u64>(body.n, "n", "1: there is one answer", &mut errors).is_some_and(|n| n != 1) {
        errors.push(FieldError { field: "n", reason: "must be 1: there is one answer".to_owned() });
    }
    let client_tools = tools::tools(body.tools, body.tool_choice, &mut errors)?;
    let model_wish = wish(&body, &mut errors);
    let named = match key {
        Key::None => named(body.metadata, &mut errors),
        key @ (Key::Conversation(_) | Key::Chat(_)) => key,
    };
    let sent = messages(body.messages, &mut errors);
    let (Some(model), Some(sent), true) = (model, sent, errors.is_empty()) else {
        return Err(DecodeError::Fields(errors));
    };
    let key = match named {
        Key::None => None,
        Key::Conversation(conversation) => Some(conversation),
        Key::Chat(conversation) => Some(conversation).filter(|_| !sent.is_task()),
    };
    let refuse = |reason: String| DecodeError::Fields(vec![FieldError { field: "messages", reason }]);
    let fits = |text: &str, max_bytes: usize| match max_bytes != 0 && text.len() > max_bytes {
        true => Err(DecodeError::TooLarge { field: "messages", max_bytes }),
        false => Ok(()),
    };
    let (ask, conversation) = match sent.newest {
        Newest::User(text) => {
            fits(&text, limits.max_message_bytes)?;
            (Ask::message(text), key.clone())
        }
        Newest::Results(results) => {
            results.iter().try_for_each(|(_, content)| fits(content, limits.max_result_bytes))?;
            let (results, conversation) = called(results, key.clone()).map_err(refuse)?;
            (Ask::Results(results), Some(conversation))
        }
    };
    let is_keyed = key.is_some();
    let is_message = matches!(ask, Ask::Message { .. });
    let earlier = if is_message && !is_keyed { bounded(sent.earlier, limits.max_history_bytes) } else { Vec::new() };
    let input = RunInput {
        ask,
        screen: Screen::Type(model.clone()),
        conversation,
        parent: None,
        earlier,
        unlisted: !is_keyed,
        options: RunOptions { model: model_wish, client_tools, ..RunOptions::default() },
    };
    let include_usage = options.flatten().and_then(|options| options.include_usage).unwrap_or(false);
    Ok(Read { input, model, is_keyed, stream, include_usage })
}

/// The client's messages of the conversation.
struct SentMessages {
    earlier: Vec<ClientMessage>,
    newest: Newest,
}

enum Newest {
    /// The question.
    User(String),
    /// Calls by the ids that the client knows, and their results.
    Results(Vec<(String, String)>),
}

impl SentMessages {
    /// Whether a front end asks for something of its own about the chat, which is no part of it.
    fn is_task(&self) -> bool {
        match &self.newest {
            Newest::User(text) => self.earlier.is_empty() && is_task(text),
            Newest::Results(_) => false,
        }
    }
}

fn is_task(text: &str) -> bool {
    let task = text.trim_start().strip_prefix(TASK).map(str::trim_start);
    task.is_some_and(|task| TASKS.iter().any(|begin| task.starts_with(begin)) && task.contains(QUOTED_CHAT))
}

fn messages(raw: Option<&RawValue>, errors: &mut Vec<FieldError>) -> Option<SentMessages> {
    let mut refuse = |reason: String| -> Option<SentMessages> {
        errors.push(FieldError { field: "messages", reason });
        None
    };
    let list = raw.and_then(|raw| parse::<Vec<&RawValue>>(raw.get()).ok());
    let Some(list) = list else { return refuse("must be a list of messages".to_owned()) };
    let mut read = Vec::with_capacity(list.len());
    for (at, raw) in list.into_iter().enumerate() {
        let Some(message) = json::fields::<Message<'_>>(raw) else {
            return refuse(format!("must have an object with a role as message {at}"));
        };
        match message.role.and_then(|role| parse::<Role>(role.get()).ok()) {
            // The profile has the assistant's instructions.
            Some(Role::System | Role::Developer) => {}
            Some(role) => read.push((at, role, message)),
            None => {
                let roles = "system, developer, user, assistant or tool";
                return refuse(format!("must have one of the roles {roles} in message {at}"));
            }
        }
    }
    let results = read.iter().rev().take_while(|(_, role, _)| *role == Role::Tool).count();
    let rest = read.split_off(read.len().saturating_sub(results.max(1)));
    let earlier = read.iter().filter_map(|(_, role, message)| earlier_message(*role, message)).collect();
    let newest = match rest.first() {
        Some((at, Role::User, message)) => match words(message.content) {
            Some(text) if !text.trim().is_empty() => Newest::User(text),
            Some(_) => return refuse(format!("must have text that is not blank in message {at}")),
            None => return refuse(format!("must have nothing but text in message {at}: other parts are not read")),
        },
        Some((_, Role::Tool, _)) => match rest.iter().map(|(at, _, message)| result(*at, message)).collect() {
            Ok(results) => Newest::Results(results),
            Err(reason) => return refuse(reason),
        },
        Some((_, Role::Assistant | Role::Function | Role::System | Role::Developer, _)) | None => {
            return refuse("must end with a message of the user, or with results of tools".to_owned());
        }
    };
    Some(SentMessages { earlier, newest })
}

/// A message of before: its text, if it has any and is the user's or the assistant's.
fn earlier_message(role: Role, message: &Message<'_>) -> Option<ClientMessage> {
    let tell = match role {
        Role::User => ClientMessage::User,
        Role::Assistant => ClientMessage::Assistant,
        Role::System | Role::Developer | Role::Tool | Role::Function => return None,
    };
    let text = match words(message.content) {
        Some(text) => text,
        // What else there was has been refused or answered when it was new.
        None => parts(message.content?)?,
    };
    (!text.trim().is_empty()).then(|| tell(text))
}

fn result(at: usize, message: &Message<'_>) -> Result<(String, String), String> {
    let id = message.tool_call_id.and_then(|id| parse::<String>(id.get()).ok());
    let id = id.filter(|id| !id.is_empty()).ok_or_else(|| format!("must have a tool_call_id in message {at}"))?;
    let content = words(message.content).ok_or_else(|| format!("must have text as the content of message {at}"))?;
    Ok((id, content))
}

/// A content that is text: a string, or parts that are all text. `null` is an empty one.
fn words(raw: Option<&RawValue>) -> Option<String> {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return Some(String::new()) };
    if let Ok(text) = parse::<String>(raw.get()) {
        return Some(text);
    }
    let all: Vec<Part> = parse(raw.get()).ok()?;
    all.iter().all(|part| part.r#type == "text" && part.text.is_some()).then(|| joined(all))
}

/// The text among a content's parts.
fn parts(raw: &RawValue) -> Option<String> {
    parse(raw.get()).ok().map(joined)
}

fn joined(parts: Vec<Part>) -> String {
    let texts = parts.into_iter().filter(|part| part.r#type == "text").filter_map(|part| part.text);
    texts.collect::<Vec<_>>().join("\n")
}

/// The results by the calls' own ids, and their conversation.
fn called(
    sent: Vec<(String, String)>,
    key: Option<ConversationId>,
) -> Result<(Vec<ClientResult>, ConversationId), String> {
    let mut of = key.clone();
    let mut results = Vec::with_capacity(sent.len());
    let mut seen = BTreeSet::new();
    for (id, content) in sent {
        let call = match &key {
            Some(_) => id.clone(),
            None => {
                let read = call_ids::read(&id);
                let (conversation, call) = read.ok_or_else(|| format!("must answer calls of this server, not {id}"))?;
                if of.get_or_insert_with(|| conversation.clone()) != &conversation {
                    return Err("must answer calls of one answer".to_owned());
                }
                call.to_owned()
            }
        };
        if !seen.insert(call.clone()) {
            return Err(format!("must answer {id} once"));
        }
        results.push(ClientResult { call, content, is_error: false });
    }
    let conversation = of.ok_or("must answer a call")?;
    Ok((results, conversation))
}

/// The newest messages that have at most `max_bytes` together; 0 means all.
fn bounded(mut earlier: Vec<ClientMessage>, max_bytes: usize) -> Vec<ClientMessage> {
    let mut bytes = 0_usize;
    let fitting = earlier.iter().rev().take_while(|message| {
        let (ClientMessage::User(text) | ClientMessage::Assistant(text)) = message;
        bytes = bytes.saturating_add(text.len());
        max_bytes == 0 || bytes <= max_bytes
    });
    let fitting = fitting.count();
    earlier.split_off(earlier.len() - fitting)
}

/// The conversation that `metadata` names; other metadata is the client's own business.
fn named(raw: Option<&RawValue>, errors: &mut Vec<FieldError>) -> Key {
    let metadata = raw.and_then(json::fields::<Metadata<'_>>);
    let id: Option<String> = metadata
        .and_then(|metadata| json::optional(metadata.conversation_id, "metadata.conversation_id", "a string", errors));
    match id.as_deref().map(ConversationId::parse) {
        None => Key::None,
        Some(Ok(conversation)) => Key::Conversation(conversation),
        Some(Err(error)) => {
            errors.push(FieldError { field: "metadata.conversation_id", reason: error.to_string() });
            Key::None
        }
    }
}

/// The client's wishes for the model. Clients send these whether a user chose them or not, so a value that is out of
/// bounds is no wish.
fn wish(body: &Body<'_>, errors: &mut Vec<FieldError>) -> ModelWish {
    let temperature: Option<f64> = json::optional(body.temperature, "temperature", "a number", errors);
    let old: Option<i64> = json::optional(body.max_tokens, "max_tokens", "a whole number", errors);
    let new = json::optional(body.max_completion_tokens, "max_completion_tokens", "a whole number", errors);
    let effort: Option<String> = json::optional(body.reasoning_effort, "reasoning_effort", "a string", errors);
    let effort = effort.and_then(|name| match name.as_str() {
        "minimal" => Some(Effort::Low),
        "xhigh" => Some(Effort::Max),
        name => Effort::parse(name),
    });
    let max_tokens = new.or(old).filter(|tokens| *tokens > 0);
    ModelWish {
        workload: None,
        name: None,
        max_tokens: max_tokens.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX)),
        temperature: temperature.filter(|temperature| (0.0..=2.0).contains(temperature)),
        effort,
    }
}
