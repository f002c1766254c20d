//! What the model sees when a turn begins: the user's words, what this run has done so far, what the screen shows, and
//! what earlier messages left behind. Scripts ask it for tool results; a result that is not there yet ends the turn.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::history::{self, Draft, PendingConfig, as_json};
use crate::agent::ports::llm::ChatRequest;
use crate::chat::message::{Author, Message, UserMessage};
use crate::chat::preview::Decided;
use crate::chat::tool::{ToolCall, ToolDef, ToolInput};

/// The moment a turn begins.
pub(super) struct Scene<'a> {
    /// What the user said last.
    pub text: &'a str,
    /// What the user decided since the run before.
    pub decisions: &'a [Decided],
    /// Earlier user messages, newest first.
    pub said_before: Vec<&'a str>,
    /// What the assistant answered to each of them, newest first; empty where it only called tools.
    pub answers_before: Vec<String>,
    /// The state of the user's screen; empty when the request brought none.
    pub screen: Map<String, Value>,
    /// The draft that earlier messages were building.
    pub draft: Option<Draft>,
    /// A table configuration that was previewed and not decided yet.
    pub pending_config: Option<PendingConfig>,
    /// The id of the table configuration that earlier messages showed last; it is meant where no screen says otherwise.
    pub shown_config: Option<String>,
    tools: &'a [Arc<ToolDef>],
    done: Vec<Done<'a>>,
}

/// A call this run has made, with its result.
struct Done<'a> {
    call: &'a ToolCall,
    result: Value,
    is_error: bool,
}

/// A call that a script wants made.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Planned {
    /// The tool.
    pub tool: Cow<'static, str>,
    /// Its arguments.
    pub input: Map<String, Value>,
}

/// Why a script stopped before its end.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Pause {
    /// It needs this call's result.
    Call(Planned),
    /// It needs a tool that this screen does not offer.
    NotOffered(&'static str),
    /// A tool failed, in the tool's words.
    Failed {
        /// The tool.
        tool: &'static str,
        /// What it said.
        error: String,
    },
    /// There is nothing more to do but say this.
    Say(String),
}

/// What a script comes to: words for the user, or a pause.
pub(super) type Script<T = String> = Result<T, Pause>;

impl<'a> Scene<'a> {
    /// The scene of `request`; `None` when nobody has said anything.
    pub(super) fn read(request: &ChatRequest<'a>) -> Option<Self> {
        // Whoever is asked to go on is asked their question again, with what has been done for it.
        let is_question =
            |message: &Message| matches!(message, Message::User(said) if said.author != Author::Continuation);
        let last_user = request.messages.iter().rposition(is_question)?;
        let (before, run) = request.messages.split_at(last_user);
        let [Message::User(UserMessage { text, decisions, .. }), run @ ..] = run else { return None };
        let exchanges = history::exchanges(before);
        let done = history::calls_with_results(run)
            .map(|(call, result)| Done { call, result: as_json(&result.content), is_error: result.fate.is_error() })
            .collect();
        Some(Self {
            text,
            decisions,
            said_before: exchanges.iter().map(|(said, _)| *said).collect(),
            answers_before: exchanges.into_iter().map(|(_, answer)| answer).collect(),
            screen: screen_state(&request.system.context),
            draft: history::draft(before),
            pending_config: history::pending_config(request.messages, last_user),
            shown_config: history::shown_config(before),
            tools: request.tools,
            done,
        })
    }

    /// How many calls this run has made.
    pub(super) fn calls_made(&self) -> usize {
        self.done.len()
    }

    /// Whether `tool` may be called.
    pub(super) fn offers(&self, tool: &str) -> bool {
        self.tools.iter().any(|def| def.name == tool)
    }

    /// Whether this is the screen of the table configurations.
    pub(super) fn is_tables(&self) -> bool {
        self.offers("get_table_config") || self.offers("preview_table_config")
    }

    /// The non-empty text at `key` of the screen's state.
    pub(super) fn screen_str(&self, key: &str) -> Option<&str> {
        self.screen.get(key)?.as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    /// The result of a call. A failed one ends the script.
    pub(super) fn ask(&self, tool: &'static str, input: Value) -> Script<&Value> {
        self.attempt(tool, input)?.map_err(|error| Pause::Failed { tool, error })
    }

    /// The result of a call that may fail: then in the tool's words.
    pub(super) fn attempt(&self, tool: &'static str, input: Value) -> Script<Result<&Value, String>> {
        let Value::Object(input) = input else { return Err(Pause::NotOffered(tool)) };
        let made = |done: &&Done<'_>| {
            done.call.name == tool && matches!(&done.call.input, ToolInput::Object(given) if *given == input)
        };
        if let Some(done) = self.done.iter().find(made) {
            return Ok(match done.is_error {
                true => Err(error_text(&done.result)),
                false => Ok(&done.result),
            });
        }
        match self.offers(tool) {
            true => Err(Pause::Call(Planned { tool: tool.into(), input })),
            false => Err(Pause::NotOffered(tool)),
        }
    }
}

/// The text of `{"error": "…"}`, or whatever else a failed tool said.
fn error_text(result: &Value) -> String {
    match result.get("error").unwrap_or(result) {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The screen's state: the last fenced JSON block of the system prompt's context.
fn screen_state(context: &str) -> Map<String, Value> {
    const FENCE: &str = "```json\n";
    let Some(block) = context.rfind(FENCE).and_then(|at| context.get(at + FENCE.len()..)) else { return Map::new() };
    let json = block.rsplit_once("\n```").map_or(block, |(json, _)| json);
    serde_json::from_str(json).unwrap_or_default()
}

/// One turn's answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Answer {
    /// Text for the user; may be empty when there are calls.
    pub text: String,
    /// Calls to make.
    pub calls: Vec<Planned>,
}
