//! The Messages API's request as JSON, written from the history by reference.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::form::{Form, Way};
use crate::agent::ports::llm::{ChatRequest, MustCall, SentFiles};
use crate::chat::file::FileRef;
use crate::chat::ids::ToolCallId;
use crate::chat::message::{AssistantPart, ModelOrigin, Replay};
use crate::chat::tool::ToolDef;
use crate::llm::anthropic::{Generation, Thinking, most_tokens};
use crate::llm::files::{Data, Piece, pieces, returned_by};
use crate::llm::history::{self, Arguments, AssistantTurn, Entry, NO_OUTPUT};
use crate::llm::{form, schema};

/// The only version of the API that still takes sampling parameters.
pub(super) const VERSION_WITH_SAMPLING: &str = "2023-06-01";

/// Where a request says the version of the API, and with it the model.
#[derive(Debug, Clone, Copy)]
pub(in crate::llm) enum Version<'a> {
    /// In a header; the model stands in the body.
    Header(&'a str),
    /// In the body; the model stands in the address, as Google Cloud wants it. Takes sampling parameters.
    Body(&'static str),
}

/// The body of `POST /v1/messages`.
#[derive(Debug, Serialize)]
pub(super) struct Request<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    anthropic_version: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    /// Nothing where there are no tools: a choice among none is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice<'a>>,
}

/// Which tools may be called; without a word about it the model decides.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ToolChoice<'a> {
    None,
    Any,
    Tool { name: &'a str },
}

#[derive(Debug, Serialize)]
struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<OutputFormat<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum OutputFormat<'a> {
    JsonSchema { schema: &'a Value },
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
        signature: Signature<'a>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Arguments<'a>,
    },
    Image {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Document {
        source: Source<'a>,
        title: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: ResultContent<'a>,
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    /// Redacted thinking, as it came.
    #[serde(untagged)]
    Raw(&'a RawValue),
}

/// A thought's signature as it came; of an unsigned one an empty text.
#[derive(Debug)]
struct Signature<'a>(Option<&'a RawValue>);

impl Serialize for Signature<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(signature) => signature.serialize(serializer),
            None => serializer.serialize_str(""),
        }
    }
}

/// The bytes of a picture or a document.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "base64")]
struct Source<'a> {
    media_type: &'static str,
    data: Data<'a>,
}

