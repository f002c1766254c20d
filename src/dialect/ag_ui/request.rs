//! `RunAgentInput`: a client's request. Clients send the whole thread as they know it; the server's own is the true
//! one, so only the newest words of it are read.

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::super::client_tools::{self, DeclaredTool};
use super::super::{DecodeError, json};
use super::resume::{Answered, resume};
use super::{AgUi, Asker, Errors, Version, refuse};
use crate::bounded::json::{Tree, fits, parse};
use crate::chat::ids::{ConversationId, MessageId, RunId};
use crate::chat::input::RunOptions;
use crate::chat::screen::ScreenState;
use crate::chat::tool::ToolChoice;
use crate::dialect::given::{Ask, ClientMessage, ClientResult, Content, content};
use crate::dialect::told;

/// The parts of a content that are text.
const TEXT: [&str; 1] = ["text"];

/// The longest id that a client gives a message, in bytes; a longer one is none.
const ID_BYTES: usize = 256;

/// The longest name that a client gives its run, in bytes.
const RUN_BYTES: usize = 256;

/// The tool by which CopilotKit's client hears what its user could say next. It asks beside the thread, in one of its own each time,
/// and tells the true one.
const SUGGEST: &str = "copilotkitSuggest";

/// 64 KiB of a thread are told for suggestions, its end.
const TOLD_BYTES: usize = 64 << 10;

/// The most results of one request, far more than a model calls tools at once.
const MOST_RESULTS: usize = 128;

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// The client.
    pub asker: Asker,
    /// Decisions on the calls that wait; empty where the request answers none.
    pub resume: Vec<Answered>,
    /// Results of the client's tools that come before a message.
    pub results: Vec<ClientResult>,
    /// The question. `None` only of a request that decides calls and has no new message.
    pub ask: Option<Ask>,
    /// The message of ours whose id the newest one has: it is answered again, or replaced.
    pub replaces: Option<MessageId>,
    /// What was said in the client's thread, where it asks beside it.
    pub beside: Option<Vec<ClientMessage>>,
    /// How.
    pub options: RunOptions,
}

/// The body; unknown keys are ignored.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RunAgentInput)]
pub struct Body<'a> {
    /// Our conversation.
    #[serde(borrow)]
    #[schema(value_type = String, example = "thread-1")]
    thread_id: Option<&'a RawValue>,
    /// The client's own name for the run.
    #[serde(borrow)]
    #[schema(value_type = String, example = "run-1")]
    run_id: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    protocol_version: Option<&'a RawValue>,
    /// The thread as the client knows it; only its newest words are read.
    #[serde(borrow)]
    #[schema(value_type = Vec<Object>, example = json!([{"id": "m1", "role": "user", "content": "Hello"}]))]
    messages: Option<&'a RawValue>,
    /// Tools that the client runs.
    #[serde(borrow)]
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = Option<Value>)]
    state: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = Option<Value>)]
    context: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = Option<Value>)]
    forwarded_props: Option<&'a RawValue>,
    /// Answers to the interrupts of the thread.
    #[serde(borrow)]
    #[schema(value_type = Option<Vec<Object>>)]
    resume: Option<&'a RawValue>,
}

/// A message of the client's thread, as far as it is looked at.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    id: Option<String>,
    role: String,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    tool_call_id: Option<String>,
    error: Option<String>,
}

/// A tool of the client; unknown keys are ignored.
#[derive(Deserialize)]
struct Tool {
    name: String,
    description: Option<String>,
    parameters: Option<Tree>,
}

fn body(bytes: &[u8]) -> Result<Body<'_>, DecodeError> {
    parse(json::object(bytes)?).map_err(|error| DecodeError::NotJson(error.to_string()))
}

/// See [`AgUi::decode_asker`].
pub(super) fn decode_asker(bytes: &[u8]) -> Result<Asker, DecodeError> {
    let mut errors = Vec::new();
    asker(&body(bytes)?, &mut errors).filter(|_| errors.is_empty()).ok_or(DecodeError::Fields(errors))
}

