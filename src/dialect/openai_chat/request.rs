//! The request body of `POST /v1/chat/completions`. Its clients send many fields that only a model service knows;
//! what is not named here is accepted and ignored.
//!
//! **Invariant:** what a client tells of a conversation is text of a user and of an assistant, and calls with their results,
//! which count for tools of its own alone. Its system messages are kept apart: they count where the profile takes them.

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{Key, format, tasks, tools};
use crate::bounded::json::parse;
use crate::chat::answer_format::AnswerFormat;
use crate::chat::ids::ConversationId;
use crate::chat::input::{RunOptions, Screen};
use crate::chat::model::ModelWish;
use crate::dialect::given::{Ask, ClientMessage, ClientResult, Content, RunInput, content, say_beside};
use crate::dialect::ignored::Ignored;
use crate::dialect::json::Members;
use crate::dialect::told::{
    Limits, ToldTurn, Unawaited, as_question, bounded, content_in, effort as told_effort, fits, go_on, text_in,
};
use crate::dialect::{DecodeError, FieldError, call_ids, json};

/// The parts of a content that are text.
const TEXT: [&str; 1] = ["text"];

/// What the messages must be.
const LIST: &str = "a list of messages";

/// How they must end.
const END: &str = "must end with a message of the user, or with results of tools";

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// Results of the client's tools that come before the question, where somebody waits for them.
    pub results: Vec<ClientResult>,
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
    /// The client's own instructions for the model.
    pub instructions: Vec<String>,
    /// What it asks for that is nobody's here.
    pub ignored: Ignored,
}

/// The body; what is not named here is accepted and ignored.
#[derive(ToSchema)]
#[schema(as = OpenAiRequest)]
pub struct Body<'a> {
    /// A profile's `context_type`.
    #[schema(value_type = String, example = "workflow")]
    model: Option<&'a RawValue>,
    /// The conversation so far. It ends with a message of the user, or with results of tools.
    #[schema(value_type = Vec<Message<'a>>, example = json!([{"role": "user", "content": "What does this workflow do?"}]))]
    messages: Option<&'a RawValue>,
    /// Whether the answer is a stream.
    #[schema(value_type = Option<bool>)]
    stream: Option<&'a RawValue>,
    #[schema(value_type = Option<Object>)]
    stream_options: Option<&'a RawValue>,
    /// 1: there is one answer.
    #[schema(value_type = Option<u64>)]
    n: Option<&'a RawValue>,
    /// Tools that the client runs.
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<&'a RawValue>,
    /// Whether one of them has to be called: `auto`, `none`, `required`, or the name of one.
    #[schema(value_type = Option<Value>)]
    tool_choice: Option<&'a RawValue>,
    /// The form of the answer: `text`, `json_object` or `json_schema`.
    #[schema(value_type = Option<Object>)]
    response_format: Option<&'a RawValue>,
    #[schema(value_type = Option<f64>)]
    temperature: Option<&'a RawValue>,
    #[schema(value_type = Option<i64>)]
    max_tokens: Option<&'a RawValue>,
    #[schema(value_type = Option<i64>)]
    max_completion_tokens: Option<&'a RawValue>,
    #[schema(value_type = Option<String>)]
    reasoning_effort: Option<&'a RawValue>,
    /// `conversation_id` names the conversation.
    #[schema(value_type = Option<Object>)]
    metadata: Option<&'a RawValue>,
}

impl<'a> Body<'a> {
    fn of(members: &Members<'a>) -> Self {
        Self {
            model: members.get("model"),
            messages: members.get("messages"),
            stream: members.get("stream"),
            stream_options: members.get("stream_options"),
            n: members.get("n"),
            tools: members.get("tools"),
            tool_choice: members.get("tool_choice"),
            response_format: members.get("response_format"),
            temperature: members.get("temperature"),
            max_tokens: members.get("max_tokens"),
            max_completion_tokens: members.get("max_completion_tokens"),
            reasoning_effort: members.get("reasoning_effort"),
            metadata: members.get("metadata"),
        }
    }
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
    /// The calls of an assistant's message.
    #[serde(borrow)]
    #[schema(value_type = Option<Vec<Object>>)]
    tool_calls: Option<&'a RawValue>,
}

