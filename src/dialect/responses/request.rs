//! The request body of `POST /v1/responses`. Its clients send many fields that only a model service knows, and new ones
//! every few weeks; what is not named here is accepted and ignored.

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::input::{self, Input};
use super::{ids, tools};
use crate::bounded::json::parse;
use crate::chat::answer_format::AnswerFormat;
use crate::chat::approval::DecisionRule;
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::input::{Parent, RunOptions, Screen};
use crate::chat::model::ModelWish;
use crate::dialect::answer_format::{DeclaredSchema, schema};
use crate::dialect::asked::{BranchPoint, ConversationRef, Question, What};
use crate::dialect::given::{Ask, ClientMessage, ClientResult, Content, say_beside};
use crate::dialect::told::{Limits, as_question, bounded, effort, fits, tokens};
use crate::dialect::{DecodeError, FieldError, call_ids, json};

const NOTHING_NEW: &str = "must end with a message of the user's that is not blank, results of tools, or decisions";

/// The longest comment of a decision, in bytes.
const COMMENT_BYTES: usize = 4096;

/// The body; what is not named here is accepted and ignored.
#[derive(Deserialize, ToSchema)]
#[schema(as = ResponseRequest)]
pub struct Body<'a> {
    /// A profile's `context_type`.
    #[serde(borrow)]
    #[schema(value_type = String, example = "workflow")]
    model: Option<&'a RawValue>,
    /// The user's words, or items: messages, results of the client's tools, decisions.
    #[serde(borrow)]
    #[schema(value_type = Value, example = json!("What does this workflow do?"))]
    input: Option<&'a RawValue>,
    /// What the client wants of the assistant, where the profile takes it.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    instructions: Option<&'a RawValue>,
    /// Whether the answer is a stream.
    #[serde(borrow)]
    #[schema(value_type = Option<bool>)]
    stream: Option<&'a RawValue>,
    /// Whether the response can be read later; else true.
    #[serde(borrow)]
    #[schema(value_type = Option<bool>)]
    store: Option<&'a RawValue>,
    /// Whether the run goes on by itself, and the answer comes at once.
    #[serde(borrow)]
    #[schema(value_type = Option<bool>)]
    background: Option<&'a RawValue>,
    /// The response to go on from.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    previous_response_id: Option<&'a RawValue>,
    /// The conversation: its id, or an object with its `id`.
    #[serde(borrow)]
    #[schema(value_type = Option<Value>)]
    conversation: Option<&'a RawValue>,
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
    max_output_tokens: Option<&'a RawValue>,
    /// `effort`: how much the model thinks.
    #[serde(borrow)]
    #[schema(value_type = Option<Object>)]
    reasoning: Option<&'a RawValue>,
    /// `format`: `text`, `json_object`, or `json_schema` with a `schema`.
    #[serde(borrow)]
    #[schema(value_type = Option<Object>)]
    text: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Named {
    id: String,
}

#[derive(Deserialize)]
struct Reasoning<'a> {
    #[serde(borrow)]
    effort: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Text<'a> {
    #[serde(borrow)]
    format: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Format<'a> {
    r#type: String,
    name: Option<String>,
    description: Option<String>,
    strict: Option<bool>,
    #[serde(borrow)]
    schema: Option<&'a RawValue>,
}

/// A request.
pub(super) struct Read {
    pub(super) model: String,
    /// What the client wants of the assistant.
    pub(super) instructions: Vec<String>,
    pub(super) what: What,
    pub(super) rule: DecisionRule,
    pub(super) conversation: ConversationRef,
    pub(super) options: RunOptions,
    pub(super) is_stream: bool,
    pub(super) is_stored: bool,
    pub(super) is_background: bool,
}

/// What a request goes on from, as it says.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Base {
    /// Nothing, or what its input tells.
    Told,
    /// The answer of this run.
    Run(RunId),
    /// This conversation.
    Conversation(ConversationId),
}

