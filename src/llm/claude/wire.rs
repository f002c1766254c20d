//! The Messages API's request as JSON, written from the history by reference.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::thinking::{Generation, Thinking, most_tokens};
use crate::agent::ports::llm::ChatRequest;
use crate::chat::ids::ToolCallId;
use crate::chat::message::{AssistantPart, ModelOrigin};
use crate::chat::model::Effort;
use crate::chat::tool::ToolDef;
use crate::llm::history::{self, Arguments, AssistantTurn, Entry};
use crate::llm::schema;

/// The only version of the API that still takes sampling parameters.
pub(super) const VERSION_WITH_SAMPLING: &str = "2023-06-01";

/// The body of `POST /v1/messages`.
#[derive(Debug, Serialize)]
pub(super) struct Request<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    /// Nothing where there are no tools: a choice among none is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice>,
}

/// Which tools may be called; without a word about it the model decides.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ToolChoice {
    None,
}

#[derive(Debug, Serialize)]
struct OutputConfig {
    effort: &'static str,
}

#[derive(Debug, Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Debug, Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a RawValue,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Arguments<'a>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: &'a str,
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    /// Redacted thinking, as it came.
    #[serde(untagged)]
    Raw(&'a RawValue),
}

/// Ends a part of the prompt that is the same next time. At most four marks are allowed.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

impl<'a> Request<'a> {
    /// The request of `chat` to the model of `origin`, in the given version of the API.
    pub(super) fn new(chat: &ChatRequest<'a>, origin: &'a ModelOrigin, version: &str) -> Self {
        let entries = history::entries(chat.messages, origin);
        let loop_begins = entries.iter().rposition(|entry| matches!(entry, Entry::User(_)));
        let mut messages: Vec<Message<'a>> = Vec::new();
        // Whether the model may think on in the turn so far; `None` before its first answer.
        let mut goes_on = None;
        for (at, entry) in entries.into_iter().enumerate() {
            match entry {
                Entry::User(text) => {
                    let block = Block::Text { text, cache_control: None };
                    match messages.last_mut() {
                        // Results and what the user says next are one message, the results first.
                        // To the vendor, the turn of those results goes on.
                        Some(Message { role: "user", content }) => content.push(block),
                        _ => {
                            goes_on = None;
                            messages.push(Message { role: "user", content: vec![block] });
                        }
                    }
                }
                Entry::Assistant(turn) => {
                    let is_of_this_run = loop_begins.is_none_or(|begin| at > begin);
                    let message = Message { role: "assistant", content: assistant(&turn, is_of_this_run) };
                    // These models think at a turn's beginning only, so its later answers need no thought; but those of
                    // another model may have begun a thought that is not here.
                    goes_on = Some(match goes_on {
                        None => message.begins_with_a_thought(),
                        Some(before) => before && (turn.is_ours || message.begins_with_a_thought()),
                    });
                    messages.push(message);
                    if !turn.answers.is_empty() {
                        messages.push(Message { role: "user", content: results(&turn) });
                    }
                }
            }
        }
        let (generation, effort) = (Generation::from_model(&origin.model), chat.model.effort);
        let thinking =
            generation.thinking(effort, chat.model.max_tokens.unwrap_or_default()).filter(|thinking| match thinking {
                Thinking::Adaptive { .. } => true,
                // Refused when the turn it would go on with began without a thought: another model may have begun it, or a
                // run that stopped before its answer.
                Thinking::Enabled { .. } => goes_on.unwrap_or(true),
            });
        // The next turn of the loop sends all of this again; and the turn before ended with the other mark, which is found
        // again however many results have come since.
        for message in messages.iter_mut().rev().filter(|message| message.role == "user").take(2) {
            message.content.last_mut().into_iter().for_each(Block::mark);
        }
        let budget = match thinking {
            Some(Thinking::Enabled { budget_tokens }) => budget_tokens,
            Some(Thinking::Adaptive { .. }) | None => 0,
        };
        Self {
            model: &origin.model,
            // The API demands it; where no limit is set, as much as the model can write.
            max_tokens: match chat.model.max_tokens {
                Some(of_answer) => of_answer.saturating_add(budget),
                None => most_tokens(&origin.model),
            },
            stream: true,
            temperature: temperature(chat, generation, version, thinking),
            thinking,
            output_config: effort_word(thinking, effort).map(|effort| OutputConfig { effort }),
            system: system(chat),
            messages,
            tools: tools(chat),
            tool_choice: (!chat.may_call && !chat.tools.is_empty()).then_some(ToolChoice::None),
        }
    }

    /// Whether a temperature was wanted that cannot be sent.
    pub(super) fn lacks_temperature(&self, chat: &ChatRequest<'_>) -> bool {
        self.temperature.is_none() && chat.model.temperature.is_some()
    }
}

impl Message<'_> {
    fn begins_with_a_thought(&self) -> bool {
        matches!(self.content.first(), Some(Block::Thinking { .. } | Block::Raw(_)))
    }
}

