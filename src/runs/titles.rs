//! Titles of conversations that have none, made by a helper behind a run. What fails is tried again behind the next one.
//!
//! **Invariant:** a title that somebody gave stays: the store takes none where there is one.

use std::sync::Arc;

use tracing::Instrument;

use super::busy::{Busy, Of};
use super::labels::{Failed, Labelling};
use crate::agent::ports::titles::TitleStore;
use crate::chat::causes::Causes;
use crate::chat::model::{Helper, ModelChoice};
use crate::observe::spans;

/// Makes titles.
pub(super) struct Titles {
    pub(super) store: Arc<dyn TitleStore>,
    pub(super) writer: Helper,
    /// A title is one of the labels of a conversation.
    pub(super) by: Arc<Labelling>,
    pub(super) busy: Arc<Busy>,
}

impl Titles {
    /// Gives the conversation of a run, which has ended and was answered by `model`, a title where it has none, in a task of
    /// its own.
    pub(super) fn after(self: &Arc<Self>, of: Of, model: &ModelChoice) {
        let Some(model) = self.writer.choice(model) else { return };
        // Whoever makes one already makes it of as much.
        let Some(turn) = self.busy.take(of) else { return };
        let (titles, span) = (self.clone(), spans::agent_labels(&turn.of().1));
        let task = async move {
            match titles.make(turn.of(), &model).await {
                Ok(true) => tracing::info!("conversation titled"),
                Ok(false) => {}
                Err(error) => tracing::warn!(error = %Causes(&error), "conversation not titled"),
            }
        };
        self.by.tasks.spawn(task.instrument(span));
    }

    /// Whether it has one of ours now.
    async fn make(&self, (owner, id): &Of, model: &ModelChoice) -> Result<bool, Failed> {
        if self.store.is_titled(owner, id).await? {
            return Ok(false);
        }
        let Some(labels) = self.by.labels((owner, id), model).await? else { return Ok(false) };
        Ok(self.store.entitle(owner, id, &labels.title).await?)
    }
}
