//! Labels of conversations, made by a helper behind the scenes. No request waits for them; what fails changes nothing, and may
//! be asked for again.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::busy::{Busy, Of};
use crate::agent::ports::sessions::SessionStore;
use crate::agent::ports::store_error::StoreError;
use crate::agent::prompt::labels::{labelling, read};
use crate::agent::prompt::one_call::OneCallError;
use crate::agent::turn::context::Agent;
use crate::chat::caller::Owner;
use crate::chat::causes::Causes;
use crate::chat::ids::ConversationId;
use crate::chat::labels::Labels;
use crate::chat::message::Message;
use crate::chat::model::{Helper, ModelChoice};
use crate::chat::session::Session;
use crate::observe::spans;

/// Makes labels.
pub(super) struct Labelling {
    pub(super) sessions: Arc<dyn SessionStore>,
    pub(super) writer: Helper,
    pub(super) agent: Arc<Agent>,
    pub(super) tasks: TaskTracker,
    pub(super) draining: CancellationToken,
    pub(super) busy: Arc<Busy>,
}

/// Why there are no labels.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    #[error("the model failed")]
    Model(#[from] OneCallError),
    #[error("the model's answer has none")]
    Unusable,
    #[error("the store failed")]
    Store(#[from] StoreError),
}

impl Labelling {
    /// Whether anybody makes labels.
    pub(super) fn is_on(&self) -> bool {
        self.writer != Helper::Off
    }

    /// Makes labels of `session` in a task of its own; whether it will.
    pub(super) fn queue(self: &Arc<Self>, session: &Session, of: Of) -> bool {
        let profile = self.agent.profiles.of_type(&session.context_type);
        let same = profile.map(|profile| profile.models.choice.clone());
        let model = match (&self.writer, same) {
            (Helper::SameModel, same) => same,
            (writer, Some(same)) => writer.choice(&same),
            (_, None) => None,
        };
        let Some(model) = model else { return false };
        // Labels that are being made are as good.
        let Some(turn) = self.busy.take(of) else { return true };
        let (labelling, span) = (self.clone(), spans::agent_labels(&turn.of().1));
        let task = async move {
            let (owner, id) = turn.of();
            match labelling.make((owner, id), &model).await {
                Ok(true) => tracing::info!("conversation labelled"),
                Ok(false) => {}
                Err(error) => tracing::warn!(error = %Causes(&error), "conversation not labelled"),
            }
        };
        self.tasks.spawn(task.instrument(span));
        true
    }

    /// Whether labels were made; not where nothing is there any more, or it is not the time for it.
    async fn make(&self, (owner, id): (&Owner, &ConversationId), model: &ModelChoice) -> Result<bool, Failed> {
        let Some(labels) = self.labels((owner, id), model).await? else { return Ok(false) };
        self.sessions.label(owner, id, &labels).await?;
        Ok(true)
    }

    /// The labels of a conversation; `None` where nothing is there any more, or it is not the time for it.
    pub(super) async fn labels(
        &self,
        (owner, id): (&Owner, &ConversationId),
        model: &ModelChoice,
    ) -> Result<Option<Labels>, Failed> {
        let Some((_, runs)) = self.sessions.session_runs(owner, id, None).await? else { return Ok(None) };
        if self.draining.is_cancelled() || !self.agent.is_within_budget(owner).await {
            return Ok(None);
        }
        let messages: Vec<Message> = runs.into_iter().flat_map(|run| run.messages).collect();
        let at_ms = self.agent.clock.now_ms();
        let answer = self.agent.answer(owner, labelling(model, &messages), self.draining.cancelled()).await?;
        let Some(answer) = answer else { return Ok(None) };
        Ok(Some(read(&answer, at_ms).ok_or(Failed::Unusable)?))
    }
}
