//! Summaries of messages that no longer fit a conversation's history, made after a run has ended: no request waits for
//! one. A message that is not summarised is left out of the next run's history, as it would be without.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::busy::{Busy, Of};
use crate::agent::ports::store_error::StoreError;
use crate::agent::ports::summaries::{Keep, NewSummary, SummaryStore};
use crate::agent::prompt::one_call::OneCallError;
use crate::agent::prompt::summary::summarising;
use crate::agent::turn::context::Agent;
use crate::chat::caller::Owner;
use crate::chat::causes::Causes;
use crate::chat::ids::RunId;
use crate::chat::model::{Helper, ModelChoice};
use crate::chat::state::tokens_of;
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
    pub(super) busy: Arc<Busy>,
}

/// Why there is no summary.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("it could not be made")]
    Made(#[from] OneCallError),
    #[error("it could not be kept")]
    Kept(#[from] StoreError),
}

impl Summaries {
    /// Summarises what is no longer to be read after `run`, which has ended and was answered by `model`, in a task of its
    /// own; where `keep` says so, all but so many of the newest messages. It is given up when the server drains; what fails
    /// is tried again after the next run.
    pub(super) fn after(self: &Arc<Self>, run: RunId, of: Of, model: &ModelChoice, keep: Option<usize>) {
        let Some(model) = self.by.writer.choice(model) else { return };
        let span = spans::agent_summary(&run, &of.1);
        let Some(turn) = self.busy.take(of) else { return };
        let summaries = self.clone();
        let task = async move { summaries.make(run, &turn.of().0, &model, keep).await };
        self.tasks.spawn(task.instrument(span));
    }

    async fn make(&self, run: RunId, owner: &Owner, model: &ModelChoice, keep: Option<usize>) {
        match self.try_make(run, owner, model, keep).await {
            Ok(None) => {}
            Ok(Some(bytes)) => tracing::info!(summary_bytes = bytes, "older part of a conversation summarised"),
            // Deleted meanwhile.
            Err(Failed::Kept(StoreError::RunEnded)) => {}
            Err(error) => tracing::warn!(error = %Causes(&error), "older part of a conversation not summarised"),
        }
    }

    /// How long the new summary is; `None` when there was nothing to summarise, or it was not to be made now.
    async fn try_make(
        &self,
        run: RunId,
        owner: &Owner,
        model: &ModelChoice,
        keep: Option<usize>,
    ) -> Result<Option<usize>, Failed> {
        let agent = &self.by.agent;
        let keep = Keep { bytes: self.history_bytes, messages: keep };
        let Some(what) = self.store.unsummarised(run, keep).await? else { return Ok(None) };
        if self.draining.is_cancelled() || !agent.is_within_budget(owner).await {
            return Ok(None);
        }
        let call = summarising(model, &what, self.history_bytes);
        let Some(text) = agent.answer(owner, call, self.draining.cancelled()).await? else { return Ok(None) };
        let summary = NewSummary { text, original_tokens: what.stands_for.saturating_add(tokens_of(&what.messages)) };
        self.store.keep_summary(what.upto, &summary).await?;
        Ok(Some(summary.text.len()))
    }
}
