//! Request bodies. A client's account of earlier messages is not taken: the thread is the server's. Of the messages
//! only the newest counts, and of older ones the ids, which give the position of an edited message.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::ui_message::{Answered, Head, News, news, object, said};
use super::{AiSdk, Query, Version};
use crate::bounded::json::parse;
use crate::chat::approval::Deciding;
use crate::chat::ids::{ConversationId, MessageId};
use crate::chat::input::{Parent, RunOptions};
use crate::dialect::agent_chat::AgentChat;
use crate::dialect::asked::{BranchPoint, Edited};
use crate::dialect::client_tools::{self, DeclaredTool};
use crate::dialect::given::{Ask, ClientResult, Content};
use crate::dialect::told::fits;
use crate::dialect::{DecodeError, FieldError, json};

/// 32 decisions in a request: more than a person has made since the last one.
const MAX_DECISIONS: usize = 32;

/// The mistake of an id that is not ours, where no message before it gives its position.
const UNKNOWN_POSITION: &str = "names a message whose place in the conversation is not known here";

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// The task.
    pub what: What,
    /// The client's chat, which is our conversation.
    pub conversation: ConversationId,
    /// Which assistant answers; `None` where the request does not say.
    pub context_type: Option<String>,
    /// The chunks that the client knows.
    pub version: Version,
    /// The client's message that the answer goes on with; `None` begins a new one.
    pub continues: Option<String>,
    /// How to run it.
    pub options: RunOptions,
}

/// The task.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// An answer.
    Answer {
        /// Results of the page's own tools that come before the question.
        results: Vec<ClientResult>,
        /// To what.
        ask: Ask,
        /// Where it stands.
        from: BranchPoint,
    },
    /// That calls which wait are decided, one after the other.
    Decide(Vec<Deciding>),
}

/// The body; unknown keys are ignored.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UiMessageRequest)]
pub struct Body<'a> {
    /// The chat: our conversation.
    #[serde(borrow)]
    #[schema(value_type = String, example = "chat-1")]
    id: Option<&'a RawValue>,
    /// The chat as the client knows it; only its newest message is read.
    #[serde(borrow)]
    #[schema(value_type = Option<Vec<Object>>, example = json!([{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Hello"}]}]))]
    messages: Option<&'a RawValue>,
    /// The newest message alone.
    #[serde(borrow)]
    #[schema(value_type = Option<Object>)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    trigger: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    message_id: Option<&'a RawValue>,
    /// The rest are keys that a page adds for us.
    /// The client's major version.
    #[serde(borrow)]
    #[schema(value_type = Option<Value>)]
    sdk: Option<&'a RawValue>,
    /// Which profile answers.
    #[serde(borrow, rename = "context_type")]
    #[schema(value_type = Option<String>, example = "workflow")]
    context_type: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = Option<Value>)]
    tools: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = Option<Value>)]
    decision: Option<&'a RawValue>,
}

/// See [`AiSdk::parse`]. Where they are `unawaited`, results before a message are passed over.
pub(super) fn read(limits: &AiSdk, query: &Query, body: &[u8], unawaited: bool) -> Result<Read, DecodeError> {
    let text = json::object(body)?;
    let parsed: Body<'_> = parse(text).map_err(|error| DecodeError::NotJson(error.to_string()))?;
    // `context`, `model`, `background` and `on_busy` are those of the native protocol.
    let native = AgentChat { max_message_bytes: 0, max_context_bytes: limits.max_context_bytes };
    let (mut options, mut errors) = match native.decode_options(body) {
        Ok(options) => (options, Vec::new()),
        Err(DecodeError::Fields(errors)) => (RunOptions::default(), errors),
        Err(error) => return Err(error),
    };
    let id = json::required_text(parsed.id, "id", &mut errors);
    let conversation = id.and_then(|id| {
        let parsed = ConversationId::parse(&id);
        parsed.map_err(|error| errors.push(FieldError { field: "id", reason: error.to_string() })).ok()
    });
    let context_type = context_type(query, parsed.context_type, &mut errors);
    let version = version(limits, query, parsed.sdk).unwrap_or_else(|error| {
        if let DecodeError::Fields(wrong) = error {
            errors.extend(wrong);
        }
        limits.version
    });
    options.client_tools = client_tools::read_named(parsed.tools, tool, &mut errors)?;
    options.details = true;
    // useChat sends nothing while it reads an answer, and its `stop()` does no more than to read no further.
    options.stops_unread = true;
    let wanted = wanted(limits, &parsed, unawaited, &mut errors)?;
    match (wanted, conversation) {
        (Some((what, continues)), Some(conversation)) if errors.is_empty() => {
            Ok(Read { what, conversation, context_type, version, continues, options })
        }
        _ => Err(DecodeError::Fields(errors)),
    }
}

