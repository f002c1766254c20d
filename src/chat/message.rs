//! The conversation as the model must see it again: exact, ordered, with whatever opaque data its vendor wants back.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::file::FileRef;
use super::preview::Decided;
use super::tool::{ToolCall, ToolResult};
use crate::bounded::json::JsonText;

/// One entry of a conversation's history.
#[derive(Debug, Clone)]
pub enum Message {
    /// The user's message.
    User(UserMessage),
    /// The model's text and calls.
    Assistant(AssistantMessage),
    /// The results of all calls of the assistant message before it, in call order.
    ToolResults(Vec<ToolResult>),
}

impl Message {
    /// The files that belong to it, in order.
    pub fn files(&self) -> Box<dyn DoubleEndedIterator<Item = &FileRef> + Send + '_> {
        match self {
            Self::User(user) => Box::new(user.files.iter()),
            Self::Assistant(_) => Box::new(std::iter::empty()),
            Self::ToolResults(results) => Box::new(results.iter().flat_map(|result| &result.files)),
        }
    }
}

/// The author of a message in the user's role.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Author {
    /// The user.
    #[default]
    User,
    /// The server: a summary of earlier messages.
    Summary,
    /// The server: an interrupted answer is to be continued.
    Continuation,
    /// The server: a call that waited has been decided.
    Decision,
    /// The server: the client has answered calls that were left to it.
    ClientResults,
    /// The server, within a run: the answer is to be given again in another way.
    Correction,
    /// The server, within a run: the answer is to be given with what was found.
    LastAnswer,
    /// The server, within a run: a tool has moved the conversation.
    Move,
}

impl Author {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::User,
        Self::Summary,
        Self::Continuation,
        Self::Decision,
        Self::ClientResults,
        Self::Correction,
        Self::LastAnswer,
        Self::Move,
    ];

    /// Its name in stored rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Summary => "summary",
            Self::Continuation => "continuation",
            Self::Decision => "decision",
            Self::ClientResults => "client_results",
            Self::Correction => "correction",
            Self::LastAnswer => "last_answer",
            Self::Move => "move",
        }
    }

    /// The author of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|author| author.name() == name)
    }
}

/// A user's message, with the decisions outside the conversation since the last one.
#[derive(Debug, Clone, PartialEq)]
pub struct UserMessage {
    /// Its author.
    pub author: Author,
    /// The user's words, or the server's.
    pub text: String,
    /// Previews the user decided since the previous run; the model reads them once, with this message.
    pub decisions: Vec<Decided>,
    /// Other acts of the user, in words of ours; the model reads them after the text.
    pub note: Option<String>,
    /// Files that belong to it, in order.
    pub files: Vec<FileRef>,
    /// The form of its answer, where the runs that go on behind decisions have it too:
    /// [`to_text`](super::answer_format::AnswerFormat::to_text).
    pub form: Option<Arc<str>>,
}

impl UserMessage {
    /// A message of the user with nothing to report besides.
    pub fn new(text: impl Into<String>) -> Self {
        Self::by(Author::User, text)
    }

    /// A message of `author` with nothing to report besides.
    pub fn by(author: Author, text: impl Into<String>) -> Self {
        Self { author, text: text.into(), decisions: Vec::new(), note: None, files: Vec::new(), form: None }
    }

    /// The text for the model: the decisions, one bracketed line each, then the user's words, then the note.
    pub fn model_text(&self) -> String {
        let mut text = String::new();
        for decided in &self.decisions {
            text.push_str(&decided.sentence());
            text.push('\n');
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&self.text);
        if let Some(note) = &self.note {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(note);
        }
        text
    }
}

/// The model's output of one turn, in the order it came.
#[derive(Debug, Clone)]
pub struct AssistantMessage {
    /// The model that wrote it; replay data is only valid for the same origin.
    pub origin: Arc<ModelOrigin>,
    /// Text, thinking and calls, in stream order.
    pub parts: Vec<AssistantPart>,
}

impl AssistantMessage {
    /// The message's text parts, joined.
    pub fn text(&self) -> String {
        self.texts().collect()
    }

    /// The message's text parts.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            AssistantPart::Text { text, .. } => Some(text.as_str()),
            AssistantPart::Thinking { .. } | AssistantPart::ToolCall { .. } | AssistantPart::Opaque(_) => None,
        })
    }

    /// The message's calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            AssistantPart::ToolCall { call, .. } => Some(call),
            AssistantPart::Text { .. } | AssistantPart::Thinking { .. } | AssistantPart::Opaque(_) => None,
        })
    }
}

/// One piece of an assistant message. `replay` is opaque vendor data that goes back unchanged on the same piece.
#[derive(Debug, Clone)]
pub enum AssistantPart {
    /// Text for the user.
    Text {
        /// May be empty when it only carries replay data.
        text: String,
        /// A signature, where the vendor signs text.
        replay: Option<Replay>,
    },
    /// Reasoning; never sent to clients of the native dialect.
    Thinking {
        /// May be empty when the vendor sends a signature alone.
        text: String,
        /// The vendor's signature.
        replay: Option<Replay>,
    },
    /// A tool call.
    ToolCall {
        /// The call.
        call: ToolCall,
        /// A signature, or other fields to echo with the call.
        replay: Option<Replay>,
    },
    /// A whole piece that only its vendor understands (e.g. redacted thinking).
    Opaque(Replay),
}

impl AssistantPart {
    /// Whether a user or the loop has anything of it: text that is not blank, or a call.
    pub fn is_visible(&self) -> bool {
        match self {
            Self::Text { text, .. } => !text.trim().is_empty(),
            Self::ToolCall { .. } => true,
            Self::Thinking { .. } | Self::Opaque(_) => false,
        }
    }
}

/// Opaque JSON of a vendor, kept byte for byte.
#[derive(Debug, Clone)]
pub struct Replay(JsonText);

impl Replay {
    /// Keeps `json` as it is.
    pub fn new(json: Box<RawValue>) -> Self {
        Self(json.into())
    }

    /// The JSON.
    pub fn raw(&self) -> &RawValue {
        self.0.raw()
    }
}

/// Which vendor and model produced a message.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelOrigin {
    /// The provider's name in the configuration: `gemini`, `claude`, `ollama`, `openai`, `bedrock`, `vertex`, `demo`.
    pub provider: String,
    /// The model as configured.
    pub model: String,
}
