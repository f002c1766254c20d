//! The request of Converse as JSON, written from the history by reference.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use super::block::{Block, CachePoint, Document, LeftOut, Message, Reasoning, Source};
use super::documents;
use super::model::{Model, OwnFields};
use crate::agent::ports::llm::{ChatRequest, MustCall, SentFiles};
use crate::chat::file::{FileKind, FileRef};
use crate::chat::ids::ToolCallId;
use crate::chat::message::{AssistantPart, ModelOrigin};
use crate::llm::anthropic::Thinking;
use crate::llm::files::{Piece, pieces, returned_by};
use crate::llm::history::{self, Arguments, AssistantTurn, Entry, FILES_FOLLOW, NO_ANSWER, NO_OUTPUT};
use crate::llm::{form, schema};

/// 64 characters: a longer id of a call is refused.
const MAX_ID_BYTES: usize = 64;

/// The body of `POST /model/{model}/converse-stream`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request<'a> {
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    inference_config: InferenceConfig,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_model_request_fields: Option<OwnFields>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct InferenceConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
}

/// Without a word about the choice the model decides. There is none for "no tool".
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum Tool<'a> {
    #[serde(rename_all = "camelCase")]
    ToolSpec {
        name: &'a str,
        description: &'a str,
        input_schema: InputSchema<'a>,
    },
    CachePoint(CachePoint),
}

#[derive(Debug, Serialize)]
struct InputSchema<'a> {
    json: Cow<'a, Value>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum ToolChoice<'a> {
    Any {},
    Tool { name: &'a str },
}

impl<'a> Request<'a> {
    /// The request of `chat` to the model of `origin`; with the thoughts of its turns in this run, unless it `forgets` them.
    pub(super) fn new(chat: &ChatRequest<'a>, origin: &ModelOrigin, forgets: bool) -> Self {
        let model = Model::named(&origin.model);
        let entries = history::entries(chat.messages, origin);
        let loop_begins = entries.iter().rposition(|entry| matches!(entry, Entry::User(_)));
        let mut called = Vec::new();
        let mut messages: Vec<Message<'a>> = Vec::new();
        // Whether the model may think on in the turn so far; `None` before its first answer.
        let mut goes_on = None;
        for (at, entry) in entries.into_iter().enumerate() {
            match entry {
                Entry::User(said) => {
                    let mut blocks = files(said.files, chat.files);
                    // A blank text is refused.
                    if !said.text.trim().is_empty() || blocks.is_empty() {
                        blocks.push(Block::Text(said.text));
                    }
                    match messages.last_mut() {
                        // Results and what the user says next are one message, the results first.
                        Some(Message { role: "user", content }) if model.mixes() => content.append(&mut blocks),
                        last => {
                            let is_behind_results = last.is_some_and(|last| last.role == "user");
                            messages.extend(is_behind_results.then(|| says(NO_ANSWER)));
                            goes_on = None;
                            messages.push(Message { role: "user", content: blocks });
                        }
                    }
                }
                Entry::Assistant(turn) => {
                    let is_of_this_run = loop_begins.is_none_or(|begin| at > begin);
                    let content = assistant(&turn, is_of_this_run && !forgets, model);
                    let thinks = matches!(content.first(), Some(Block::ReasoningContent(_) | Block::Raw(_)));
                    // As the models' maker has it: they think at a turn's beginning only, and one that another model began
                    // without a thought cannot go on with one.
                    goes_on = Some(goes_on.map_or(thinks, |before| before && (turn.is_ours || thinks)));
                    match messages.last_mut() {
                        // Behind an answer whose calls are not told: the roles have to alternate.
                        Some(Message { role: "assistant", content: before }) => before.extend(content),
                        _ => messages.push(Message { role: "assistant", content }),
                    }
                    if !turn.answers.is_empty() {
                        called.extend(turn.answers.iter().map(|answer| answer.call.name.as_str()));
                        let (results, behind) = results(&turn, model, chat.files);
                        messages.push(Message { role: "user", content: results });
                        match messages.last_mut() {
                            _ if behind.is_empty() => {}
                            Some(Message { content, .. }) if model.mixes() => content.extend(behind),
                            _ => messages.extend([says(FILES_FOLLOW), Message { role: "user", content: behind }]),
                        }
                    }
                }
            }
        }
        documents::settle(&mut messages);
        let (caches, caches_tools) = model.caches();
        // The next turn of the loop sends all of this again; and the turn before ended with the other mark.
        for message in messages.iter_mut().rev().filter(|message| caches && message.role == "user").take(2) {
            message.content.push(Block::CachePoint(CachePoint::Default));
        }
        let tool_choice = tool_choice(chat, model);
        // Who has to call a tool is not asked to think first.
        let is_forced = tool_choice.is_some();
        let own = model.thinking(chat.model.effort, chat.model.max_tokens.unwrap_or_default());
        let own = own.filter(|own| match own {
            OwnFields::Thinking { thinking: Thinking::Disabled, .. } => true,
            OwnFields::Thinking { thinking: Thinking::Enabled { .. }, .. } => !is_forced && goes_on.unwrap_or(true),
            OwnFields::Thinking { .. } | OwnFields::Reasoning { .. } => !is_forced,
        });
        Self {
            messages,
            system: system(chat, model, caches),
            inference_config: inference_config(chat, (model, &origin.model), own),
            tool_config: tool_config(chat, &called, tool_choice, caches_tools),
            additional_model_request_fields: own,
        }
    }

    /// Whether a temperature was wanted that cannot be sent.
    pub(super) fn lacks_temperature(&self, chat: &ChatRequest<'_>) -> bool {
        self.inference_config.temperature.is_none() && chat.model.temperature.is_some()
    }
}

fn inference_config(chat: &ChatRequest<'_>, (model, name): (Model, &str), own: Option<OwnFields>) -> InferenceConfig {
    let (budget, thinks) = match own {
        Some(OwnFields::Thinking { thinking: Thinking::Enabled { budget_tokens }, .. }) => (budget_tokens, true),
        Some(OwnFields::Thinking { thinking: Thinking::Adaptive { .. }, .. }) => (0, true),
        Some(OwnFields::Thinking { thinking: Thinking::Disabled, .. }) => (0, false),
        Some(OwnFields::Reasoning { .. }) | None => (0, false),
    };
    InferenceConfig {
        max_tokens: match chat.model.max_tokens {
            Some(of_answer) => Some(of_answer.saturating_add(budget)),
            None => model.most_tokens(name),
        },
        temperature: chat
            .model
            .temperature
            .filter(|_| !thinks && model.takes_temperature())
            .map(|wanted| wanted.clamp(0.0, 1.0)),
    }
}

fn tool_choice<'a>(chat: &ChatRequest<'a>, model: Model) -> Option<ToolChoice<'a>> {
    match chat.must_call {
        _ if !model.forces_calls() || !form::has_tools(chat) => None,
        MustCall::No => None,
        MustCall::Any => Some(ToolChoice::Any {}),
        MustCall::This(name) => Some(ToolChoice::Tool { name }),
    }
}

