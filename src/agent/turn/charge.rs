//! Charges for model calls: for every one of them, however it ended. Those of a live run go to the store with its next
//! commit; the others, which no commit brings there, by themselves.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::context::{Agent, Turns};
use super::state::Transcript;
use crate::agent::ports::store_error::StoreError;
use crate::agent::prompt::one_call::{OneCall, OneCallError};
use crate::chat::caller::Owner;
use crate::chat::causes::Causes;
use crate::chat::cost::Cost;
use crate::chat::message::ModelOrigin;
use crate::chat::stream::{Counted, Spent, Usage};
use crate::observe::metrics;

/// A charge that takes longer has failed: whatever waits for it should not wait any more.
const CHARGE_LIMIT: Duration = Duration::from_secs(5);

impl Agent {
    /// Whether the owner has budget left. While that is unknown it is true: usage is charged all the same.
    pub async fn is_within_budget(&self, owner: &Owner) -> bool {
        match self.budgets.check(owner).await {
            Ok(over) => over.is_none(),
            Err(error) => {
                tracing::warn!(error = %Causes(&error), "a budget was not looked at");
                true
            }
        }
    }

    /// The answer to `call`, which belongs to no run, charged to the owner; `None` where it is given up before.
    ///
    /// # Errors
    /// When there is no answer of use.
    pub async fn answer(
        &self,
        owner: &Owner,
        mut call: OneCall,
        given_up: impl Future<Output = ()>,
    ) -> Result<Option<String>, OneCallError> {
        let answer = tokio::select! {
            biased;
            () = given_up => None,
            answer = call.make(&*self.llm) => Some(answer),
        };
        // Also what cannot be used has been paid for.
        if let Some((origin, usage)) = call.used() {
            self.charge(owner, origin, usage).await;
        }
        answer.transpose()
    }

    async fn charge(&self, owner: &Owner, origin: Arc<ModelOrigin>, usage: Usage) {
        let spent = self.spent(origin, usage);
        self.budgets.spend(owner, usage, spent.cost).await;
        self.charge_now(owner, &[spent]).await;
    }

    /// Charges what the last commit of a run would have charged, where the store takes it no more: its user may have
    /// deleted the conversation.
    pub(super) async fn charge_rest(&self, owner: &Owner, transcript: &Transcript) {
        self.charge_now(owner, transcript.uncommitted().spent).await;
    }

    async fn charge_now(&self, owner: &Owner, spent: &[Spent]) {
        let charged = timeout(CHARGE_LIMIT, self.budgets.charge(owner, spent)).await;
        if let Err(error) = charged.unwrap_or_else(|late| Err(StoreError::Unavailable(late.into()))) {
            tracing::warn!(error = %Causes(&error), "what model calls have used was not charged");
        }
    }

    /// The charge for a model call with this usage.
    pub(super) fn spent(&self, origin: Arc<ModelOrigin>, usage: Usage) -> Spent {
        let cost = self.prices.cost(&origin, Some(usage));
        if let Some(cost) = cost {
            metrics::cost(&origin.provider, &origin.model, cost.usd());
        }
        Spent { at_ms: self.clock.now_ms(), origin, usage, cost }
    }
}

impl Turns<'_> {
    /// Charges a model call that has come to its end. Returns its cost, where its vendor has reported its usage.
    pub(super) async fn charge_ended(
        &self,
        transcript: &mut Transcript,
        origin: Arc<ModelOrigin>,
        reported: Option<Usage>,
    ) -> Option<Cost> {
        let usage = reported.or_else(|| Some(transcript.under_way()?.usage));
        let spent = self.agent.spent(origin, usage.unwrap_or_default());
        let cost = reported.and(spent.cost);
        transcript.ledger.tally = None;
        transcript.ledger.report(reported.unwrap_or_default(), cost);
        self.charge(transcript, spent).await;
        cost
    }

    /// Charges the model call that is under way, if there is one: the run ends before it, and its vendor charges for it all
    /// the same.
    pub(super) async fn charge_broken_off(&self, transcript: &mut Transcript) {
        let Some(Counted { usage, .. }) = transcript.under_way() else { return };
        // Before an answer it is the first of the models that may answer.
        let first = || self.model.models.first().cloned().map(Arc::new);
        let origin = transcript.answered_by.as_ref().map(|(origin, _)| origin.clone()).or_else(first);
        let Some(origin) = origin else { return };
        let spent = self.agent.spent(origin, usage);
        self.charge(transcript, spent).await;
    }

    async fn charge(&self, transcript: &mut Transcript, spent: Spent) {
        let Spent { usage, cost, .. } = spent;
        // First of all, so that a stop while a budget hears of it loses nothing and charges nothing twice.
        transcript.ledger.charge(spent);
        self.agent.budgets.spend(&self.cx.caller.owner, usage, cost).await;
    }
}
