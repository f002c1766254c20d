//! Answers beside all conversations, within the same bounds as runs.

use tracing::Instrument;

use super::{Runs, StartError};
use crate::agent::ports::store::BeginError;
use crate::agent::ports::tools::{KeepsFiles, Reporter, ToolContext};
use crate::chat::caller::Caller;
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::place::Place;
use crate::observe::spans;

pub use crate::agent::turn::once::OnceError;

/// Why nothing was answered.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It was not let in.
    #[error(transparent)]
    Start(#[from] StartError),
    /// There is no answer.
    #[error(transparent)]
    Once(#[from] OnceError),
}

impl Runs {
    /// The answer to `request` of the profile of exactly the kind of screen of `place`. It is made and charged also when
    /// its asker leaves.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn answer_once(&self, caller: Caller, place: Place, request: String) -> Result<String, AskError> {
        let _admitted = self.tasks.token();
        if self.draining.is_cancelled() {
            return Err(StartError::Draining.into());
        }
        let profile = self.agent.profiles.of_type(&place.context_type).ok_or(OnceError::NoProfile)?;
        if !profile.lets(&caller) {
            return Err(StartError::Forbidden.into());
        }
        let over = self.agent.budgets.check(&caller.owner).await.map_err(BeginError::from).map_err(StartError::from)?;
        if let Some(over) = over {
            return Err(StartError::OverBudget { retry_after_s: over.retry_after_s }.into());
        }
        self.starts.take(&caller.owner).await.map_err(StartError::TooFast)?;
        let agent = self.agent.clone();
        let answer = async move {
            let cx = ToolContext {
                caller: &caller,
                conversation: &ConversationId::fresh(),
                number: None,
                run: RunId::fresh(),
                call: None,
                context: None,
                place: Some(&place),
                completed: None,
                first_try: None,
                progress: Reporter::default(),
                files: KeepsFiles::default(),
            };
            agent.answer_once(&profile, &cx, request).await
        };
        let answered = self.tasks.spawn(answer.instrument(spans::agent_message())).await;
        Ok(answered.map_err(|_| StartError::Failed)??)
    }
}
