//! `[plans]`, `[helpers]` and `[titles]`: the bounds of plans and sub-agents, and who does the jobs around them and runs.

use std::time::Duration;

use serde::Deserialize;

use crate::agent::spend::limits::PlanLimits;
use crate::agent::turn::context;
use crate::chat::model::Helper;

/// `[plans]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlansConfig {
    /// Steps of one plan that are carried out at once, sub-agents among them.
    pub parallel: usize,
    /// Steps of a plan; one with more is no plan.
    pub max_steps: usize,
    /// Calls of tools by the steps of a plan that no sub-agent carries out.
    pub max_tool_calls: usize,
    /// Calls of tools by one sub-agent; 0 means no limit.
    pub executor_tool_calls: u32,
    /// Seconds of one sub-agent; 0 means no limit.
    pub executor_s: u64,
    /// What a review counts as that cannot be used: `hold` or `approve`.
    pub on_reviewer_failure: String,
}

impl PlansConfig {
    /// The bounds for the loop.
    pub fn limits(&self) -> PlanLimits {
        PlanLimits {
            parallel: self.parallel,
            max_steps: self.max_steps,
            max_tool_calls: self.max_tool_calls,
            agent_tool_calls: self.executor_tool_calls,
            agent: Duration::from_secs(self.executor_s),
            unreviewed: self.on_reviewer_failure == "approve",
        }
    }
}

/// `[helpers]`: `provider:model`, empty for the model that answers the run, `off` for nobody.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Helpers {
    /// Writes the steps of plans.
    pub plan: String,
    /// Reviews plans.
    pub review: String,
    /// Carries out steps and tasks.
    pub executor: String,
    /// Says whether an assistant knows enough to begin.
    pub clarify: String,
    /// Gives conversations their labels.
    pub title: String,
    /// Answers beside all conversations.
    pub message: String,
}

/// `[titles]`: titles of conversations that have none, made behind their runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Titles {
    /// Makes them: as in `[helpers]`.
    pub model: String,
}

/// The models of all jobs beside runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jobs {
    /// Summarises what no longer fits.
    pub summary: Helper,
    /// See [`Helpers`].
    pub plan: Helper,
    /// See [`Helpers`].
    pub review: Helper,
    /// See [`Helpers`].
    pub executor: Helper,
    /// See [`Helpers`].
    pub clarify: Helper,
    /// See [`Helpers`].
    pub title: Helper,
    /// See [`Helpers`].
    pub message: Helper,
    /// See [`Titles`].
    pub titles: Helper,
}

impl Jobs {
    /// All of them.
    pub fn all(&self) -> [&Helper; 8] {
        let Self { summary, plan, review, executor, clarify, title, message, titles } = self;
        [summary, plan, review, executor, clarify, title, message, titles]
    }

    /// Those of the loop.
    pub fn of_runs(&self) -> context::Helpers {
        let Self { summary: _, plan, review, executor, clarify, title: _, message, titles: _ } = self.clone();
        context::Helpers { plan, review, executor, clarify, message }
    }
}
