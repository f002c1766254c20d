//! The trail: what happened in a conversation, for people who look into it later. Written with what it tells of, never
//! changed.

use super::fate::CallFate;
use super::ids::{ApprovalId, RunId, ToolCallId};
use super::message::ModelOrigin;
use super::preview::Decided;
use super::run::RunState;
use super::stream::{Counted, Usage};
use super::tool::ToolInput;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct TrailEntry {
    /// When, in milliseconds since the Unix epoch; of a thing that took time, when it ended.
    pub at_ms: i64,
    /// In which run; a decision belongs to none.
    pub run: Option<RunId>,
    /// What.
    pub what: TrailEvent,
}

/// The beginning of a text, and how long the whole of it is. People read the trail; whole texts are in the messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Excerpt {
    text: String,
    bytes: usize,
}

impl Excerpt {
    /// 128 KiB are kept: twice what is stored, so that a secret at the cut is seen whole.
    pub const KEPT_BYTES: usize = 128 * 1024;

    /// Adds to the text.
    pub fn push_str(&mut self, more: &str) {
        // Nothing is added behind a part that was left out.
        if self.text.len() == self.bytes {
            let room = Self::KEPT_BYTES.saturating_sub(self.bytes);
            self.text.push_str(&more[..more.floor_char_boundary(room)]);
        }
        self.bytes += more.len();
    }

    /// What is kept of the text.
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

/// What can happen.
#[derive(Debug, Clone, PartialEq)]
pub enum TrailEvent {
    /// A run began with a message.
    UserMessage {
        /// The user's words; what the server wrote for a run that continues another.
        text: String,
        /// Decisions that the model was told with it.
        decisions: Vec<Decided>,
    },
    /// A model was asked.
    ModelTurn {
        /// The turn's number in its run.
        turn: u32,
        /// Who answered; `None` when nobody did.
        origin: Option<ModelOrigin>,
        /// What the vendor calls the request.
        request_id: Option<String>,
        /// What it said.
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
        /// What the model was told.
        result: String,
        /// How it went.
        fate: CallFate,
        /// How long it took.
        duration_ms: u64,
        /// Whether it was a write that had been dispatched; the audit record tells what came of it.
        sent: bool,
    },
    /// A user decided a preview.
    PreviewDecided(Decided),
    /// A call that waited for somebody's approval waits no more, or was let through by somebody with the role.
    ApprovalDecided {
        /// The approval.
        approval: ApprovalId,
        /// The tool.
        tool: String,
        /// What was said to it.
        verdict: ApprovalVerdict,
        /// Who said it, where that was not the run's own user.
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
        /// What it cost.
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
            Self::RunEnded { .. } => "run_ended",
        }
    }
}

/// What was said to a call that waited for approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalVerdict {
    /// Somebody with the role let it through.
    Granted,
    /// Its user had it made.
    Approved,
    /// It was turned down.
    Rejected,
    /// Nobody said anything in time.
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
