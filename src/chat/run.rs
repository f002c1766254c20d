//! A run as its owner sees it from outside: its state, what it cost, how it ended.

use super::cost::Cost;
use super::failure::Failure;
use super::ids::{ConversationId, RunId};
use super::stream::Usage;
use super::tool::ToolCall;

/// Who has no use for a run any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CancelledBy {
    /// Its user.
    User,
    /// The next message of its conversation, which takes its place.
    NextMessage,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunState {
    /// It waits until the runs before it in its conversation have ended.
    Queued,
    /// It runs.
    Running,
    /// It ended with a call that its user has to approve.
    AwaitingApproval,
    /// It ended with an answer.
    Completed,
    /// It ended with an error.
    Failed,
    /// Its client went away, or requested the stop.
    Cancelled,
    /// The server that ran it stopped.
    Interrupted,
}

impl RunState {
    /// All states.
    pub const ALL: [Self; 7] = [
        Self::Queued,
        Self::Running,
        Self::AwaitingApproval,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Interrupted,
    ];

    /// Its name on every wire and in the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }

    /// The state of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether it has ended without an answer, and can be gone on with.
    pub fn broke_off(self) -> bool {
        match self {
            Self::Failed | Self::Cancelled | Self::Interrupted => true,
            Self::Queued | Self::Running | Self::AwaitingApproval | Self::Completed => false,
        }
    }

    /// Whether it runs or will run.
    pub fn is_live(self) -> bool {
        match self {
            Self::Queued | Self::Running => true,
            Self::AwaitingApproval | Self::Completed | Self::Failed | Self::Cancelled | Self::Interrupted => false,
        }
    }
}

/// A run as the store knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// Its id.
    pub id: RunId,
    /// Its conversation.
    pub conversation: ConversationId,
    /// Where it stands.
    pub state: RunState,
    /// The profile that answers, by the `context_type` that selects it.
    pub context_type: String,
    /// Model calls that have ended.
    pub turns: u32,
    /// Their tokens together.
    pub usage: Usage,
    /// Their cost together, where every one of them has a price and came to its end.
    pub cost: Option<Cost>,
    /// Why it failed.
    pub error: Option<Failure>,
    /// When it was requested, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// When it ended.
    pub finished_at_ms: Option<i64>,
    /// The id of its newest event that the store knows of; `None` before the first.
    pub last_event_id: Option<u64>,
    /// The HTTP request that began it; errors in its stream name it.
    pub request_id: String,
    /// Whether it goes on without readers.
    pub background: bool,
    /// Whether it asks no model: it makes a call of its client's own.
    pub direct: bool,
    /// The run that it continues.
    pub continues: Option<RunId>,
    /// The calls that it ended with and left to its client.
    pub left: Vec<ToolCall>,
}