pub(super) fn read(limits: &Limits, body: &[u8]) -> Result<Read, DecodeError> {
    let text = json::object(body)?;
    let body: Body<'_> = parse(text).map_err(|error| DecodeError::NotJson(error.to_string()))?;
    let mut errors = Vec::new();
    let model = json::required_text(body.model, "model", &mut errors);
    let flag = |raw, field, errors: &mut Vec<FieldError>| json::optional::<bool>(raw, field, "true or false", errors);
    let is_stream = flag(body.stream, "stream", &mut errors).unwrap_or(false);
    let is_stored = flag(body.store, "store", &mut errors).unwrap_or(true);
    let is_background = flag(body.background, "background", &mut errors).unwrap_or(false);
    if is_background && !is_stored {
        let reason = "must not be true of a response that is not stored: nobody could come back to it".to_owned();
        errors.push(FieldError { field: "background", reason });
    }
    let format = format(body.text, &mut errors)?;
    let own: Option<String> = json::optional(body.instructions, "instructions", "a text", &mut errors);
    let brought = tools::tools(body.tools, &mut errors)?;
    let tool_choice = tools::choice(body.tool_choice, &brought, &mut errors);
    let wish = wish(&body, &mut errors);
    let base = base(&body, &mut errors);
    let input = json::given(body.input).map_or(Err("is required".to_owned()), input::read);
    let input = input.map_err(|reason| errors.push(FieldError { field: "input", reason })).ok();
    let (Some(model), Some(mut input), true) = (model, input, errors.is_empty()) else {
        return Err(DecodeError::Fields(errors));
    };
    let mut instructions: Vec<String> = own.into_iter().chain(std::mem::take(&mut input.instructions)).collect();
    let base = base?;
    if input.is_empty() && base == Base::Told {
        input.texts.extend(as_question(&mut instructions));
    }
    all_fit(&input, limits)?;
    let (what, conversation) = asked(limits, &model, input, base, is_stored)?;
    let rule = match (&what, &conversation) {
        (What::Decide(..), ConversationRef::Id(None)) => DecisionRule::Any,
        _ => DecisionRule::Conversation,
    };
    let options = RunOptions {
        model: wish,
        client_tools: brought.tools,
        tool_choice,
        details: true,
        answer_format: format,
        ..RunOptions::default()
    };
    Ok(Read { model, instructions, what, rule, conversation, options, is_stream, is_stored, is_background })
}

/// About how many tokens the texts of a request have: one for four bytes of them.
pub(super) fn estimate(body: &[u8]) -> Result<usize, DecodeError> {
    let text = json::object(body)?;
    let body: Body<'_> = parse(text).map_err(|error| DecodeError::NotJson(error.to_string()))?;
    Ok(tokens([body.input, body.tools, body.instructions].into_iter().flatten()))
}

fn refused(reason: impl Into<String>) -> DecodeError {
    DecodeError::Fields(vec![FieldError { field: "input", reason: reason.into() }])
}

fn all_fit(input: &Input, limits: &Limits) -> Result<(), DecodeError> {
    input.texts.iter().try_for_each(|said| fits("input", &said.text, limits.max_message_bytes))?;
    input.outputs.iter().try_for_each(|(_, output)| fits("input", &output.text, limits.max_result_bytes))?;
    let mut comments = input.decisions.iter().filter_map(|deciding| deciding.decision.comment.as_deref());
    comments.try_for_each(|comment| fits("input", comment, COMMENT_BYTES))
}

/// The task, and its conversation.
fn asked(
    limits: &Limits,
    model: &str,
    input: Input,
    base: Base,
    is_stored: bool,
) -> Result<(What, ConversationRef), DecodeError> {
    let Input { instructions: _, mut earlier, last_run, mut texts, outputs, decisions } = input;
    texts.retain(|said| !said.text.trim().is_empty() || !said.files.is_empty());
    let is_named = base != Base::Told;
    if is_named && last_run.is_none() && !earlier.iter().all(is_users) {
        return Err(refused("must have only what is new, since the rest is kept here"));
    }
    let base = match base {
        // Who leaves nothing here tells all of it each time; who does names it by what was said last.
        Base::Told => last_run.filter(|_| is_stored).map_or(Base::Told, Base::Run),
        named => named,
    };
    let (conversation, branch) = match &base {
        Base::Told => (ConversationRef::Id(None), BranchPoint::Newest),
        Base::Run(run) => (ConversationRef::OfRun(*run), BranchPoint::At(Parent::Run(*run))),
        Base::Conversation(id) => (ConversationRef::Existing(id.to_string()), BranchPoint::Newest),
    };
    let question = |ask: Ask| Question::new(ask, Screen::Type(model.to_owned()));
    let is_told = base == Base::Told;
    if outputs.is_empty() && decisions.is_empty() && is_told {
        let last = texts.pop().ok_or_else(|| refused(NOTHING_NEW))?;
        earlier.extend(texts.into_iter().filter_map(Content::of_user));
        let earlier = bounded(earlier, limits.max_history_bytes);
        let question = Question { earlier, unlisted: !is_stored, ..question(message(last)) };
        return Ok((What::Answer(question), conversation));
    }
    // What is kept here has one message for all of them.
    let then = (!texts.is_empty()).then(|| Content::of_all(texts));
    then.iter().try_for_each(|said| fits("input", &said.text, limits.max_message_bytes))?;
    match (outputs.is_empty(), decisions.is_empty(), then) {
        (true, true, Some(said)) => {
            // They count where what they name is not kept any more.
            let earlier = if is_named { Vec::new() } else { bounded(earlier, limits.max_history_bytes) };
            Ok((What::Answer(Question { branch, earlier, ..question(message(said)) }), conversation))
        }
        (true, true, None) => Err(refused(NOTHING_NEW)),
        (true, false, then) => Ok((What::Decide(decisions, then.map(|said| question(message(said)))), conversation)),
        (false, true, then) => {
            let told = |(call, Content { text: content, files })| ClientResult {
                call,
                content,
                files,
                is_error: false,
                said: None,
            };
            let mut outputs: Vec<ClientResult> = outputs.into_iter().map(told).collect();
            let then = match is_told && !is_stored {
                // A run of its own for the results would call tools that its client never hears of.
                true => {
                    say_beside(&mut outputs, then);
                    None
                }
                false => then.map(|said| question(message(said))),
            };
            let (results, of) = call_ids::answered(outputs, None).map_err(refused)?;
            let conversation = if is_told { ConversationRef::Id(Some(of)) } else { conversation };
            let first = question(Ask::Results(results));
            let what = match then {
                None => What::Answer(first),
                Some(then) => What::Both(Box::new(first), Box::new(then)),
            };
            Ok((what, conversation))
        }
        (false, false, _) => Err(refused("must have either results of tools or decisions, not both")),
    }
}

