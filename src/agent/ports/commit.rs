//! What a run commits while it goes on, and with its end.

use std::sync::Arc;

use super::names::Name;
use crate::chat::answer::Answer;
use crate::chat::approval::Approval;
use crate::chat::artifact::CallArtifact;
use crate::chat::clarification::Clarification;
use crate::chat::cost::Cost;
use crate::chat::failure::Failure;
use crate::chat::ids::PlanId;
use crate::chat::message::Message;
use crate::chat::payload::Payload;
use crate::chat::place::Place;
use crate::chat::run::RunState;
use crate::chat::state::{ContextUsage, Recap};
use crate::chat::stream::{Spent, Usage};
use crate::chat::tool::ToolCall;
use crate::chat::trail::{TrailEntry, TrailEvent};

/// The use of all runs of a chain: one message began them, and each goes on from a result or a decision on an earlier
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    /// Model calls.
    pub model_calls: u32,
    /// Calls of tools.
    pub tool_calls: u32,
}

/// The changes of a run since its last commit.
#[derive(Debug, Clone, Copy)]
pub struct Commit<'a> {
    /// The number of the first of `messages` in the run; 0 is the user's message.
    pub first: u32,
    /// Messages; calls and their results together.
    pub messages: &'a [Message],
    /// The number of the first of `trail` in the run; 0 is the user's message, which `begin_run` writes.
    pub first_entry: u32,
    /// Its trail.
    pub trail: &'a [TrailEntry],
    /// Where the conversation is now, if it was moved since.
    pub place: Option<&'a Place>,
    /// Payloads; one that is there already is kept as it is.
    pub payloads: &'a [Arc<Payload>],
    /// The number of the first of `artifacts` in the run, from 0.
    pub first_artifact: u32,
    /// What tools have made for the client's screen.
    pub artifacts: &'a [CallArtifact],
    /// Model calls that have ended, in all; the call that was approved is one of them.
    pub turns: u32,
    /// The use of the run itself, in all.
    pub used: Used,
    /// Their tokens, in all.
    pub usage: Usage,
    /// Their cost, where every one of them has a price.
    pub cost: Option<Cost>,
    /// The number of the first of `spent` in the run, from 0.
    pub first_spent: u32,
    /// The usage of model calls since the last commit, as their vendors report it: added to what the owner has used
    /// that day, once, however often the commit is repeated.
    pub spent: &'a [Spent],
    /// Writes of helpers that have ended since the last commit, for the audit record.
    pub helped: &'a [TrailEvent],
    /// Whether the run has begun plans or sub-agents, which end with it.
    pub has_plans: bool,
}

/// How a run ends.
#[derive(Debug, Clone, Copy)]
pub struct RunEnd<'a> {
    /// A state that is not live.
    pub state: RunState,
    /// Why it failed.
    pub error: Option<&'a Failure>,
    /// Its answer as its user saw it; `None` where that is the text of its one message.
    pub answer: Option<&'a Answer>,
    /// The calls that wait for a decision; only with [`RunState::AwaitingApproval`].
    pub approvals: &'a [Approval],
    /// The plan that waits with it; only with [`RunState::AwaitingApproval`].
    pub paused: Option<PlanId>,
    /// The calls that are left to its client; only with [`RunState::Completed`].
    pub left: &'a [ToolCall],
    /// What it leaves of the state of its conversation.
    pub state_left: StateLeft<'a>,
    /// The id of its terminal event.
    pub last_event_id: u64,
}

/// What a run leaves of the state of its conversation; nothing of what is `None` changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StateLeft<'a> {
    /// What it was about.
    pub recap: Option<&'a Recap>,
    /// How much of the conversation its model has read.
    pub context_usage: Option<&'a ContextUsage>,
    /// What things are called, oldest first.
    pub names: &'a [Name],
    /// What was said and asked before an answer.
    pub clarification: Left<&'a Clarification>,
}

/// What becomes of a part of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Left<T> {
    /// It stays as it is.
    #[default]
    Same,
    /// There is none any more.
    Nothing,
    /// It is this.
    Is(T),
}