/// A call that a client tells of.
#[derive(Deserialize)]
struct Call {
    id: String,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: String,
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
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    conversation_id: Option<&'a RawValue>,
}

/// The request in `body`. Results at its end that nobody waits for are told, where the profile believes them and no conversation
/// is named.
pub(super) fn read(limits: &Limits, body: &[u8], key: Key, results: Unawaited<'_>) -> Result<Read, DecodeError> {
    let text = json::object(body)?;
    let members = Members::of(text)?;
    let body = Body::of(&members);
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
    let mut ignored = Ignored::default();
    let brought = tools::tools(body.tools, &mut ignored, &mut errors)?;
    let (brought, tool_choice) = tools::choice(body.tool_choice, brought, &mut ignored, &mut errors);
    let answer_format = format::format(body.response_format, &mut errors)?;
    ignored.add_unknown(&members, &format::UNKNOWN);
    let unchecked = matches!(&answer_format, Some(AnswerFormat::Schema(schema)) if !schema.unchecked.is_empty());
    ignored.add_if(unchecked, "response_format.pattern");
    let model_wish = wish(&body, &mut ignored, &mut errors);
    let named = match key {
        Key::None => named(body.metadata, &mut errors),
        key @ (Key::Conversation(_) | Key::Chat(_)) => key,
    };
    let is_unawaited = |call: &str| matches!(named, Key::None) && results.has(model.as_deref(), call);
    // Results before a message that nobody waits for have no need of an answer.
    let is_asked = |call: &str| !results.all && (!matches!(named, Key::None) || call_ids::read(call).is_some());
    let sent = messages(body.messages, is_unawaited, is_asked, &mut errors);
    let (Some(model), Some(sent), true) = (model, sent, errors.is_empty()) else {
        return Err(DecodeError::Fields(errors));
    };
    let key = match named {
        Key::None => None,
        Key::Conversation(conversation) => Some(conversation),
        Key::Chat(conversation) => Some(conversation).filter(|_| !sent.is_task()),
    };
    let refuse = |reason: String| DecodeError::Fields(vec![FieldError { field: "messages", reason }]);
    let answered = |results: Vec<(String, Content)>, said: Option<Content>| {
        let mut results: Vec<ClientResult> = results.into_iter().map(client_result).collect();
        results.iter().try_for_each(|result| fits("messages", &result.content, limits.max_result_bytes))?;
        say_beside(&mut results, said);
        call_ids::answered(results, key.clone()).map_err(refuse)
    };
    let message = |Content { text, files }: Content| {
        fits("messages", &text, limits.max_message_bytes)?;
        Ok::<_, DecodeError>(Ask::Message { text, note: None, files })
    };
    let (results, ask, conversation) = match sent.newest {
        Newest::User(said) => (Vec::new(), message(said)?, key.clone()),
        Newest::Results(results) => {
            let (results, conversation) = answered(results, None)?;
            (Vec::new(), Ask::Results(results), Some(conversation))
        }
        Newest::Both(results, said) if key.is_none() => {
            fits("messages", &said.text, limits.max_message_bytes)?;
            // A run of its own for the results would call tools that its client never hears of.
            let (results, conversation) = answered(results, Some(said))?;
            (Vec::new(), Ask::Results(results), Some(conversation))
        }
        Newest::Both(results, said) => {
            let (results, conversation) = answered(results, None)?;
            (results, message(said)?, Some(conversation))
        }
    };
    let is_keyed = key.is_some();
    let is_told = conversation.is_none();
    let earlier = if is_told { bounded(sent.earlier, limits.max_history_bytes) } else { Vec::new() };
    let input = RunInput {
        ask,
        screen: Screen::Type(model.clone()),
        conversation,
        parent: None,
        earlier,
        unlisted: !is_keyed,
        options: RunOptions {
            model: model_wish,
            client_tools: brought.tools,
            tool_choice,
            answer_format,
            ..RunOptions::default()
        },
    };
    let include_usage = options.flatten().and_then(|options| options.include_usage).unwrap_or(false);
    Ok(Read { results, input, model, is_keyed, stream, include_usage, instructions: sent.instructions, ignored })
}