pub(super) fn version(limits: &AiSdk, query: &Query, raw: Option<&RawValue>) -> Result<Version, DecodeError> {
    let named = query.sdk.as_deref().or(json::given(raw).map(|raw| raw.get().trim_matches('"')));
    match named.filter(|named| !named.is_empty()) {
        None => Ok(limits.version),
        Some(named) => Version::parse(named).ok_or_else(|| {
            DecodeError::Fields(vec![FieldError { field: "sdk", reason: "must be 5, 6 or 7".to_owned() }])
        }),
    }
}

fn context_type(query: &Query, raw: Option<&RawValue>, errors: &mut Vec<FieldError>) -> Option<String> {
    let named = query.context_type.as_ref().or(query.profile.as_ref()).filter(|named| !named.is_empty());
    named.cloned().or_else(|| json::optional(raw, "context_type", "a string", errors))
}

/// The task, and the message that the answer goes on with; `None` where `errors` say why not.
fn wanted(
    limits: &AiSdk,
    body: &Body<'_>,
    unawaited: bool,
    errors: &mut Vec<FieldError>,
) -> Result<Option<(What, Option<String>)>, DecodeError> {
    let trigger: Option<String> = json::optional(body.trigger, "trigger", "a string", errors);
    let message_id: Option<String> = json::optional(body.message_id, "messageId", "a string", errors);
    match trigger.as_deref() {
        None | Some("submit-message") => {}
        Some("regenerate-message") => {
            let Some(from) = again(body, message_id.as_deref()) else {
                errors.push(FieldError { field: "messageId", reason: UNKNOWN_POSITION.to_owned() });
                return Ok(None);
            };
            return Ok(Some((What::Answer { results: Vec::new(), ask: Ask::Again, from }, None)));
        }
        Some(_) => {
            let reason = "must be submit-message or regenerate-message".to_owned();
            errors.push(FieldError { field: "trigger", reason });
        }
    }
    let Some(newest) = newest(body, message_id.as_deref(), errors) else { return Ok(None) };
    let Newest { field, raw, head, before } = newest;
    let mut refuse = |reason: String| errors.push(FieldError { field, reason });
    match head.role.as_str() {
        "user" => {
            // One that is edited stands behind what was heard.
            let behind = before.as_deref().filter(|_| message_id.is_none() && !unawaited);
            let behind = behind.unwrap_or_default();
            let new = said(raw).and_then(|said| Ok((unheard(behind, limits.max_context_bytes)?, said)));
            let (results, Content { text, files }) = match new {
                Ok(((results, mut texts), said)) => {
                    texts.push(said);
                    (results, Content::of_all(texts))
                }
                Err(reason) => {
                    refuse(reason);
                    return Ok(None);
                }
            };
            fits(field, &text, limits.max_message_bytes)?;
            let from = match &message_id {
                None => Some(BranchPoint::Newest),
                Some(id) => edited(id, before).map(BranchPoint::Edited),
            };
            let Some(from) = from else {
                errors.push(FieldError { field: "messageId", reason: UNKNOWN_POSITION.to_owned() });
                return Ok(None);
            };
            Ok(Some((What::Answer { results, ask: Ask::Message { text, note: None, files }, from }, None)))
        }
        "assistant" => {
            let what = match going_on(limits, body, raw) {
                Ok(what) => what,
                Err((of, reason)) => {
                    errors.push(FieldError { field: of.unwrap_or(field), reason });
                    return Ok(None);
                }
            };
            if head.id.is_none() {
                refuse("must have an id where it is an answer that goes on".to_owned());
            }
            Ok(head.id.map(|id| (what, Some(id))))
        }
        _ => {
            refuse("must end with a message of the user's, or with an answer that goes on".to_owned());
            Ok(None)
        }
    }
}

/// The results of the page's own tools in the answer before a message of the user, and what else the user has said behind it, if
/// there are some: nobody has heard of either.
///
/// # Errors
/// The mistake in that answer.
fn unheard(before: &[&RawValue], max_result_bytes: usize) -> Result<(Vec<ClientResult>, Vec<Content>), String> {
    let role = |raw: &RawValue| Head::read(raw).map(|head| head.role);
    let Some(at) = before.iter().rposition(|raw| role(raw).is_some_and(|role| role == "assistant")) else {
        return Ok(Default::default());
    };
    let (Some(answer), Some(behind)) = (before.get(at), before.get(at + 1..)) else { return Ok(Default::default()) };
    let News { results, .. } =
        news(answer, max_result_bytes).map_err(|reason| format!("follows an answer that {reason}"))?;
    if results.is_empty() {
        return Ok(Default::default());
    }
    let texts = behind.iter().filter(|raw| role(raw).is_some_and(|role| role == "user"));
    Ok((results, texts.map(|raw| said(raw)).collect::<Result<_, _>>()?))
}

