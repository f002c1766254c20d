//! The trail: the acts in a conversation, for people who look into it later. Each entry is written with its act, and
//! never changed.

use super::directive::DirectiveNotice;
use super::fate::CallFate;
use super::ids::{ApprovalId, RunId, ToolCallId};
use super::message::ModelOrigin;
use super::preview::Decided;
use super::run::RunState;
use super::stream::{Counted, Usage};
use super::tool::{CallNote, ToolInput};

/// An entry.
#[derive(Debug, Clone, PartialEq)]
pub struct TrailEntry {
    /// When, in milliseconds since the Unix epoch; of a thing that took time, when it ended.
    pub at_ms: i64,
    /// In which run; a decision belongs to none.
    pub run: Option<RunId>,
    /// The act.
    pub what: TrailEvent,
}

/// The beginning of a text, and how long the whole of it is. People read the trail; whole texts are in the messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Excerpt {
    text: String,
    bytes: usize,
}

impl Excerpt {
    /// 128 KiB are kept: twice as much as is stored, so that a secret at the cut is seen whole.
    pub const KEPT_BYTES: usize = 128 * 1024;

    /// Adds to the text.
    pub fn push_str(&mut self, more: &str) {
        // Nothing is added behind a part that was left out.
        if self.text.len() == self.bytes {
            let left = Self::KEPT_BYTES.saturating_sub(self.bytes);
            self.text.push_str(&more[..more.floor_char_boundary(left)]);
        }
        self.bytes += more.len();
    }

    /// The part of the text that is kept.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Bytes of the whole text.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl<'a> FromIterator<&'a str> for Excerpt {
    fn from_iter<T: IntoIterator<Item = &'a str>>(texts: T) -> Self {
        let mut all = Self::default();
        texts.into_iter().for_each(|text| all.push_str(text));
        all
    }
}

/// The act of an entry.
#[derive(Debug, Clone, PartialEq)]
pub enum TrailEvent {
    /// A run began with a message.
    UserMessage {
        /// The user's words; what the server wrote for a run that continues another.
        text: String,
        /// Decisions that the model read with it.
        decisions: Vec<Decided>,
    },
    /// A model was called.
    ModelTurn {
        /// The turn's number in its run.
        turn: u32,
        /// The model that answered; `None` when none did.
        origin: Option<ModelOrigin>,
        /// The vendor's id of the request.
        request_id: Option<String>,
        /// Its text.
        text: Excerpt,
        /// Its reasoning.
        thinking: Excerpt,
        /// The tools it called, by name.
        calls: Vec<String>,
        /// How it ended: `stop`, `length`, …, or the code of an error.
        finish: String,
        /// Token counts: the vendor's, or of an answer that broke off an estimate; `None` where there are none.
        usage: Option<Counted>,
        /// How long it took.
        duration_ms: u64,
    },
    /// A tool was called.
    ToolCall {
        /// The turn that called it.
        turn: u32,
        /// The call.
        id: ToolCallId,
        /// The tool.
        name: String,
        /// Its arguments.
        arguments: ToolInput,
        /// The text for the model.
        result: String,
        /// How it went.
        fate: CallFate,
        /// How long it took.
        duration_ms: u64,
        /// Whether it was a write that had been dispatched; the audit record tells what came of it.
        sent: bool,
        /// What is known of it besides.
        note: Option<CallNote>,
    },
    /// A user decided a preview.
    PreviewDecided(Decided),
    /// A directive that a call has requested is in another state.
    Directive(DirectiveNotice),
    /// A call that waited for an approval waits no more, or was let through by a user with the role.
    ApprovalDecided {
        /// The approval.
        approval: ApprovalId,
        /// The tool.
        tool: String,
        /// The verdict on it.
        verdict: ApprovalVerdict,
        /// The user who decided, where that was not the run's own.
        by: Option<String>,
        /// Why, in their words.
        comment: Option<String>,
    },
    /// A run ended.
    RunEnded {
        /// How.
        state: RunState,
        /// The code and message of its error.
        error: Option<(String, String)>,
        /// Its usage.
        usage: Usage,
    },
}

impl TrailEvent {
    /// The entry's kind on the wire.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::UserMessage { .. } => "user_message",
            Self::ModelTurn { .. } => "model_turn",
            Self::ToolCall { .. } => "tool_call",
            Self::PreviewDecided(_) => "preview_decided",
            Self::ApprovalDecided { .. } => "approval_decided",
            Self::Directive(_) => "directive",
            Self::RunEnded { .. } => "run_ended",
        }
    }
}

/// The verdict on a call that waited for approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalVerdict {
    /// A user with the role let it through.
    Granted,
    /// Its user had it made.
    Approved,
    /// It was turned down.
    Rejected,
    /// It was not decided in time.
    Expired,
}

impl ApprovalVerdict {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
        }
    }
}