/// The client's messages of the conversation.
struct SentMessages {
    instructions: Vec<String>,
    earlier: Vec<ClientMessage>,
    newest: Newest,
}

enum Newest {
    /// The question.
    User(Content),
    /// Calls by the ids that the client knows, and their results.
    Results(Vec<(String, Content)>),
    /// The same, and the question behind them.
    Both(Vec<(String, Content)>, Content),
}

impl SentMessages {
    /// Whether a front end asks for something of its own about the chat, which is no part of it.
    fn is_task(&self) -> bool {
        match &self.newest {
            Newest::User(Content { text, .. }) => {
                self.earlier.is_empty()
                    && (self.instructions.iter().any(|text| tasks::is_own_instruction(text)) || tasks::is_task(text))
            }
            Newest::Results(_) | Newest::Both(..) => false,
        }
    }
}

/// The messages in `raw`. Where `is_unawaited` finds the call of a result at their end, those are told with all else, and so are
/// those before a message unless `is_asked` finds the calls of all of them.
fn messages(
    raw: Option<&RawValue>,
    is_unawaited: impl Fn(&str) -> bool,
    is_asked: impl Fn(&str) -> bool,
    errors: &mut Vec<FieldError>,
) -> Option<SentMessages> {
    let mut refuse = |reason: String| -> Option<SentMessages> {
        errors.push(FieldError { field: "messages", reason });
        None
    };
    let list = match raw.map(|raw| json::objects::<Message<'_>>(raw, LIST)) {
        Some(Ok(list)) => list,
        Some(Err(reason)) => return refuse(reason),
        None => return refuse(format!("must be {LIST}")),
    };
    let (mut read, mut instructions) = (Vec::with_capacity(list.len()), Vec::new());
    for (at, message) in list.into_iter().enumerate() {
        let Some(message) = message else {
            return refuse(format!("must have an object with a role as message {at}"));
        };
        match message.role.and_then(|role| parse::<Role>(role.get()).ok()) {
            Some(Role::System | Role::Developer) => {
                instructions.extend(message.content.and_then(|content| text_in(Some(content), &TEXT)));
            }
            Some(role) => read.push((at, role, message)),
            None => {
                let roles = "system, developer, user, assistant or tool";
                return refuse(format!("must have one of the roles {roles} in message {at}"));
            }
        }
    }
    let results = read.iter().rev().take_while(|(_, role, _)| *role == Role::Tool).count();
    let (before, rest) = read.split_at(read.len().saturating_sub(results.max(1)));
    let newest = match rest.first() {
        Some((at, Role::User, message)) => match content(message.content, &TEXT) {
            Ok(said) if !said.text.trim().is_empty() || !said.files.is_empty() => match unheard(before, is_asked) {
                Ok(None) => Newest::User(said),
                Ok(Some((results, mut texts))) => {
                    texts.push(said);
                    Newest::Both(results, Content::of_all(texts))
                }
                Err(reason) => return refuse(reason),
            },
            Ok(_) => return refuse(format!("must have text that is not blank in message {at}")),
            Err(reason) => return refuse(format!("{reason} (message {at})")),
        },
        Some((_, Role::Tool, _)) => match rest.iter().map(|(at, _, message)| result(*at, message)).collect() {
            Ok(results) => Newest::Results(results),
            Err(reason) => return refuse(reason),
        },
        Some((_, Role::Assistant | Role::Function | Role::System | Role::Developer, _)) => {
            return refuse(END.to_owned());
        }
        None => match as_question(&mut instructions) {
            Some(said) => Newest::User(said),
            None => return refuse(END.to_owned()),
        },
    };
    Some(match newest {
        Newest::Results(results) if results.iter().any(|(call, _)| is_unawaited(call)) => {
            SentMessages { instructions, earlier: earlier(&read), newest: Newest::User(go_on()) }
        }
        newest => SentMessages { instructions, earlier: earlier(before), newest },
    })
}

/// Results of calls, each with its call's id, and what the user has said beside them.
type Unheard = (Vec<(String, Content)>, Vec<Content>);

