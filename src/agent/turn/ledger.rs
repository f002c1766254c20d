//! The use of a run: model calls, calls of tools, tokens and money.

use crate::agent::ports::store::Used;
use crate::agent::spend::tally::Tally;
use crate::chat::cost::{Cost, Sum};
use crate::chat::message::Message;
use crate::chat::stream::{Counted, Spent, Usage};

/// The account of a run.
#[derive(Default)]
pub(super) struct Ledger {
    /// The use of the runs before it that its message began too.
    before: Used,
    /// Its own use.
    pub(super) own: Used,
    pub(super) usage: Usage,
    pub(super) cost: Sum,
    /// Charges that the store has not got yet.
    spent: Vec<Spent>,
    /// How many of them the store has.
    committed: u32,
    /// Counts the model call that is under way.
    pub(super) tally: Option<Tally>,
}

impl Ledger {
    /// That of a run before which its chain has used so much.
    pub(super) fn after(before: Used) -> Self {
        Self { before, ..Self::default() }
    }

    /// The use of its chain of runs so far.
    pub(super) fn used(&self) -> Used {
        let Self { before, own, .. } = self;
        Used {
            model_calls: before.model_calls.saturating_add(own.model_calls),
            tool_calls: before.tool_calls.saturating_add(own.tool_calls),
        }
    }

    /// Counts a model call that is about to be made.
    pub(super) fn count_model_call(&mut self) {
        self.own.model_calls = self.own.model_calls.saturating_add(1);
    }

    /// Counts calls of tools that the model has made.
    pub(super) fn count_tool_calls(&mut self, calls: usize) {
        self.own.tool_calls = self.own.tool_calls.saturating_add(u32::try_from(calls).unwrap_or(u32::MAX));
    }

    /// Counts what a vendor has reported of a model call, for what the run tells of itself.
    pub(super) fn report(&mut self, usage: Usage, cost: Option<Cost>) {
        self.usage += usage;
        self.cost.add(cost);
    }

    /// Adds what helpers have used.
    pub(super) fn add(&mut self, usage: Usage, cost: Sum, spent: Vec<Spent>) {
        self.usage += usage;
        self.cost.join(cost);
        self.spent.extend(spent);
    }

    /// Takes what the store has not got.
    pub(super) fn take_spent(&mut self) -> Vec<Spent> {
        std::mem::take(&mut self.spent)
    }

    /// Charges a model call with the next commit.
    pub(super) fn charge(&mut self, spent: Spent) {
        self.spent.push(spent);
    }

    /// The usage of the model call that is under way with `messages`.
    pub(super) fn under_way(&self, messages: &[Message]) -> Option<Counted> {
        Some(self.tally.as_ref()?.count(messages))
    }

    /// The charges that the store has not got yet, and which one the first of them is.
    pub(super) fn uncommitted(&self) -> (u32, &[Spent]) {
        (self.committed, &self.spent)
    }

    /// The store has them all now.
    pub(super) fn mark_committed(&mut self) {
        self.committed += u32::try_from(self.spent.len()).unwrap_or(u32::MAX);
        self.spent.clear();
    }
}