/// A text, or that and what the tool made besides.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ResultContent<'a> {
    Text(&'a str),
    Blocks(Vec<Block<'a>>),
}

/// Ends a part of the prompt that is the same next time. At most four marks are allowed.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

impl<'a> Request<'a> {
    /// The request of `chat` to the model of `origin`, in the given version of the API, its answer in that `form`; with the
    /// thoughts of its turns so far, unless it `forgets` them.
    pub(super) fn new(
        chat: &ChatRequest<'a>,
        origin: &'a ModelOrigin,
        version: Version<'_>,
        form: &'a Form<'a>,
        forgets: bool,
    ) -> Self {
        let generation = Generation::from_model(&origin.model);
        let wants_all = origin.model.to_ascii_lowercase().contains("deepseek");
        let entries = history::entries(chat.messages, origin);
        let loop_begins = entries.iter().rposition(|entry| matches!(entry, Entry::User(_)));
        let mut messages: Vec<Message<'a>> = Vec::new();
        // Whether the model may think on in the turn so far; `None` before its first answer.
        let mut goes_on = None;
        for (at, entry) in entries.into_iter().enumerate() {
            match entry {
                Entry::User(said) => {
                    let mut blocks = files(said.files, chat.files);
                    // A blank text block is refused.
                    if !said.text.trim().is_empty() || blocks.is_empty() {
                        blocks.push(Block::Text { text: said.text, cache_control: None });
                    }
                    match messages.last_mut() {
                        // Results and what the user says next are one message, the results first.
                        // To the vendor, the turn of those results goes on.
                        Some(Message { role: "user", content }) => content.append(&mut blocks),
                        _ => {
                            goes_on = None;
                            messages.push(Message { role: "user", content: blocks });
                        }
                    }
                }
                Entry::Assistant(turn) => {
                    let is_of_this_run = loop_begins.is_none_or(|begin| at > begin);
                    let recalls = match (forgets, wants_all, is_of_this_run) {
                        // It wants the thoughts of every turn with calls back, signed or not.
                        (false, true, _) => Recalls::All,
                        (false, false, true) => Recalls::Signed,
                        (true, _, _) | (false, false, false) => Recalls::Nothing,
                    };
                    let message = Message { role: "assistant", content: assistant(&turn, recalls) };
                    // These models think at a turn's beginning only, so its later answers need no thought; but those of
                    // another model may have begun a thought that is not here.
                    goes_on = Some(match goes_on {
                        None => message.begins_with_a_thought(),
                        Some(before) => before && (turn.is_ours || message.begins_with_a_thought()),
                    });
                    messages.push(message);
                    if !turn.answers.is_empty() {
                        messages.push(Message { role: "user", content: results(&turn, chat.files) });
                    }
                }
            }
        }
        let tool_choice = tool_choice(chat, form);
        // Who has to call a tool is not asked to think first.
        let is_forced = matches!(tool_choice, Some(ToolChoice::Any | ToolChoice::Tool { .. }));
        let effort = chat.model.effort;
        let thinking =
            generation.thinking(effort, chat.model.max_tokens.unwrap_or_default()).filter(|thinking| match thinking {
                Thinking::Disabled => true,
                Thinking::Adaptive { .. } => !is_forced,
                // Refused when the turn it would go on with began without a thought: another model may have begun it, or a
                // run that stopped before its answer.
                Thinking::Enabled { .. } => !is_forced && goes_on.unwrap_or(true),
            });
        // The next turn of the loop sends all of this again; and the turn before ended with the other mark, which is found
        // again however many results have come since.
        for message in messages.iter_mut().rev().filter(|message| message.role == "user").take(2) {
            message.content.last_mut().into_iter().for_each(Block::mark);
        }
        let budget = match thinking {
            Some(Thinking::Enabled { budget_tokens }) => budget_tokens,
            Some(Thinking::Adaptive { .. } | Thinking::Disabled) | None => 0,
        };
        let (anthropic_version, model) = match version {
            Version::Header(_) => (None, Some(origin.model.as_str())),
            Version::Body(version) => (Some(version), None),
        };
        Self {
            anthropic_version,
            model,
            // The API demands it; where no limit is set, as much as the model can write.
            max_tokens: match chat.model.max_tokens {
                Some(of_answer) => of_answer.saturating_add(budget),
                None => most_tokens(&origin.model),
            },
            stream: true,
            temperature: temperature(chat, generation, version, thinking),
            thinking,
            output_config: output_config(thinking.and_then(|thinking| thinking.effort_word(effort)), form),
            system: system(chat, form),
            messages,
            tools: tools(chat, form),
            tool_choice,
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
    version: Version<'_>,
    thinking: Option<Thinking>,
) -> Option<f64> {
    let wanted = chat.model.temperature?;
    let takes_sampling = match version {
        Version::Header(version) => version == VERSION_WITH_SAMPLING,
        Version::Body(_) => true,
    };
    if takes_sampling && thinking.is_none() && generation.takes_temperature() {
        return Some(wanted.clamp(0.0, 1.0));
    }
    None
}

fn output_config<'a>(effort: Option<&'static str>, form: &'a Form<'a>) -> Option<OutputConfig<'a>> {
    let format = match &form.answer {
        Way::Schema(schema) => Some(OutputFormat::JsonSchema { schema }),
        Way::Free | Way::Tool { .. } | Way::Words(_) => None,
    };
    (effort.is_some() || format.is_some()).then_some(OutputConfig { effort, format })
}

fn tool_choice<'a>(chat: &ChatRequest<'a>, form: &'a Form<'a>) -> Option<ToolChoice<'a>> {
    match (&form.answer, chat.must_call) {
        // Others may be called before it.
        (Way::Tool { .. }, _) if form::has_tools(chat) => Some(ToolChoice::Any),
        (Way::Tool { name, .. }, _) => Some(ToolChoice::Tool { name }),
        _ if chat.tools.is_empty() => None,
        _ if !chat.may_call => Some(ToolChoice::None),
        (_, MustCall::Any) if form.forces_calls => Some(ToolChoice::Any),
        (_, MustCall::This(name)) if form.forces_calls => Some(ToolChoice::Tool { name }),
        (_, _) => None,
    }
}

/// The tools; the last ends with a cache mark, so that runs of other instructions find them too. Not where the client's
/// instructions end with one: there are four. What only this run has stands behind it.
fn tools<'a>(chat: &ChatRequest<'a>, form: &'a Form<'a>) -> Vec<Tool<'a>> {
    let marks = chat.system.client.is_empty();
    let tool = |(number, tool): (usize, &'a std::sync::Arc<ToolDef>)| Tool {
        name: &tool.name,
        description: &tool.description,
        input_schema: schema::with_object_top(&tool.input_schema),
        cache_control: (marks && number == chat.tools.len()).then_some(CacheControl::Ephemeral),
    };
    let answer = match &form.answer {
        Way::Tool { name, description, schema } => {
            Some(Tool { name, description, input_schema: schema::with_object_top(schema), cache_control: None })
        }
        Way::Free | Way::Schema(_) | Way::Words(_) => None,
    };
    (1..).zip(chat.tools).map(tool).chain(answer).collect()
}

