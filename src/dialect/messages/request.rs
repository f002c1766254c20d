//! The request body of `POST /v1/messages`. Its clients send many fields that only a model service knows, and new ones every few
//! weeks; what is not named here is accepted and ignored.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::history::{self, Told};
use super::tools;
use crate::bounded::json::{parse, parse_bytes};
use crate::chat::answer_format::AnswerFormat;
use crate::chat::ids::ConversationId;
use crate::chat::input::{RunOptions, Screen};
use crate::chat::model::{Effort, ModelWish};
use crate::dialect::answer_format::{DeclaredSchema, schema};
use crate::dialect::asked::Question;
use crate::dialect::given::{Ask, ClientMessage, ClientResult, Content, say_beside};
use crate::dialect::ignored::Ignored;
use crate::dialect::json::Members;
use crate::dialect::told::{Limits, Unawaited, bounded, effort, fits, go_on, text_in, tokens};
use crate::dialect::{DecodeError, FieldError, call_ids, json};

const FORMAT: &str = "output_config.format";

/// Fields that change an answer of a model service and none of ours, each with its values that ask for nothing.
const UNKNOWN: [(&str, &[&str]); 8] = [
    ("stop_sequences", &["[]"]),
    ("top_p", &["1", "1.0"]),
    ("top_k", &[]),
    ("mcp_servers", &["[]"]),
    ("container", &[]),
    ("context_management", &["{}"]),
    ("inference_geo", &[]),
    ("speed", &[r#""standard""#]),
];

/// The largest budgets of thinking, in tokens, of the words for little and for some; more is much.
const LITTLE: i64 = 4096;
const SOME: i64 = 12_288;

/// The body; what is not named here is accepted and ignored.
#[derive(ToSchema)]
#[schema(as = MessagesRequest)]
pub struct Body<'a> {
    /// A profile's `context_type`.
    #[schema(value_type = String, example = "workflow")]
    model: Option<&'a RawValue>,
    /// The conversation so far. It ends with a message of the user's: text, or results of tools.
    #[schema(value_type = Vec<Object>, example = json!([{"role": "user", "content": "What does this workflow do?"}]))]
    messages: Option<&'a RawValue>,
    /// What the client wants of the assistant, where the profile takes it: a text, or blocks of text.
    #[schema(value_type = Option<Value>)]
    system: Option<&'a RawValue>,
    #[schema(value_type = Option<i64>, example = 1024)]
    max_tokens: Option<&'a RawValue>,
    /// Whether the answer is a stream.
    #[schema(value_type = Option<bool>)]
    stream: Option<&'a RawValue>,
    /// Tools that the client runs.
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<&'a RawValue>,
    /// `type` is `auto`, `any`, `none`, or `tool` with the `name` of one.
    #[schema(value_type = Option<Object>)]
    tool_choice: Option<&'a RawValue>,
    #[schema(value_type = Option<f64>)]
    temperature: Option<&'a RawValue>,
    /// `type` is `adaptive`, `enabled` with `budget_tokens`, or `disabled`.
    #[schema(value_type = Option<Object>)]
    thinking: Option<&'a RawValue>,
    /// `effort`: how much the model thinks. `format`: `json_schema` with a `schema`.
    #[schema(value_type = Option<Object>)]
    output_config: Option<&'a RawValue>,
    /// `output_config.format`, as it was called before.
    #[schema(value_type = Option<Object>)]
    output_format: Option<&'a RawValue>,
}

impl<'a> Body<'a> {
    fn of(members: &Members<'a>) -> Self {
        Self {
            model: members.get("model"),
            messages: members.get("messages"),
            system: members.get("system"),
            max_tokens: members.get("max_tokens"),
            stream: members.get("stream"),
            tools: members.get("tools"),
            tool_choice: members.get("tool_choice"),
            temperature: members.get("temperature"),
            thinking: members.get("thinking"),
            output_config: members.get("output_config"),
            output_format: members.get("output_format"),
        }
    }
}

#[derive(Deserialize)]
struct Thinking<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    budget_tokens: Option<i64>,
    #[serde(borrow)]
    display: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct OutputConfig<'a> {
    #[serde(borrow)]
    effort: Option<&'a RawValue>,
    #[serde(borrow)]
    format: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Format<'a> {
    r#type: String,
    #[serde(borrow)]
    schema: Option<&'a RawValue>,
}

/// What requests have alike that repeat each other, in whichever shape they want their answer.
#[derive(Deserialize)]
struct Repeated<'a> {
    #[serde(borrow)]
    model: &'a RawValue,
    #[serde(borrow)]
    messages: &'a RawValue,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_choice: Option<&'a RawValue>,
    #[serde(borrow)]
    output_config: Option<&'a RawValue>,
    #[serde(borrow)]
    output_format: Option<&'a RawValue>,
}