/// The tools, in which those have to be that the history has `called`, where there are no others. Those that may not be called
/// are left out, where the history has no calls.
fn tool_config<'a>(
    chat: &ChatRequest<'a>,
    called: &[&'a str],
    tool_choice: Option<ToolChoice<'a>>,
    caches: bool,
) -> Option<ToolConfig<'a>> {
    let mut tools: Vec<Tool<'a>> = Vec::new();
    if chat.may_call || !called.is_empty() {
        tools.extend(chat.tools.iter().map(|tool| {
            let input_schema = InputSchema { json: schema::with_object_top(&tool.input_schema) };
            // A blank description is refused.
            let described = [&tool.description, &tool.name].into_iter().find(|text| !text.trim().is_empty());
            let description = described.map(String::as_str).unwrap_or_default();
            Tool::ToolSpec { name: &tool.name, description, input_schema }
        }));
    }
    if tools.is_empty() {
        let mut names = called.to_vec();
        names.sort_unstable();
        names.dedup();
        tools.extend(names.into_iter().map(|name| Tool::ToolSpec {
            name,
            description: "Not there any more: do not call it.",
            input_schema: InputSchema { json: Cow::Owned(serde_json::json!({"type": "object"})) },
        }));
        return (!tools.is_empty()).then_some(ToolConfig { tools, tool_choice: None });
    }
    // Not where the client's instructions end with one: there are four.
    if caches && chat.system.client.is_empty() {
        tools.push(Tool::CachePoint(CachePoint::Default));
    }
    Some(ToolConfig { tools, tool_choice })
}

/// The instructions end with a cache point, and the client's; what changes per request stands behind them.
fn system<'a>(chat: &ChatRequest<'a>, model: Model, caches: bool) -> Vec<Block<'a>> {
    let [instructions, client, context] = chat.system.parts();
    let words = match (chat.format, model.forces_calls()) {
        (Some(format), _) => Some(form::of_answer(format)),
        // There is no choice that says so.
        (None, _) if !chat.may_call && !chat.tools.is_empty() => Some(form::of_no_call()),
        (None, false) if form::has_tools(chat) => form::of_call(chat.must_call),
        (None, _) => None,
    };
    let parts = [
        (Cow::Borrowed(instructions), caches),
        (Cow::Borrowed(client), caches),
        (Cow::Borrowed(context), false),
        (Cow::Owned(words.unwrap_or_default()), false),
    ];
    let blocks = parts.into_iter().filter(|(text, _)| !text.trim().is_empty()).flat_map(|(text, is_marked)| {
        let point = is_marked.then_some(Block::CachePoint(CachePoint::Default));
        [Block::Text(text)].into_iter().chain(point)
    });
    blocks.collect()
}

