//! Summaries of messages that no longer fit a conversation's history, made after a run has ended: no request waits for
//! one. A message that is not summarised is left out of the next run's history, as it would be without.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::agent::ports::conversations::SummaryStore;
use crate::agent::ports::store_error::StoreError;
use crate::agent::prompt::summary::{Summarising, SummaryError};
use crate::agent::turn::context::Agent;
use crate::chat::caller::Owner;
use crate::chat::causes::Causes;
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::model::{Helper, ModelChoice};
use crate::observe::spans;

/// The writer of summaries, and who charges for them.
pub struct Summariser {
    /// The writer.
    pub writer: Helper,
    /// Charges what they use to the users whose conversations they are of.
    pub agent: Arc<Agent>,
}

/// Makes summaries.
pub(super) struct Summaries {
    pub(super) store: Arc<dyn SummaryStore>,
    pub(super) by: Summariser,
    pub(super) history_bytes: usize,
    pub(super) tasks: TaskTracker,
    pub(super) draining: CancellationToken,
    /// The conversations that are being summarised: one summary at a time in each.
    pub(super) busy: Mutex<HashSet<Of>>,
}

/// A conversation.
pub(super) type Of = (Owner, ConversationId);

/// Why there is no summary.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("it could not be made")]
    Made(#[from] SummaryError),
    #[error("it could not be kept")]
    Kept(#[from] StoreError),
}

impl Summaries {
    /// Summarises what no longer fits after `run`, which has ended and was answered by `model`, in a task of its own.
    /// It is given up when the server drains; what fails is tried again after the next run.
    pub(super) fn after(self: &Arc<Self>, run: RunId, of: Of, model: &ModelChoice) {
        let Some(model) = self.by.writer.choice(model) else { return };
        let span = spans::agent_summary(&run, &of.1);
        let Some(turn) = Turn::take(self.clone(), of) else { return };
        let task = async move { turn.summaries.make(run, &turn.of.0, &model).await };
        self.tasks.spawn(task.instrument(span));
    }

    async fn make(&self, run: RunId, owner: &Owner, model: &ModelChoice) {
        match self.try_make(run, owner, model).await {
            Ok(None) => {}
            Ok(Some(bytes)) => tracing::info!(summary_bytes = bytes, "older part of a conversation summarised"),
            // Deleted meanwhile.
            Err(Failed::Kept(StoreError::RunEnded)) => {}
            Err(error) => tracing::warn!(error = %Causes(&error), "older part of a conversation not summarised"),
        }
    }

    /// How long the new summary is; `None` when there was nothing to summarise, or it was not to be made now.
    async fn try_make(&self, run: RunId, owner: &Owner, model: &ModelChoice) -> Result<Option<usize>, Failed> {
        let agent = &self.by.agent;
        let Some(what) = self.store.unsummarised(run, self.history_bytes).await? else { return Ok(None) };
        if self.draining.is_cancelled() || !agent.is_within_budget(owner).await {
            return Ok(None);
        }
        let mut summarising = Summarising::new(model, &what, self.history_bytes);
        let made = tokio::select! {
            biased;
            () = self.draining.cancelled() => None,
            made = summarising.make(&*agent.llm) => Some(made),
        };
        // Also what cannot be used has been paid for.
        if let Some((origin, usage)) = summarising.used() {
            agent.charge(owner, origin, usage).await;
        }
        let Some(summary) = made.transpose()? else { return Ok(None) };
        self.store.keep_summary(what.upto, &summary).await?;
        Ok(Some(summary.len()))
    }
}

/// A conversation's turn to be summarised, given back when dropped.
struct Turn {
    summaries: Arc<Summaries>,
    of: Of,
}

impl Turn {
    /// The conversation's turn; `None` while another task has it.
    fn take(summaries: Arc<Summaries>, of: Of) -> Option<Self> {
        let is_free = summaries.busy.lock().unwrap_or_else(PoisonError::into_inner).insert(of.clone());
        // Only made when it is: dropping one gives the turn back.
        is_free.then(|| Self { summaries, of })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.summaries.busy.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.of);
    }
}