/// A request.
pub(super) struct Read {
    pub(super) model: String,
    /// What the client wants of the assistant.
    pub(super) instructions: Vec<String>,
    pub(super) question: Question,
    /// The conversation that waits for the results; `None` where a new one begins.
    pub(super) conversation: Option<ConversationId>,
    pub(super) options: RunOptions,
    pub(super) is_stream: bool,
    /// Whether the client wants to see what the model thinks.
    pub(super) wants_thinking: bool,
    /// What it asks for that is nobody's here.
    pub(super) ignored: Ignored,
}

/// The request in `body`. Results at its end that nobody waits for are told, where the profile believes them.
pub(super) fn read(limits: &Limits, body: &[u8], results: Unawaited<'_>) -> Result<Read, DecodeError> {
    let text = json::object(body)?;
    let members = Members::of(text)?;
    let body = Body::of(&members);
    let (mut errors, mut ignored) = (Vec::new(), Ignored::default());
    let model = json::required_text(body.model, "model", &mut errors);
    let is_stream = json::optional(body.stream, "stream", "true or false", &mut errors).unwrap_or(false);
    let own = system(body.system, &mut errors);
    let brought = tools::tools(body.tools, &mut ignored, &mut errors)?;
    let tool_choice = tools::choice(body.tool_choice, &brought, &mut ignored, &mut errors);
    let thinking = json::given(body.thinking).and_then(json::fields::<Thinking<'_>>);
    let output = json::given(body.output_config).and_then(json::fields::<OutputConfig<'_>>);
    let form =
        output.as_ref().and_then(|output| json::given(output.format)).or_else(|| json::given(body.output_format));
    let answer_format = format(form, &mut errors)?;
    let effort = wished_effort(thinking.as_ref(), output.as_ref(), &mut ignored);
    let model_wish = wish(&body, effort, &mut ignored, &mut errors);
    ignored.add_unknown(&members, &UNKNOWN);
    let is_unawaited = |call: &str| results.has(model.as_deref(), call);
    let told = json::given(body.messages).ok_or_else(|| "is required".to_owned());
    let told = told.and_then(|raw| history::read(raw, is_unawaited));
    let told = told.map_err(|reason| errors.push(FieldError { field: "messages", reason })).ok();
    let (Some(model), Some(told), true) = (model, told, errors.is_empty()) else {
        return Err(DecodeError::Fields(errors));
    };
    let Told { instructions, earlier, texts, results } = told;
    let (ask, earlier, conversation) = asked(limits, earlier, texts, results)?;
    let question = Question { earlier, unlisted: true, ..Question::new(ask, Screen::Type(model.clone())) };
    let options = RunOptions {
        model: model_wish,
        client_tools: brought.tools,
        tool_choice,
        details: true,
        answer_format,
        ..RunOptions::default()
    };
    Ok(Read {
        model,
        instructions: own.into_iter().chain(instructions).collect(),
        question,
        conversation,
        options,
        is_stream,
        wants_thinking: thinking.is_some_and(|thinking| thinking.is_shown()),
        ignored,
    })
}

/// About how many tokens the texts of a request have: one for four bytes of them.
pub(super) fn estimate(body: &[u8]) -> Result<usize, DecodeError> {
    let text = json::object(body)?;
    let body = Body::of(&Members::of(text)?);
    Ok(tokens([body.messages, body.tools, body.system].into_iter().flatten()))
}

/// What a body asks for, in bytes that no other two have; all of it where it has none.
pub(super) fn repeated(body: &[u8]) -> Cow<'_, [u8]> {
    match parse_bytes::<Repeated<'_>>(body) {
        Ok(Repeated { model, messages, tools, tool_choice, output_config, output_format }) => {
            let parts = [Some(model), Some(messages), tools, tool_choice, output_config, output_format];
            // No JSON has a NUL in it.
            Cow::Owned(parts.map(|part| part.map_or("", RawValue::get)).join("\0").into_bytes())
        }
        Err(_) => Cow::Borrowed(body),
    }
}

impl Thinking<'_> {
    /// Whether the client wants to see it.
    fn is_shown(&self) -> bool {
        matches!(&*self.r#type, "enabled" | "adaptive") && self.display.as_deref() != Some("omitted")
    }
}

fn refused(reason: impl Into<String>) -> DecodeError {
    DecodeError::Fields(vec![FieldError { field: "messages", reason: reason.into() }])
}