/// The instructions end with a cache mark, and the client's; what changes per request stands behind them.
fn system<'a>(chat: &ChatRequest<'a>, form: &'a Form<'a>) -> Vec<Block<'a>> {
    let [instructions, client, context] = chat.system.parts();
    let marked = |text| (text, Some(CacheControl::Ephemeral));
    let words = form.words(chat.must_call).unwrap_or_default();
    let parts = [marked(instructions), marked(client), (context, None), (words, None)]
        .into_iter()
        .filter(|(text, _)| !text.trim().is_empty());
    parts.map(|(text, cache_control)| Block::Text { text: text.into(), cache_control }).collect()
}

/// Which thoughts of a turn its model gets back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recalls {
    Nothing,
    /// Those that are signed. The API binds them to all that stood before them, and by the next run the screen state in
    /// `system` is another: they would be refused. Without any they are not missed.
    Signed,
    All,
}

/// The message's blocks: exactly as they came when a thought of it goes back, since this is checked; else text, then
/// calls.
fn assistant<'a>(turn: &AssistantTurn<'a>, recalls: Recalls) -> Vec<Block<'a>> {
    let recalls = if turn.is_ours { recalls } else { Recalls::Nothing };
    let is_recalled = |part: &AssistantPart| match part {
        AssistantPart::Thinking { replay: None, .. } => recalls == Recalls::All,
        AssistantPart::Thinking { .. } | AssistantPart::Opaque(_) => recalls != Recalls::Nothing,
        AssistantPart::Text { .. } | AssistantPart::ToolCall { .. } => false,
    };
    let goes_back = turn.parts.iter().any(is_recalled);
    let (mut blocks, mut calls) = (Vec::with_capacity(turn.parts.len()), Vec::new());
    for part in turn.parts {
        match part {
            // A blank text block is refused.
            AssistantPart::Text { text, .. } if !text.trim().is_empty() => {
                blocks.push(Block::Text { text: text.into(), cache_control: None });
            }
            AssistantPart::Thinking { text, replay } if is_recalled(part) => {
                let signature = replay.as_ref().map(Replay::raw);
                blocks.push(Block::Thinking { thinking: text, signature: Signature(signature) });
            }
            AssistantPart::Opaque(replay) if is_recalled(part) => blocks.push(Block::Raw(replay.raw())),
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

fn results<'a>(turn: &AssistantTurn<'a>, sent: SentFiles<'a>) -> Vec<Block<'a>> {
    let result = |answer: &history::CallResult<'a>| Block::ToolResult {
        tool_use_id: id(&answer.call.id),
        content: match answer.files {
            // Of a failure it takes text alone, and not none.
            _ if answer.is_error && answer.content.trim().is_empty() => ResultContent::Text(NO_OUTPUT),
            made if made.is_empty() || answer.is_error => ResultContent::Text(answer.content),
            made => {
                let text = Some(answer.content).filter(|text| !text.trim().is_empty());
                let text = text.map(|text| Block::Text { text: text.into(), cache_control: None });
                ResultContent::Blocks(text.into_iter().chain(files(made, sent)).collect())
            }
        },
        is_error: answer.is_error,
        cache_control: None,
    };
    let mut blocks: Vec<Block<'a>> = turn.answers.iter().map(result).collect();
    // They stand behind all results, which have to be first.
    for answer in turn.answers.iter().filter(|answer| answer.is_error && !answer.files.is_empty()) {
        let text = returned_by(&answer.call.name, &id(&answer.call.id)).into();
        blocks.push(Block::Text { text, cache_control: None });
        blocks.extend(files(answer.files, sent));
    }
    blocks
}

/// Files as blocks, which stand best before the text about them (docs.claude.com, Vision).
fn files<'a>(files: impl IntoIterator<Item = &'a FileRef>, sent: SentFiles<'a>) -> Vec<Block<'a>> {
    let source = |data: Data<'a>| Source { media_type: data.kind.media_type(), data };
    let block = |piece| match piece {
        Piece::Image(data) => Block::Image { source: source(data), cache_control: None },
        Piece::Pdf(title, data) => Block::Document { source: source(data), title, cache_control: None },
        Piece::Text(text) => Block::Text { text, cache_control: None },
    };
    pieces(files, sent).into_iter().map(block).collect()
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
            Self::Text { cache_control, .. }
            | Self::Image { cache_control, .. }
            | Self::Document { cache_control, .. }
            | Self::ToolResult { cache_control, .. } => {
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