/// The message that a request is about.
struct Newest<'a> {
    /// The key that has it.
    field: &'static str,
    raw: &'a RawValue,
    head: Head,
    /// Those before it; `None` where they are not sent.
    before: Option<Vec<&'a RawValue>>,
}

/// The message that is named, else the last one.
fn newest<'a>(body: &Body<'a>, named: Option<&str>, errors: &mut Vec<FieldError>) -> Option<Newest<'a>> {
    let expected = "must have an id, a role and parts";
    if let (None, Some(raw)) = (json::given(body.messages), json::given(body.message)) {
        let Some(head) = Head::read(raw) else {
            errors.push(FieldError { field: "message", reason: expected.to_owned() });
            return None;
        };
        return Some(Newest { field: "message", raw, head, before: None });
    }
    let field = "messages";
    if json::given(body.messages).is_none() {
        errors.push(FieldError { field, reason: "is required and must not be empty".to_owned() });
    }
    let mut messages: Vec<&RawValue> = json::optional(body.messages, field, "a list of messages", errors)?;
    let is_named = |raw: &&RawValue| Head::read(raw).is_some_and(|head| head.id.as_deref() == named);
    let at = named.and_then(|_| messages.iter().rposition(is_named));
    messages.truncate(at.map_or(messages.len(), |at| at + 1));
    let Some(raw) = messages.pop() else {
        errors.push(FieldError { field, reason: "must have a message".to_owned() });
        return None;
    };
    let Some(head) = Head::read(raw) else {
        errors.push(FieldError { field, reason: format!("the newest one {expected}") });
        return None;
    };
    Some(Newest { field, raw, head, before: Some(messages) })
}

/// The question to be answered again; `None` where it is not known. Clients cut `messages` behind that question.
fn again(body: &Body<'_>, message_id: Option<&str>) -> Option<BranchPoint> {
    let Some(id) = message_id else { return Some(BranchPoint::Newest) };
    if let Ok(MessageId { run, .. }) = MessageId::parse(id) {
        // Whatever the run has answered by then, its question is there.
        return Some(BranchPoint::At(Parent::Message(MessageId { run, seq: 0 })));
    }
    let mut before: Vec<&RawValue> = parse(json::given(body.messages)?.get()).ok()?;
    let question = Head::read(before.pop()?).filter(|head| head.role == "user")?;
    edited(question.id.as_deref().unwrap_or_default(), Some(before)).map(BranchPoint::Again)
}

/// Which message `id` is: one of ours, or one behind an answer that has an id of ours.
fn edited(id: &str, before: Option<Vec<&RawValue>>) -> Option<Edited> {
    if let Ok(id) = MessageId::parse(id) {
        return Some(Edited::Message(id));
    }
    let mut heads = before?.into_iter().rev().filter_map(Head::read);
    match heads.find(|head| head.role != "system") {
        None => Some(Edited::First),
        Some(head) => MessageId::parse(head.id.as_deref()?).ok().map(Edited::After),
    }
}

/// The input with which an answer goes on: a decision, or results of the page's own tools.
fn going_on(limits: &AiSdk, body: &Body<'_>, raw: &RawValue) -> Result<What, (Option<&'static str>, String)> {
    if let Some(decision) = json::given(body.decision) {
        let decision = Answered::read(decision).map_err(|reason| (Some("decision"), reason))?;
        return Ok(What::Decide(vec![decision]));
    }
    let News { left, decisions, results } = news(raw, limits.max_context_bytes).map_err(|reason| (None, reason))?;
    if decisions.is_empty() && !results.is_empty() {
        return Ok(What::Answer { results: Vec::new(), ask: Ask::Results(results), from: BranchPoint::Newest });
    }
    let decisions: Vec<Deciding> = left.into_iter().chain(decisions).collect();
    match decisions.len() {
        0 => Err((None, "ends with an answer to which nothing was added".to_owned())),
        1..=MAX_DECISIONS => Ok(What::Decide(decisions)),
        _ => Err((None, format!("has more than {MAX_DECISIONS} decisions"))),
    }
}

/// A tool that the page runs itself. The schema of its arguments has the name that the SDK gives it, or the one that
/// models do.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    name: Option<String>,
    description: Option<String>,
    input_schema: Option<Map<String, Value>>,
    parameters: Option<Map<String, Value>>,
}

/// The tool `raw`; `named` is the name under which it stands, where the tools are an object.
fn tool(named: Option<String>, raw: &RawValue) -> Result<DeclaredTool, &'static str> {
    const SHAPE: &str = "must have a name, and inputSchema or parameters, an object, and may have a description";
    let Tool { name, description, input_schema, parameters } = object(raw).ok_or(SHAPE)?;
    let (Some(name), Some(schema)) = (named.or(name), input_schema.or(parameters)) else { return Err(SHAPE) };
    Ok(DeclaredTool { name, description, schema: Some(Value::Object(schema)) })
}