/// The message's blocks: exactly as they came when a thought of it goes back, since this is checked; else text, then calls.
/// Signed reasoning goes back with the results of its own run, to the model that wrote it.
/// Text beside calls is left out where the model takes none.
fn assistant<'a>(turn: &AssistantTurn<'a>, recalls: bool, model: Model) -> Vec<Block<'a>> {
    let is_thought = |part: &AssistantPart| match part {
        AssistantPart::Thinking { replay, .. } => replay.is_some(),
        AssistantPart::Opaque(_) => true,
        AssistantPart::Text { .. } | AssistantPart::ToolCall { .. } => false,
    };
    let goes_back = turn.is_ours && recalls && turn.parts.iter().any(is_thought);
    let (mut blocks, mut calls) = (Vec::with_capacity(turn.parts.len()), Vec::new());
    for part in turn.parts {
        match part {
            // A blank text is refused.
            AssistantPart::Text { text, .. } if !text.trim().is_empty() => blocks.push(Block::Text(text.into())),
            AssistantPart::Thinking { text, replay: Some(replay) } if goes_back => {
                blocks.push(Block::ReasoningContent(Reasoning::ReasoningText { text, signature: replay.raw() }));
            }
            AssistantPart::Opaque(replay) if goes_back => blocks.push(Block::Raw(replay.raw())),
            AssistantPart::ToolCall { call, .. } => {
                let input = Arguments(&call.input);
                let block = Block::ToolUse { tool_use_id: id(&call.id), name: &call.name, input };
                if goes_back { blocks.push(block) } else { calls.push(block) }
            }
            AssistantPart::Text { .. } | AssistantPart::Thinking { .. } | AssistantPart::Opaque(_) => {}
        }
    }
    if !calls.is_empty() && !model.mixes() {
        return calls;
    }
    blocks.append(&mut calls);
    blocks
}

/// Words between two messages of the user's.
fn says<'a>(words: &'static str) -> Message<'a> {
    Message { role: "assistant", content: vec![Block::Text(words.into())] }
}

/// The results of a turn, and what stands behind all of them: what tools have made stands in their results where the model looks
/// there and the call did not fail.
fn results<'a>(turn: &AssistantTurn<'a>, model: Model, sent: SentFiles<'a>) -> (Vec<Block<'a>>, Vec<Block<'a>>) {
    let (mut blocks, mut behind) = (Vec::with_capacity(turn.answers.len()), Vec::new());
    for answer in &turn.answers {
        let text = Some(answer.content).filter(|text| !text.trim().is_empty());
        let mut content: Vec<Block<'a>> = text.map(|text| Block::Text(text.into())).into_iter().collect();
        let mut made = files(answer.files, sent);
        if model.sees_results() && !answer.is_error {
            content.append(&mut made);
        }
        if !made.is_empty() {
            behind.push(Block::Text(returned_by(&answer.call.name, &id(&answer.call.id)).into()));
            behind.append(&mut made);
        }
        // An empty list is refused by some.
        if content.is_empty() {
            content.push(Block::Text(NO_OUTPUT.into()));
        }
        let status = if answer.is_error { "error" } else { "success" };
        blocks.push(Block::ToolResult { tool_use_id: id(&answer.call.id), content, status });
    }
    (blocks, behind)
}

/// Files as blocks, which stand before the text about them.
fn files<'a>(files: impl IntoIterator<Item = &'a FileRef>, sent: SentFiles<'a>) -> Vec<Block<'a>> {
    let files: Vec<&FileRef> = files.into_iter().collect();
    let block = |(file, piece): (&'a FileRef, Piece<'a>)| match piece {
        Piece::Image(data) => {
            let media_type = data.kind.media_type();
            let format = media_type.strip_prefix("image/").unwrap_or(media_type);
            Block::Image { format, source: Source { bytes: data } }
        }
        Piece::Pdf(name, data) => {
            Block::Document(Document { format: "pdf", name: name.into(), source: Source { bytes: data } })
        }
        Piece::Text(said) if file.kind == FileKind::Pdf => Block::LeftOut(LeftOut { name: &file.name, said }),
        Piece::Text(text) => Block::Text(text),
    };
    files.iter().copied().zip(pieces(files.iter().copied(), sent)).map(block).collect()
}

/// The id in the alphabet that is allowed here, `A-Za-z0-9_-`, and no longer than allowed; another vendor's id may be neither.
fn id(id: &ToolCallId) -> Cow<'_, str> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let text = id.as_str();
    if text.len() <= MAX_ID_BYTES && text.bytes().all(allowed) {
        return text.into();
    }
    let escaped = text.bytes().map(|b| if allowed(b) { char::from(b).to_string() } else { format!("-{b:02x}") });
    let mut escaped: String = escaped.collect();
    if escaped.len() > MAX_ID_BYTES {
        let checksum = format!("-{:08x}", crc32fast::hash(text.as_bytes()));
        escaped.truncate(MAX_ID_BYTES - checksum.len());
        escaped.push_str(&checksum);
    }
    escaped.into()
}
