//! The port of plans and of the work of sub-agents.
//!
//! **Invariant:** what a run keeps of its plans it keeps only while it lives. When it ends, however that is, so does what it
//! has begun: a plan of a run that is gone never says that it is carried out. One that waits for a person is paused with its run.

use async_trait::async_trait;

use super::store_error::StoreError;
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, PlanId, RunId};
use crate::chat::message::Message;
use crate::chat::place::Place;
use crate::chat::plan::{Execution, Plan, Step};

/// Keeps what a run does with its plans.
#[async_trait]
pub trait PlanCommits: Send + Sync {
    /// Keeps a plan as it is now, with all of its steps. Those of one that has ended are kept already, by
    /// [`keep_steps`](Self::keep_steps).
    ///
    /// # Errors
    /// When the run has ended, or it could not be committed.
    async fn keep_plan(&self, of: OfRun<'_>, plan: &Plan) -> Result<(), StoreError>;

    /// Keeps steps of a plan as they are now, and where the run and its conversation are with them.
    ///
    /// # Errors
    /// When the run has ended, or it could not be committed.
    async fn keep_steps(&self, of: OfRun<'_>, plan: PlanId, now: StepsNow<'_>) -> Result<(), StoreError>;

    /// Keeps the work of a sub-agent as it is now; of one that waits for a person also what it has said and read.
    ///
    /// # Errors
    /// When the run has ended, or it could not be committed.
    async fn keep_execution(&self, of: OfRun<'_>, work: &Execution, transcript: &[Message]) -> Result<(), StoreError>;

    /// Takes a plan of the run's conversation that waits so, for this run to carry it out and no other one; `None` where
    /// there is none of that id. The run that has made it does not get it: its user has not seen it.
    ///
    /// # Errors
    /// When the run has ended, or it could not be committed.
    async fn take_plan(&self, of: OfRun<'_>, plan: PlanId, waits: Waits) -> Result<Option<TakenPlan>, StoreError>;

    /// The newest plans of the owner's conversation that wait, oldest first.
    ///
    /// # Errors
    /// When they could not be read.
    async fn waiting_plans(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        most: u32,
    ) -> Result<Vec<WaitingPlan>, StoreError>;
}

/// Plans as their owners see them.
#[async_trait]
pub trait PlanRecords: Send + Sync {
    /// The owner's plan of that id.
    ///
    /// # Errors
    /// When it could not be read.
    async fn plan(&self, owner: &Owner, plan: PlanId) -> Result<Option<PlanRecord>, StoreError>;

    /// The newest plans of the owner's conversation, newest first.
    ///
    /// # Errors
    /// When they could not be read.
    async fn plans(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        most: u32,
    ) -> Result<Vec<PlanRecord>, StoreError>;

    /// The kind of screen whose assistant makes the owner's plan; `None` where that is not noted, or there is none of that id.
    ///
    /// # Errors
    /// When it could not be read.
    async fn made_at(&self, owner: &Owner, plan: PlanId) -> Result<Option<String>, StoreError>;

    /// Drops the owner's plan that waits, which is cancelled then; whether it has waited, `None` where there is none.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn drop_plan(&self, owner: &Owner, plan: PlanId) -> Result<Option<bool>, StoreError>;
}

/// Steps of a plan as they are now.
#[derive(Debug, Clone, Copy)]
pub struct StepsNow<'a> {
    /// Each with whether it may change something: where its process dies, nobody knows then whether it has.
    pub steps: &'a [(&'a Step, bool)],
    /// Where the conversation is, if one of them has moved it.
    pub place: Option<&'a Place>,
}

/// How a plan waits that is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// Nothing of it has begun.
    ToBegin,
    /// It was paused: a call of it has to be decided.
    ToGoOn,
}

/// A plan that was taken.
#[derive(Debug, Clone)]
pub struct TakenPlan {
    /// The plan.
    pub plan: Plan,
    /// The kind of screen whose assistant makes it; `None` of those before this was noted.
    pub context_type: Option<String>,
    /// Its sub-agents that wait for a person.
    pub agents: Vec<PausedAgent>,
}

/// A sub-agent that waits for a person.
#[derive(Debug, Clone)]
pub struct PausedAgent {
    /// Its work so far.
    pub work: Execution,
    /// What it has said and read, behind what it was asked.
    pub transcript: Vec<Message>,
}

/// The run that keeps something.
#[derive(Debug, Clone, Copy)]
pub struct OfRun<'a> {
    /// Its owner.
    pub owner: &'a Owner,
    /// Its conversation.
    pub conversation: &'a ConversationId,
    /// The run.
    pub run: RunId,
    /// The kind of screen whose assistant goes on in it.
    pub context_type: &'a str,
}

/// A plan, where it belongs and who has carried out its steps.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanRecord {
    /// The plan.
    pub plan: Plan,
    /// Its conversation.
    pub conversation: ConversationId,
    /// The run that has made it, or that carries it out.
    pub run: RunId,
    /// The work of its sub-agents, oldest first.
    pub executions: Vec<Execution>,
}

/// A plan that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingPlan {
    /// Its id.
    pub id: PlanId,
    /// What it is for.
    pub objective: String,
}