/// See [`AgUi::parse`]. Where they are `unawaited`, results before a message are passed over.
pub(super) fn read(limits: &AgUi, bytes: &[u8], unawaited: bool) -> Result<Read, DecodeError> {
    let body = body(bytes)?;
    let mut errors = Vec::new();
    let asker = asker(&body, &mut errors);
    let resume = resume(body.resume, &mut errors);
    let client_tools = client_tools::read(body.tools, tool, &mut errors)?;
    let context = context(limits, &body, &mut errors)?;
    let newest = newest(limits, body.messages, (!resume.is_empty(), unawaited), &mut errors)?;
    let Newest { results, ask, id } = newest.unwrap_or_default();
    let (replaces, asked_as) = match id {
        Some(MessageName::Ours(id)) => (Some(id), None),
        Some(MessageName::Theirs(id)) => (None, Some(id)),
        None => (None, None),
    };
    let (Some(asker), true) = (asker, errors.is_empty()) else { return Err(DecodeError::Fields(errors)) };
    let suggests = matches!(&client_tools[..], [tool] if tool.name == SUGGEST);
    let beside = suggests.then(|| told_before(body.messages));
    let tool_choice = if suggests { ToolChoice::Named(SUGGEST.to_owned()) } else { ToolChoice::Auto };
    let options = RunOptions {
        context,
        details: true,
        client_tools,
        tool_choice,
        may_pause: true,
        asked_as,
        ..RunOptions::default()
    };
    Ok(Read { asker, resume, results, ask, replaces, beside, options })
}

/// What the user and the assistant have said before the user's last message, its end.
fn told_before(raw: Option<&RawValue>) -> Vec<ClientMessage> {
    let messages: Vec<&RawValue> = raw.and_then(|raw| parse(raw.get()).ok()).unwrap_or_default();
    let mut messages: Vec<Message<'_>> = messages.into_iter().filter_map(|raw| parse(raw.get()).ok()).collect();
    messages.truncate(messages.iter().rposition(|message| message.role == "user").unwrap_or_default());
    let told = messages.into_iter().filter_map(|message| match message.role.as_str() {
        "user" => Content { files: Vec::new(), ..told::content_in(message.content, &TEXT) }.of_user(),
        "assistant" => {
            let text = told::text_in(message.content, &TEXT).filter(|text| !text.trim().is_empty());
            text.map(ClientMessage::Assistant)
        }
        _ => None,
    });
    told::bounded(told.collect(), TOLD_BYTES)
}

fn tool(raw: &RawValue) -> Result<DeclaredTool, &'static str> {
    let tool: Result<Tool, _> = parse(raw.get());
    let Tool { name, description, parameters } =
        tool.map_err(|_| "must have a name and may have a description, both texts, and parameters, an object")?;
    Ok(DeclaredTool { name, description, schema: parameters.map(|Tree(schema)| schema) })
}

fn asker(body: &Body<'_>, errors: &mut Errors) -> Option<Asker> {
    let thread = json::required_text(body.thread_id, "threadId", errors)
        .and_then(|id| ConversationId::parse(&id).map_err(|error| refuse(errors, "threadId", error.to_string())).ok());
    let run = json::required_text(body.run_id, "runId", errors);
    if run.as_ref().is_some_and(|run| run.len() > RUN_BYTES) {
        refuse(errors, "runId", format!("must be at most {RUN_BYTES} bytes"));
    }
    let version: Option<String> = json::optional(body.protocol_version, "protocolVersion", "a string", errors);
    // Versions before 1.0 did not say theirs.
    let version = if version.is_some() { Version::V1 } else { Version::Before1 };
    Some(Asker { thread: thread?, run: run?, version })
}

