//! How far a run may go.

use std::time::Duration;

/// The bounds of a run; 0 means none.
#[derive(Debug, Clone, Copy)]
pub struct RunLimits {
    /// Model calls in a run; 20 by the protocol (section 3).
    pub max_turns: u32,
    /// Tool calls in a run.
    pub max_tool_calls: u32,
    /// The arguments of one call, as JSON; in bytes.
    pub tool_arguments_bytes: usize,
    /// A run's whole time.
    pub wall: Duration,
    /// How long a call waits for an approval; never without end.
    pub approval: Duration,
    /// How long a run waits for a summary of what it does not read: one that takes longer serves the next run.
    pub summary_wait: Duration,
    /// How long a run that goes on behind a decision waits for the next one on a call of the same turn; zero is not at all.
    pub decisions: Duration,
    /// The same call so often in a row is not made any more.
    pub repeated_calls: u32,
    /// Calls that may wait for approval in a conversation; 100 is all that is counted.
    pub approvals: usize,
    /// Payloads that a conversation keeps.
    pub payloads: usize,
    /// Those of plans.
    pub plans: PlanLimits,
}

/// The bounds of plans and sub-agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlanLimits {
    /// Steps of one plan that are carried out at once.
    pub parallel: usize,
    /// Steps of a plan.
    pub max_steps: usize,
    /// Calls of tools by the steps of a plan that no sub-agent carries out.
    pub max_tool_calls: usize,
    /// Calls of tools by one sub-agent.
    pub agent_tool_calls: u32,
    /// The time of one sub-agent.
    pub agent: Duration,
    /// Whether a plan is carried out whose review cannot be used.
    pub unreviewed: bool,
}