fn is_users(message: &ClientMessage) -> bool {
    matches!(message, ClientMessage::User(..))
}

fn message(Content { text, files }: Content) -> Ask {
    Ask::Message { text, note: None, files }
}

/// What the request says that it goes on from; what is wrong is noted in `errors`, and inside, what is not there.
fn base(body: &Body<'_>, errors: &mut Vec<FieldError>) -> Result<Base, DecodeError> {
    let previous: Option<String> =
        json::optional(body.previous_response_id, "previous_response_id", "a string", errors);
    let conversation = json::given(body.conversation).map(|raw| {
        let id = parse::<String>(raw.get()).ok().or_else(|| Some(json::fields::<Named>(raw)?.id));
        id.as_deref().and_then(ids::conversation_of)
    });
    let mut refuse = |field, reason: &str| errors.push(FieldError { field, reason: reason.to_owned() });
    match (previous, conversation) {
        (Some(_), Some(_)) => refuse("conversation", "must not be given together with previous_response_id"),
        (None, Some(None)) => refuse("conversation", "must be the id of a conversation, conv_…, or have it as id"),
        (None, Some(Some(id))) => return Ok(Base::Conversation(id)),
        (Some(id), None) => return ids::run_of(&id).map(Base::Run).ok_or(DecodeError::NoSuchResponse),
        (None, None) => {}
    }
    Ok(Base::Told)
}

/// The form of the answer; `None` where it is text. What is wrong with it is noted in `errors`.
///
/// # Errors
/// When its schema is larger than 64 KiB.
fn format(raw: Option<&RawValue>, errors: &mut Vec<FieldError>) -> Result<Option<AnswerFormat>, DecodeError> {
    const FIELD: &str = "text.format";
    let text = json::given(raw).and_then(json::fields::<Text<'_>>);
    let Some(raw) = text.and_then(|text| json::given(text.format)) else { return Ok(None) };
    let format: Option<Format<'_>> = json::fields(raw);
    match format.as_ref().map(|format| format.r#type.as_str()).zip(format.as_ref()) {
        Some(("text", _)) => Ok(None),
        Some(("json_object", _)) => Ok(Some(AnswerFormat::Object)),
        Some(("json_schema", Format { name, description, strict, schema: Some(declared), .. })) => {
            let (name, description) = (name.clone(), description.clone());
            let declared = DeclaredSchema { name, description, is_strict: strict.unwrap_or(false), schema: declared };
            schema(declared, FIELD, errors)
        }
        Some(_) | None => {
            let reason = "must have the type text, json_object, or json_schema with a schema".to_owned();
            errors.push(FieldError { field: FIELD, reason });
            Ok(None)
        }
    }
}

/// The client's wishes for the model. Clients send these whether a user chose them or not, so a value that is out of
/// bounds is no wish.
fn wish(body: &Body<'_>, errors: &mut Vec<FieldError>) -> ModelWish {
    let temperature: Option<f64> = json::optional(body.temperature, "temperature", "a number", errors);
    let max_tokens: Option<i64> = json::optional(body.max_output_tokens, "max_output_tokens", "a whole number", errors);
    let reasoning = json::given(body.reasoning).and_then(json::fields::<Reasoning<'_>>);
    let named = reasoning.and_then(|reasoning| reasoning.effort).and_then(|raw| parse::<String>(raw.get()).ok());
    let max_tokens = max_tokens.filter(|tokens| *tokens > 0);
    ModelWish {
        workload: None,
        name: None,
        max_tokens: max_tokens.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX)),
        temperature: temperature.filter(|temperature| (0.0..=2.0).contains(temperature)),
        effort: named.as_deref().and_then(effort),
    }
}