/// The client's state besides the thread: data, never instructions.
fn context(limits: &AgUi, body: &Body<'_>, errors: &mut Errors) -> Result<Option<ScreenState>, DecodeError> {
    let given = |raw: Option<&'_ RawValue>| raw.is_some_and(|raw| !matches!(raw.get(), "null" | "{}" | "[]" | r#""""#));
    let fields = [("state", body.state), ("context", body.context), ("forwardedProps", body.forwarded_props)];
    let fields: Vec<(&str, &RawValue)> =
        fields.into_iter().filter(|(_, raw)| given(*raw)).filter_map(|(name, raw)| Some((name, raw?))).collect();
    let bytes: usize = fields.iter().map(|(_, raw)| raw.get().len()).sum();
    if limits.max_context_bytes != 0 && bytes > limits.max_context_bytes {
        let field = "state, context and forwardedProps together";
        return Err(DecodeError::TooLarge { field, max_bytes: limits.max_context_bytes });
    }
    if fields.iter().any(|(name, raw)| *name == "context" && !raw.get().starts_with('[')) {
        refuse(errors, "context", "must be a list of objects with description and value");
    }
    let state = ScreenState::of_fields(fields);
    if let Some(Err(error)) = state.as_ref().map(|state| fits(state.as_str(), 1)) {
        refuse(errors, "state", format!("must be smaller, with context and forwardedProps: {error}"));
    }
    Ok(state)
}

/// The id of a message of the user's.
enum MessageName {
    /// One that we gave it.
    Ours(MessageId),
    /// The client's own.
    Theirs(String),
}

impl MessageName {
    /// The id in `text`; `None` where it is too long to be kept, or empty.
    fn read(text: &str) -> Option<Self> {
        match MessageId::parse(text) {
            Ok(id) => Some(Self::Ours(id)),
            Err(_) => (1..=ID_BYTES).contains(&text.len()).then(|| Self::Theirs(text.to_owned())),
        }
    }
}

/// What is new in the thread.
#[derive(Default)]
struct Newest {
    /// Results before the question.
    results: Vec<ClientResult>,
    ask: Option<Ask>,
    /// The id of its message.
    id: Option<MessageName>,
}

/// The question of the newest messages, and the id of its message. With `decides`, there need not be
/// one: then results are those that some clients write for the calls they decide, and a message of the user counts only
/// if it is new.
fn newest(
    limits: &AgUi,
    raw: Option<&RawValue>,
    (decides, unawaited): (bool, bool),
    errors: &mut Errors,
) -> Result<Option<Newest>, DecodeError> {
    let messages: Option<Vec<&RawValue>> = match raw {
        Some(raw) => parse(raw.get()).ok(),
        None => None,
    };
    let Some(messages) = messages else {
        refuse(errors, "messages", "is required and must be a list");
        return Ok(None);
    };
    let mut results = Vec::new();
    let mut ours = false;
    for (at, raw) in messages.iter().enumerate().rev() {
        let Ok(message) = parse::<Message<'_>>(raw.get()) else {
            refuse(errors, "messages", format!("[{at}] must be an object with a role"));
            return Ok(None);
        };
        match message.role.as_str() {
            // Not for us to follow, or the client's own.
            "system" | "developer" | "activity" | "reasoning" => {}
            "tool" if decides || is_our_result(message.id.as_deref()) => ours = true,
            "tool" => match result(message) {
                Ok(result) => results.push(result),
                Err(reason) => {
                    refuse(errors, "messages", format!("[{at}] {reason}"));
                    return Ok(None);
                }
            },
            "user" if results.is_empty() && !ours => {
                let name = message.id.as_deref().and_then(MessageName::read);
                if decides && matches!(name, Some(MessageName::Ours(_))) {
                    return Ok(None);
                }
                let Some(said) = user(limits, at, message, errors)? else { return Ok(None) };
                let replaces = matches!(name, Some(MessageName::Ours(_)));
                let before =
                    if decides || replaces || unawaited { &[] } else { messages.get(..at).unwrap_or_default() };
                let (results, mut texts) = unheard(limits, before, errors)?;
                texts.push(said);
                let Content { text, files } = Content::of_all(texts);
                fits_message(limits, &text)?;
                return Ok(Some(Newest { results, ask: Some(Ask::Message { text, note: None, files }), id: name }));
            }
            "user" | "assistant" => break,
            other => {
                let role: String = other.chars().take(40).collect();
                refuse(errors, "messages", format!("[{at}] has the unknown role {role:?}"));
                return Ok(None);
            }
        }
    }
    if decides {
        return Ok(None);
    }
    if results.is_empty() {
        refuse(errors, "messages", "must end with a message of the user, or with results of the client's tools");
        return Ok(None);
    }
    results.reverse();
    all_fit(limits, &results, errors)?;
    Ok(Some(Newest { ask: Some(Ask::Results(results)), ..Newest::default() }))
}

