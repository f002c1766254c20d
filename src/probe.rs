//! `check-config --probe`: what a model really does, found out with three small calls: a word, a sentence that should come in
//! pieces, and a tool call. Nothing is repeated and no fallback answers: this is about one model.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use futures::StreamExt;
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use crate::agent::ports::llm::{
    ChatRequest, LlmProvider, MustCall, ProviderError, ProviderErrorKind, SentFiles, SystemPrompt,
};
use crate::chat::causes::Causes;
use crate::chat::message::{Message, ModelOrigin, UserMessage};
use crate::chat::model::ModelChoice;
use crate::chat::stream::{CallSlot, FinishReason, StreamEvent};
use crate::chat::tool::{ToolDef, ToolInput};

/// 40 characters in one piece are no stream; fewer may be all that one token was.
const LONG_ENOUGH: usize = 40;

/// 300 characters of what went wrong are enough in a line.
const MAX_TROUBLE_CHARS: usize = 300;

const SYSTEM: &str = "You are being tested. Do exactly what you are asked, and nothing else.";
const WORD: &str = "Reply with the single word: ready";
const SENTENCE: &str = "Write the numbers from one to twenty as English words, in one line.";
const CALL: &str = "Call the tool choose_colour with the colour green.";
const TOOL: &str = "choose_colour";
const COLOURS: [&str; 3] = ["red", "green", "blue"];

/// The results for one model.
#[derive(Debug, Clone)]
pub struct Report {
    /// Provider, and model with its options where these are not the default.
    names: [String; 2],
    /// Whether it answers with text.
    answers: Finding,
    /// Whether its text comes in pieces.
    streams: Finding,
    /// Whether it calls a tool with valid arguments.
    tools: Finding,
    /// Whether it says how many tokens were used.
    usage: Finding,
    /// How long its first token took.
    first_token: Option<Duration>,
    /// What went wrong, in words.
    trouble: Option<String>,
}

/// The result for one ability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Finding {
    Yes,
    No,
    /// Not found out.
    Unknown,
}

impl Finding {
    fn from_flag(is_so: bool) -> Self {
        if is_so { Self::Yes } else { Self::No }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unknown => "?",
        })
    }
}

impl Report {
    /// An empty report on `origin`, with the options of `choice`.
    fn blank(origin: &ModelOrigin, choice: Option<&ModelChoice>) -> Self {
        let temperature = choice.and_then(|choice| choice.temperature).map(|t| format!(" temperature={t}"));
        let effort = choice.and_then(|choice| choice.effort).map(|effort| format!(" effort={}", effort.name()));
        let model = [Some(origin.model.clone()), temperature, effort].into_iter().flatten().collect();
        Self {
            names: [origin.provider.clone(), model],
            answers: Finding::Unknown,
            streams: Finding::Unknown,
            tools: Finding::Unknown,
            usage: Finding::Unknown,
            first_token: None,
            trouble: None,
        }
    }

    /// A model that could not even be called.
    pub fn not_probed(origin: &ModelOrigin, why: &str) -> Self {
        Self { answers: Finding::No, trouble: Some(line(why)), ..Self::blank(origin, None) }
    }

    /// Whether the model does all that the product needs.
    pub fn is_good(&self) -> bool {
        self.answers == Finding::Yes && self.streams != Finding::No && self.tools == Finding::Yes
    }
}

/// The reports as a table: a line of titles, then one line per model.
pub fn table(reports: &[Report]) -> Vec<String> {
    let width = |column: usize, title: &str| {
        let longest = reports.iter().filter_map(|report| report.names.get(column)).map(|name| name.chars().count());
        longest.max().unwrap_or_default().max(title.len())
    };
    let (provider, model) = (width(0, "provider"), width(1, "model"));
    let titles = format!("{:provider$}  {:model$}  answers  streams  tools  first token  usage", "provider", "model");
    let rows = reports.iter().map(|report| {
        let Report { names: [first, second], answers, streams, tools, usage, first_token, trouble } = report;
        let first_token = first_token.map_or_else(|| "?".to_owned(), |wait| format!("{} ms", wait.as_millis()));
        let row = format!(
            "{first:provider$}  {second:model$}  {answers:7}  {streams:7}  {tools:5}  {first_token:11}  {usage:5}"
        );
        match trouble {
            Some(trouble) => format!("{row}  {trouble}"),
            None => row.trim_end().to_owned(),
        }
    });
    std::iter::once(titles).chain(rows).collect()
}

/// Asks the first model of `choice`, which `provider` is, for at most `limit`.
pub async fn probe(provider: &dyn LlmProvider, origin: &ModelOrigin, choice: &ModelChoice, limit: Duration) -> Report {
    // A time that no clock reaches is a day.
    let now = Instant::now();
    let deadline = now.checked_add(limit).unwrap_or_else(|| now + Duration::from_secs(86_400));
    let mut report = Report::blank(origin, Some(choice));
    report.trouble = try_all(provider, choice, deadline, &mut report).await.err().map(|trouble| line(&trouble));
    report
}

