//! The calls of a run that wait, and counts of the conversation's.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tokio::sync::OnceCell;

use crate::agent::ports::plans::TakenPlan;
use crate::agent::ports::store::DecidedCall;
use crate::chat::approval::Approval;
use crate::chat::ids::{PlanId, ToolCallId};
use crate::chat::plan::PlanEvent;
use crate::chat::tool::{ToolCall, ToolOutput};

/// A plan that waits for a person.
pub(super) struct Paused {
    /// Its id.
    pub(super) plan: PlanId,
    /// As it is told.
    pub(super) told: PlanEvent,
    /// The call that carries it out.
    pub(super) call: ToolCallId,
    /// What the model reads of that call where the run ends in another way than by waiting.
    pub(super) otherwise: ToolOutput,
}

/// A plan that was paused, for the run to carry it on.
pub(super) struct Resuming {
    /// The plan; `None` where it has ended meanwhile.
    pub(super) taken: Option<TakenPlan>,
    /// The decision on a call of it.
    pub(super) decided: DecidedCall,
    /// Where the assistant is that makes the plan.
    pub(super) maker: Maker,
}

/// Where the assistant is that makes a plan which goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Maker {
    /// Where the run begins.
    Here,
    /// The conversation has left its kind of screen, and goes on elsewhere.
    Elsewhere,
    /// It is not there any more, or not for this caller.
    Gone,
}

impl Resuming {
    /// The kind of screen whose assistant makes the plan, where that is noted.
    pub(super) fn made_at(&self) -> Option<&str> {
        self.taken.as_ref()?.context_type.as_deref()
    }

    /// Whether another assistant than that of this kind of screen has to go on with it first.
    pub(super) fn is_made_elsewhere(&self, context_type: &str) -> bool {
        self.maker == Maker::Elsewhere && self.made_at() != Some(context_type)
    }
}

/// Calls that wait, and what the conversation has already of what is counted.
#[derive(Default)]
pub(super) struct Pending {
    /// Calls that wait for a decision.
    pub(super) approvals: Vec<Approval>,
    /// Their ids in the transcript.
    pub(super) held: Vec<ToolCallId>,
    /// The plan that waits for decisions on calls of it, of this run or of earlier ones.
    pub(super) paused: Option<Paused>,
    /// Whether other calls of the helper wait, of earlier runs.
    pub(super) others_wait: bool,
    /// Calls that are left to the client.
    pub(super) left: Vec<ToolCall>,
    /// Calls that earlier runs have left waiting; `None` until they are counted.
    pub(super) waiting_before: Option<usize>,
    /// Calls that the run and its helpers have held, or are about to hold.
    pub(super) counted: Arc<AtomicUsize>,
    /// Payloads of the conversation with those of the run and its helpers; empty until they are counted.
    pub(super) payloads: Arc<OnceCell<AtomicUsize>>,
}

impl Pending {
    /// Whether a call of the run waits for a person.
    pub(super) fn holds(&self) -> bool {
        !self.approvals.is_empty() || self.paused.is_some()
    }

    /// Whether the run cannot go on before a person has decided something.
    pub(super) fn is_for_a_person(&self) -> bool {
        self.holds() || self.others_wait
    }
}