/// The results behind the last thing that the assistant said, and what the user has said beside them, where `is_asked` finds all
/// their calls: nobody has heard of either.
fn unheard(before: &[(usize, Role, Message<'_>)], is_asked: impl Fn(&str) -> bool) -> Result<Option<Unheard>, String> {
    let begin = before.iter().rposition(|(_, role, _)| *role == Role::Assistant).map_or(before.len(), |last| last + 1);
    let new = before.get(begin..).unwrap_or_default();
    let results = new.iter().filter(|(_, role, _)| *role == Role::Tool);
    let results: Vec<_> = results.map(|(at, _, message)| result(*at, message)).collect::<Result<_, _>>()?;
    if results.is_empty() || !results.iter().all(|(call, _)| is_asked(call)) {
        return Ok(None);
    }
    let texts = new.iter().filter(|(_, role, _)| *role == Role::User);
    Ok(Some((results, texts.map(|(_, _, message)| content_in(message.content, &TEXT)).collect())))
}

/// What was said before. What else there was has been refused or answered when it was new.
fn earlier(messages: &[(usize, Role, Message<'_>)]) -> Vec<ClientMessage> {
    let (mut earlier, mut turn) = (Vec::new(), ToldTurn::default());
    for (_, role, message) in messages {
        match role {
            Role::Tool => {
                if let Some(id) = message.tool_call_id.and_then(|id| parse::<String>(id.get()).ok()) {
                    turn.result(&id, content_in(message.content, &TEXT), false);
                }
                continue;
            }
            Role::User => {
                earlier.extend(turn.end());
                earlier.extend(content_in(message.content, &TEXT).of_user());
            }
            Role::Assistant => {
                earlier.extend(turn.end());
                let text = text_in(message.content, &TEXT).filter(|text| !text.trim().is_empty());
                earlier.extend(text.map(ClientMessage::Assistant));
            }
            Role::System | Role::Developer | Role::Function => continue,
        }
        for Call { id, function } in message.tool_calls.map(calls).unwrap_or_default() {
            turn.call(id, function.name, function.arguments);
        }
    }
    earlier.extend(turn.end());
    earlier
}

/// The calls in `raw`; what is none is left out.
fn calls(raw: &RawValue) -> Vec<Call> {
    let all: Vec<&RawValue> = parse(raw.get()).unwrap_or_default();
    all.into_iter().filter_map(json::fields).collect()
}

fn result(at: usize, message: &Message<'_>) -> Result<(String, Content), String> {
    let id = message.tool_call_id.and_then(|id| parse::<String>(id.get()).ok());
    let id = id.filter(|id| !id.is_empty()).ok_or_else(|| format!("must have a tool_call_id in message {at}"))?;
    let content = content(message.content, &TEXT).map_err(|reason| format!("{reason} (message {at})"))?;
    Ok((id, content))
}

/// The result of a call, as the client tells it.
fn client_result((call, Content { text: content, files }): (String, Content)) -> ClientResult {
    ClientResult { call, content, files, is_error: false, said: None }
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
fn wish(body: &Body<'_>, ignored: &mut Ignored, errors: &mut Vec<FieldError>) -> ModelWish {
    let temperature: Option<f64> = json::optional(body.temperature, "temperature", "a number", errors);
    let old: Option<i64> = json::optional(body.max_tokens, "max_tokens", "a whole number", errors);
    let new = json::optional(body.max_completion_tokens, "max_completion_tokens", "a whole number", errors);
    let effort: Option<String> = json::optional(body.reasoning_effort, "reasoning_effort", "a string", errors);
    let named = effort.is_some();
    let effort = effort.as_deref().and_then(told_effort);
    let max_tokens = new.or(old).filter(|tokens| *tokens > 0);
    let wished = temperature;
    let temperature = temperature.filter(|temperature| (0.0..=2.0).contains(temperature));
    ignored.add_if(wished.is_some() && temperature.is_none(), "temperature");
    ignored.add_if(new.or(old).is_some() && max_tokens.is_none(), "max_tokens");
    ignored.add_if(named && effort.is_none(), "reasoning_effort");
    ModelWish {
        workload: None,
        name: None,
        max_tokens: max_tokens.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX)),
        temperature,
        effort,
    }
}