/// The three calls; the first that fails ends it, in words.
async fn try_all(
    provider: &dyn LlmProvider,
    choice: &ModelChoice,
    deadline: Instant,
    report: &mut Report,
) -> Result<(), String> {
    report.answers = Finding::No;
    let word = ask(provider, choice, WORD, &[], deadline).await.map_err(|error| words(&error))?;
    report.first_token = word.first_token;
    report.usage = Finding::from_flag(word.has_usage);
    if word.text.trim().is_empty() {
        return Err(match word.reason {
            FinishReason::Length => match choice.max_tokens {
                Some(tokens) => format!("no text within {tokens} tokens"),
                None => "no text within the model's own limit".to_owned(),
            },
            FinishReason::Stop => "the answer was empty".to_owned(),
            FinishReason::ContentFilter | FinishReason::Refusal => "the model declined to answer".to_owned(),
        });
    }
    report.answers = Finding::Yes;

    let sentence = ask(provider, choice, SENTENCE, &[], deadline).await;
    let sentence = sentence.map_err(|error| format!("streams: {}", words(&error)))?;
    report.streams = match sentence.pieces {
        0 | 1 if sentence.text.chars().count() < LONG_ENOUGH => Finding::Unknown,
        pieces => Finding::from_flag(pieces > 1),
    };

    report.tools = Finding::No;
    let called = ask(provider, choice, CALL, &[tool().into()], deadline).await;
    let called = called.map_err(|error| format!("tools: {}", words(&error)))?;
    let (name, arguments) = called.calls.into_values().next().ok_or("tools: it answered without a call")?;
    let colour = match ToolInput::parse(&arguments) {
        ToolInput::Object(fields) => fields.get("colour").and_then(|colour| colour.as_str()).map(str::to_owned),
        ToolInput::Invalid(_) => None,
    };
    if name != TOOL || !colour.is_some_and(|colour| COLOURS.contains(&colour.as_str())) {
        return Err(format!("tools: it called {name} with {arguments}"));
    }
    report.tools = Finding::Yes;
    Ok(())
}

/// A complete answer, with how it came.
struct Answer {
    text: String,
    /// How many pieces of text there were.
    pieces: usize,
    /// Name and arguments of each call.
    calls: HashMap<CallSlot, (String, String)>,
    first_token: Option<Duration>,
    has_usage: bool,
    reason: FinishReason,
}

async fn ask(
    provider: &dyn LlmProvider,
    model: &ModelChoice,
    question: &str,
    tools: &[std::sync::Arc<ToolDef>],
    deadline: Instant,
) -> Result<Answer, ProviderError> {
    let system = SystemPrompt { instructions: SYSTEM.into(), client: String::new(), context: String::new() };
    let messages = [Message::User(UserMessage::new(question))];
    let request = ChatRequest {
        system: &system,
        messages: &messages,
        files: SentFiles::default(),
        tools,
        may_call: true,
        must_call: MustCall::No,
        format: None,
        model,
        deadline: Some(deadline),
    };
    let answer = timeout_at(deadline, read(provider, request)).await;
    answer.unwrap_or_else(|_| Err(ProviderError::new(ProviderErrorKind::TimedOut, "the probe's time is up")))
}

async fn read(provider: &dyn LlmProvider, request: ChatRequest<'_>) -> Result<Answer, ProviderError> {
    let began = Instant::now();
    let mut stream = provider.stream_chat(request).await?;
    let (mut text, mut pieces, mut calls, mut first_token) = (String::new(), 0, HashMap::new(), None);
    while let Some(event) = stream.events.next().await {
        match event? {
            StreamEvent::Text(piece) if piece.is_empty() => {}
            StreamEvent::Text(piece) => {
                first_token.get_or_insert_with(|| began.elapsed());
                text.push_str(&piece);
                pieces += 1;
            }
            StreamEvent::Thinking(_) => {
                first_token.get_or_insert_with(|| began.elapsed());
            }
            StreamEvent::ToolCallStarted { slot, name, .. } => {
                first_token.get_or_insert_with(|| began.elapsed());
                calls.insert(slot, (name, String::new()));
            }
            StreamEvent::ToolCallInput { slot, json } => {
                if let Some((_, arguments)) = calls.get_mut(&slot) {
                    arguments.push_str(&json);
                }
            }
            StreamEvent::Replay { .. } | StreamEvent::Used(_) => {}
            StreamEvent::Finished { reason, usage } => {
                return Ok(Answer { text, pieces, calls, first_token, has_usage: usage.is_some(), reason });
            }
        }
    }
    Err(ProviderError::new(ProviderErrorKind::Truncated, "the stream ended without a finish"))
}

fn tool() -> ToolDef {
    ToolDef {
        name: TOOL.to_owned(),
        description: "Chooses a colour.".to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {"colour": {"type": "string", "enum": COLOURS, "description": "The colour to choose."}},
            "required": ["colour"],
        }),
    }
}

/// Our code and sentence, then the vendor's words.
fn words(error: &ProviderError) -> String {
    let request = error.request_id.as_ref().map(|id| format!(" (request {id})")).unwrap_or_default();
    format!("{}: {}{request}", error.kind.code().name(), Causes(&*error.detail))
}

/// `text` as part of one line.
fn line(text: &str) -> String {
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()).collect();
    words.join(" ").chars().take(MAX_TROUBLE_CHARS).collect()
}