/// The question, with what was said before it, or the conversation that waits for its results.
fn asked(
    limits: &Limits,
    mut earlier: Vec<ClientMessage>,
    mut texts: Vec<Content>,
    mut sent: Vec<ClientResult>,
) -> Result<(Ask, Vec<ClientMessage>, Option<ConversationId>), DecodeError> {
    texts.iter().try_for_each(|said| fits("messages", &said.text, limits.max_message_bytes))?;
    if sent.is_empty() {
        // Without words there were results that nobody waits for.
        let Content { text, files } = texts.pop().unwrap_or_else(go_on);
        earlier.extend(texts.into_iter().filter_map(Content::of_user));
        let ask = Ask::Message { text, note: None, files };
        return Ok((ask, bounded(earlier, limits.max_history_bytes), None));
    }
    sent.iter().try_for_each(|result| fits("messages", &result.content, limits.max_result_bytes))?;
    let said = Content::of_all(texts);
    fits("messages", &said.text, limits.max_message_bytes)?;
    say_beside(&mut sent, Some(said));
    let (results, conversation) = call_ids::answered(sent, None).map_err(refused)?;
    Ok((Ask::Results(results), Vec::new(), Some(conversation)))
}

/// What Claude Code says in the first block of its instructions: who pays, with a number that is another one in each request. No
/// prompt that has it is found in a vendor's cache (claude-code#50085).
const OF_BILLING: &str = "x-anthropic-billing-header:";

/// The client's own instructions; what is none is noted in `errors`.
fn system(raw: Option<&RawValue>, errors: &mut Vec<FieldError>) -> Option<String> {
    let text = text_in(Some(json::given(raw)?), &["text"]);
    let text = text.map(|text| match text.starts_with(OF_BILLING) {
        true => text.split_once('\n').map_or_else(String::new, |(_, rest)| rest.to_owned()),
        false => text,
    });
    if text.is_none() {
        let reason = "must be a text, or a list of blocks of text".to_owned();
        errors.push(FieldError { field: "system", reason });
    }
    text.filter(|text| !text.trim().is_empty())
}

/// The form of the answer; `None` where it is text. What is wrong with it is noted in `errors`.
///
/// # Errors
/// See [`schema`].
fn format(raw: Option<&RawValue>, errors: &mut Vec<FieldError>) -> Result<Option<AnswerFormat>, DecodeError> {
    let Some(raw) = json::given(raw) else { return Ok(None) };
    match json::fields::<Format<'_>>(raw) {
        Some(Format { r#type, schema: Some(declared) }) if r#type == "json_schema" => {
            schema(DeclaredSchema { name: None, description: None, is_strict: true, schema: declared }, FORMAT, errors)
        }
        Some(_) | None => {
            let reason = "must have the type json_schema, and a schema".to_owned();
            errors.push(FieldError { field: FORMAT, reason });
            Ok(None)
        }
    }
}

/// How much the client wants the model to think.
fn wished_effort(
    thinking: Option<&Thinking<'_>>,
    output: Option<&OutputConfig<'_>>,
    ignored: &mut Ignored,
) -> Option<Effort> {
    let named = output.and_then(|output| json::given(output.effort));
    let word = named.and_then(|raw| parse::<String>(raw.get()).ok()).and_then(|name| effort(&name));
    ignored.add_if(named.is_some() && word.is_none(), "output_config.effort");
    match thinking.map(|thinking| (&*thinking.r#type, thinking.budget_tokens)) {
        Some(("disabled", _)) => Some(Effort::None),
        Some(("enabled", Some(budget))) if word.is_none() => Some(match (budget <= LITTLE, budget <= SOME) {
            (true, _) => Effort::Low,
            (false, true) => Effort::Medium,
            (false, false) => Effort::High,
        }),
        Some(_) | None => word,
    }
}

/// The client's wishes for the model. Clients send these whether a user chose them or not, so a value that is out of bounds is no
/// wish.
fn wish(body: &Body<'_>, effort: Option<Effort>, ignored: &mut Ignored, errors: &mut Vec<FieldError>) -> ModelWish {
    let temperature: Option<f64> = json::optional(body.temperature, "temperature", "a number", errors);
    let max_tokens: Option<i64> = json::optional(body.max_tokens, "max_tokens", "a whole number", errors);
    let wished = (temperature.is_some(), max_tokens.is_some());
    let temperature = temperature.filter(|temperature| (0.0..=2.0).contains(temperature));
    let max_tokens = max_tokens.filter(|tokens| *tokens > 0);
    ignored.add_if(wished.0 && temperature.is_none(), "temperature");
    ignored.add_if(wished.1 && max_tokens.is_none(), "max_tokens");
    ModelWish {
        workload: None,
        name: None,
        max_tokens: max_tokens.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX)),
        temperature,
        effort,
    }
}