/// The results between the last thing that the assistant said and a message of the user, and what else the user has said behind
/// them: nobody has heard of either.
fn unheard(
    limits: &AgUi,
    before: &[&RawValue],
    errors: &mut Errors,
) -> Result<(Vec<ClientResult>, Vec<Content>), DecodeError> {
    let (mut results, mut said) = (Vec::new(), Vec::new());
    for (at, raw) in before.iter().enumerate().rev() {
        let Ok(message) = parse::<Message<'_>>(raw.get()) else { break };
        match message.role.as_str() {
            "system" | "developer" | "activity" | "reasoning" => {}
            "tool" if is_our_result(message.id.as_deref()) => {}
            "tool" => match result(message) {
                Ok(result) => results.push(result),
                Err(reason) => refuse(errors, "messages", format!("[{at}] {reason}")),
            },
            "user" if results.is_empty() => said.push((at, message)),
            _ => break,
        }
    }
    if results.is_empty() {
        return Ok(Default::default());
    }
    results.reverse();
    all_fit(limits, &results, errors)?;
    let mut texts = Vec::new();
    for (at, message) in said.into_iter().rev() {
        texts.extend(user(limits, at, message, errors)?);
    }
    Ok((results, texts))
}

fn all_fit(limits: &AgUi, results: &[ClientResult], errors: &mut Errors) -> Result<(), DecodeError> {
    if results.len() > MOST_RESULTS {
        refuse(errors, "messages", format!("must end with at most {MOST_RESULTS} results"));
    }
    let bytes: usize = results.iter().map(|result| result.content.len()).sum();
    if limits.max_context_bytes != 0 && bytes > limits.max_context_bytes {
        let field = "the results of tools in messages together";
        return Err(DecodeError::TooLarge { field, max_bytes: limits.max_context_bytes });
    }
    Ok(())
}

/// Whether the id is one that we gave to a result, in a run or a snapshot: the server has sent it itself.
fn is_our_result(id: Option<&str>) -> bool {
    let parts = id.and_then(|id| id.rsplit_once(".r"));
    parts.is_some_and(|(run, number)| {
        RunId::parse(run).is_ok() && number.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    })
}

fn user(limits: &AgUi, at: usize, message: Message<'_>, errors: &mut Errors) -> Result<Option<Content>, DecodeError> {
    let said = match content(json::given(message.content), &TEXT) {
        Ok(said) => said,
        Err(reason) => {
            refuse(errors, "messages", format!("[{at}] {reason}"));
            return Ok(None);
        }
    };
    if said.text.trim().is_empty() && said.files.is_empty() {
        refuse(errors, "messages", format!("[{at}] must not be empty"));
        return Ok(None);
    }
    fits_message(limits, &said.text)?;
    Ok(Some(said))
}

fn fits_message(limits: &AgUi, text: &str) -> Result<(), DecodeError> {
    told::fits("the newest message in messages", text, limits.max_message_bytes)
}

fn result(message: Message<'_>) -> Result<ClientResult, String> {
    let call = message.tool_call_id.filter(|id| !id.is_empty()).ok_or("must have a toolCallId")?;
    let Content { text: content, files } = content(json::given(message.content), &TEXT)?;
    let error = message.error.filter(|error| !error.is_empty());
    let is_error = error.is_some();
    let content = match error {
        Some(error) if content.trim().is_empty() => error,
        Some(_) | None => content,
    };
    Ok(ClientResult { call, content, files, is_error, said: None })
}
