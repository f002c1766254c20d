//! Summaries of messages that no longer fit a conversation's history, made after a run has ended. A run that begins before
//! there is one waits for it; where none can be had, it goes on without, and what does not fit is left out.

use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::busy::{Busy, Of};
use crate::agent::ports::store_error::StoreError;
use crate::agent::ports::summaries::{CatchUp, Extent, HistoryBound, Keep, NewSummary, Past, SummaryStore};
use crate::agent::prompt::one_call::OneCallError;
use crate::agent::prompt::summary::{parts, summarising};
use crate::agent::turn::context::Agent;
use crate::agent::turn::recall::Recall;
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
        let summaries = self.clone();
        let task = async move {
            // What another task leaves to be done is done behind it.
            let turn = summaries.busy.wait(&of).await;
            summaries.make(run, &turn.of().0, &model, keep).await;
        };
        self.tasks.spawn(task.instrument(span));
    }

    /// What `run`, which begins, does about what it does not read: of its past it reads as much as `extent` says.
    pub(super) fn recall(
        self: &Arc<Self>,
        (run, of): (RunId, Of),
        model: &ModelChoice,
        (bound, extent): (HistoryBound, Extent),
    ) -> Recall {
        if extent == Extent::Whole {
            return Recall::Nothing;
        }
        match (self.by.writer.choice(model), extent) {
            (None, _) => Recall::Nothing,
            (Some(_), Extent::Whole | Extent::Summarised) => Recall::Told,
            (Some(model), Extent::Partial) => {
                Recall::Awaited(Box::new(Awaited { summaries: self.clone(), run, of, model, bound }))
            }
        }
    }

    async fn make(&self, run: RunId, owner: &Owner, model: &ModelChoice, keep: Option<usize>) -> Made {
        match self.try_make(run, owner, model, keep).await {
            Ok(None) => Made::Nothing,
            Ok(Some(bytes)) => {
                tracing::info!(summary_bytes = bytes, "older part of a conversation summarised");
                Made::Summary
            }
            // Deleted meanwhile.
            Err(Failed::Kept(StoreError::RunEnded)) => Made::Nothing,
            Err(error) => {
                tracing::warn!(error = %Causes(&error), "older part of a conversation not summarised");
                Made::Nothing
            }
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
        let keep = Keep { bytes: self.history_bytes, messages: keep };
        let Some(what) = self.store.unsummarised(run, keep).await? else { return Ok(None) };
        let original_tokens = what.stands_for.saturating_add(tokens_of(&what.messages));
        let mut text = what.before;
        for messages in parts(&what.messages, self.history_bytes) {
            if self.draining.is_cancelled() || !self.by.agent.is_within_budget(owner).await {
                return Ok(None);
            }
            let call = summarising(model, text.as_deref(), messages);
            let Some(answer) = self.by.agent.answer(owner, call, self.draining.cancelled()).await? else {
                return Ok(None);
            };
            text = Some(answer);
        }
        let Some(text) = text else { return Ok(None) };
        let summary = NewSummary { text, original_tokens };
        self.store.keep_summary(what.upto, &summary).await?;
        Ok(Some(summary.text.len()))
    }
}

/// What came of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    /// There is a summary of more than before.
    Summary,
    /// There is not.
    Nothing,
}

/// A run that waits for a summary of what it does not read.
struct Awaited {
    summaries: Arc<Summaries>,
    run: RunId,
    of: Of,
    model: ModelChoice,
    bound: HistoryBound,
}

#[async_trait]
impl CatchUp for Awaited {
    async fn past(&self) -> Option<Past> {
        let Self { summaries, run, of, model, bound } = self;
        loop {
            // One that is being made after the run before is waited for, and not made twice.
            let turn = summaries.busy.wait(of).await;
            let past = match summaries.store.past(*run, *bound).await {
                Ok(past) => past,
                Err(error) => {
                    tracing::warn!(error = %Causes(&error), "what was said before was not read again");
                    return None;
                }
            };
            if past.extent != Extent::Partial {
                return Some(past);
            }
            let (summaries, run, model) = (summaries.clone(), *run, model.clone());
            let span = spans::agent_summary(&run, &of.1);
            let task = async move { summaries.make(run, &turn.of().0, &model, None).await };
            // It goes on when the run is stopped: the next one needs it too.
            let making = self.summaries.tasks.spawn(task.instrument(span));
            if !matches!(making.await, Ok(Made::Summary)) {
                return Some(past);
            }
        }
    }
}
