//! The part of a helper in a run. One that is dropped in the middle of its work leaves to the run what it has used and
//! sent all the same.

use std::sync::Arc;

use super::aside::{Aside, Left};
use super::context::{Agent, Turns};
use super::state::Transcript;
use crate::chat::artifact::{CallArtifact, HelperOf};
use crate::chat::model::ModelChoice;
use crate::chat::place::Place;
use crate::chat::stream::{Counted, Usage};
use crate::chat::trail::TrailEvent;

/// The transcript of a helper. When it is dropped, what it holds for the run is left aside.
pub(super) struct Part<'a> {
    pub(super) transcript: Transcript,
    pub(super) agent: &'a Agent,
    /// The models that it asks.
    pub(super) model: &'a ModelChoice,
    pub(super) aside: &'a Aside,
    /// Who it is for readers; `None` where nothing is told of it.
    pub(super) helper: Option<HelperOf>,
}

impl Part<'_> {
    /// What it has used so far.
    pub(super) fn usage(&self) -> Usage {
        self.transcript.ledger.usage
    }

    /// Where it has moved the conversation, if it has.
    pub(super) fn moved(&self) -> Option<Place> {
        self.transcript.moves.uncommitted().cloned()
    }

    /// Ends what is open: each call has a result then, and the model call that was under way its price.
    pub(super) fn settle(&mut self) {
        let Self { transcript, agent, model, aside, helper: _ } = self;
        if let Some(Counted { usage, .. }) = transcript.under_way() {
            let first = || model.models.first().cloned().map(Arc::new);
            let origin = transcript.answered_by.as_ref().map(|(origin, _)| origin.clone()).or_else(first);
            if let Some(origin) = origin {
                let spent = agent.spent(origin, usage);
                let mut left = aside.lock();
                left.uncounted.push((usage, spent.cost));
                left.spent.push(spent);
            }
        }
        transcript.settle("stopped", agent.clock.now_ms());
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.settle();
        let Self { transcript, agent: _, model: _, aside, helper } = self;
        let made = std::mem::take(&mut transcript.artifacts).into_iter();
        let made = made.map(|made| CallArtifact { helper: helper.clone(), ..made });
        let mentions = transcript.about.take_mentions();
        let mut left = aside.lock();
        left.usage += transcript.ledger.usage;
        left.cost.join(transcript.ledger.cost);
        left.spent.append(&mut transcript.ledger.take_spent());
        left.payloads.append(&mut transcript.payloads);
        left.artifacts.extend(made);
        left.approvals.append(&mut transcript.pending.approvals);
        left.mentions.extend(mentions);
        let moved = transcript.moves.uncommitted().cloned();
        left.moved = moved.or_else(|| left.moved.take());
        let sent = transcript.take_trail().into_iter().map(|entry| entry.what);
        left.writes.extend(sent.filter(|what| matches!(what, TrailEvent::ToolCall { sent: true, .. })));
    }
}

impl Turns<'_> {
    /// Takes over what helpers have left.
    pub(super) async fn absorb(&self, transcript: &mut Transcript) {
        let left = std::mem::take(&mut *transcript.aside.lock());
        let Left {
            usage,
            cost,
            spent,
            uncounted,
            payloads,
            artifacts,
            writes,
            approvals,
            paused,
            // The run ends, and with it what is told.
            broken_off: _,
            mentions,
            moved,
            told,
        } = left;
        transcript.ledger.add(usage, cost, spent);
        transcript.payloads.extend(payloads);
        transcript.artifacts.extend(artifacts);
        transcript.helped.extend(writes);
        transcript.pending.approvals.extend(approvals);
        transcript.pending.paused = paused.or(transcript.pending.paused.take());
        mentions.into_iter().for_each(|found| transcript.about.join(found));
        if let Some(place) = moved {
            let is_told = told.as_deref() == Some(&place);
            transcript.moves.adopt(place, is_told);
        }
        for (usage, cost) in uncounted {
            self.agent.budgets.spend(&self.cx.caller.owner, usage, cost).await;
        }
    }
}