/// The temperature, where it is no error: newer versions and models refuse it, and thinking excludes it. The scale ends
/// at 1 here.
fn temperature(
    chat: &ChatRequest<'_>,
    generation: Generation,
    version: &str,
    thinking: Option<Thinking>,
) -> Option<f64> {
    let wanted = chat.model.temperature?;
    if version == VERSION_WITH_SAMPLING && thinking.is_none() && generation.takes_temperature() {
        return Some(wanted.clamp(0.0, 1.0));
    }
    None
}

fn effort_word(thinking: Option<Thinking>, effort: Option<Effort>) -> Option<&'static str> {
    match (thinking?, effort?) {
        (Thinking::Enabled { .. }, _) | (Thinking::Adaptive { .. }, Effort::None) => None,
        (Thinking::Adaptive { .. }, Effort::Low) => Some("low"),
        (Thinking::Adaptive { .. }, Effort::Medium) => Some("medium"),
        (Thinking::Adaptive { .. }, Effort::High) => Some("high"),
        (Thinking::Adaptive { .. }, Effort::Max) => Some("max"),
    }
}

/// The tools; the last ends with a cache mark, so that runs of other instructions find them too.
fn tools<'a>(chat: &ChatRequest<'a>) -> Vec<Tool<'a>> {
    let tool = |(number, tool): (usize, &'a std::sync::Arc<ToolDef>)| Tool {
        name: &tool.name,
        description: &tool.description,
        input_schema: schema::with_object_top(&tool.input_schema),
        cache_control: (number == chat.tools.len()).then_some(CacheControl::Ephemeral),
    };
    (1..).zip(chat.tools).map(tool).collect()
}

/// The instructions end with a cache mark; what changes per request stands behind it.
fn system<'a>(chat: &ChatRequest<'a>) -> Vec<Block<'a>> {
    let instructions = (&*chat.system.instructions, Some(CacheControl::Ephemeral));
    let context = (chat.system.context.as_str(), None);
    let parts = [instructions, context].into_iter().filter(|(text, _)| !text.trim().is_empty());
    parts.map(|(text, cache_control)| Block::Text { text: text.into(), cache_control }).collect()
}

/// The message's blocks: exactly as they came when a thought of it goes back, since this is checked; else text, then
/// calls.
///
/// Thinking goes back with the results of its own run. The API binds it to all that stood before it, and by the next run
/// the screen state in `system` is another: it would be refused. Without any it is not missed.
fn assistant<'a>(turn: &AssistantTurn<'a>, is_of_this_run: bool) -> Vec<Block<'a>> {
    let is_thought = |part: &AssistantPart| match part {
        AssistantPart::Thinking { replay, .. } => replay.is_some(),
        AssistantPart::Opaque(_) => true,
        AssistantPart::Text { .. } | AssistantPart::ToolCall { .. } => false,
    };
    let goes_back = turn.is_ours && is_of_this_run && turn.parts.iter().any(is_thought);
    let (mut blocks, mut calls) = (Vec::with_capacity(turn.parts.len()), Vec::new());
    for part in turn.parts {
        match part {
            // A blank text block is refused.
            AssistantPart::Text { text, .. } if !text.trim().is_empty() => {
                blocks.push(Block::Text { text: text.into(), cache_control: None });
            }
            AssistantPart::Thinking { text, replay: Some(replay) } if goes_back => {
                blocks.push(Block::Thinking { thinking: text, signature: replay.raw() });
            }
            AssistantPart::Opaque(replay) if goes_back => blocks.push(Block::Raw(replay.raw())),
            AssistantPart::ToolCall { call, .. } => {
                let block = Block::ToolUse { id: id(&call.id), name: &call.name, input: Arguments(&call.input) };
                if goes_back { blocks.push(block) } else { calls.push(block) }
            }
            AssistantPart::Text { .. } | AssistantPart::Thinking { .. } | AssistantPart::Opaque(_) => {}
        }
    }
    blocks.append(&mut calls);
    blocks
}

fn results<'a>(turn: &AssistantTurn<'a>) -> Vec<Block<'a>> {
    let result = |answer: &history::CallResult<'a>| Block::ToolResult {
        tool_use_id: id(&answer.call.id),
        content: answer.content,
        is_error: answer.is_error,
        cache_control: None,
    };
    turn.answers.iter().map(result).collect()
}

/// The id in the alphabet that is allowed here, `A-Za-z0-9_-`; another vendor's id may have other characters.
fn id(id: &ToolCallId) -> Cow<'_, str> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let text = id.as_str();
    if text.bytes().all(allowed) {
        return text.into();
    }
    let escaped = text.bytes().map(|b| if allowed(b) { char::from(b).to_string() } else { format!("-{b:02x}") });
    escaped.collect::<String>().into()
}

impl Block<'_> {
    fn mark(&mut self) {
        match self {
            Self::Text { cache_control, .. } | Self::ToolResult { cache_control, .. } => {
                *cache_control = Some(CacheControl::Ephemeral);
            }
            Self::Thinking { .. } | Self::ToolUse { .. } | Self::Raw(_) => {}
        }
    }
}

/// A redacted block, in the shape that goes back.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "redacted_thinking")]
pub(super) struct RedactedThinking {
    pub(super) data: String,
}
