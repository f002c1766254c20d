//! One answer of a profile beside all conversations: its prompt, a request, no tools; and nothing of it is kept.

use std::future::pending;

use super::context::Agent;
use crate::agent::offer::profile::Profile;
use crate::agent::ports::data::NotLoaded;
use crate::agent::ports::tools::ToolContext;
use crate::agent::prompt::one_call::{OneCall, OneCallError};

/// Why there is no such answer.
#[derive(Debug, thiserror::Error)]
pub enum OnceError {
    /// No such profile is there.
    #[error("no profile answers here")]
    NoProfile,
    /// Nobody does this job.
    #[error("nobody answers here")]
    Off,
    /// Data without which the profile cannot answer were not loaded.
    #[error("the data of the prompt were not loaded")]
    NotLoaded(NotLoaded),
    /// The model's answer is none.
    #[error(transparent)]
    Model(#[from] OneCallError),
}

impl Agent {
    /// The answer of `profile` to `request`, charged to the caller.
    ///
    /// # Errors
    /// See [`OnceError`].
    pub async fn answer_once(
        &self,
        profile: &Profile,
        cx: &ToolContext<'_>,
        request: String,
    ) -> Result<String, OnceError> {
        let model = self.helpers.message.choice(&profile.models.choice).ok_or(OnceError::Off)?;
        let mut values = self.values_of(cx);
        let data = self.data_of(profile, cx).await.map_err(OnceError::NotLoaded)?;
        if profile.data.iter().any(|slot| slot.is_required && data.get(&slot.slot).is_none()) {
            return Err(OnceError::NotLoaded(NotLoaded::NotThere));
        }
        values.insert("data", data);
        let prompt = self.rendered(&profile.prompt, values, cx).await;
        let call = OneCall::of(model, prompt, request);
        Ok(self.answer(&cx.caller.owner, call, pending()).await?.unwrap_or_default())
    }
}
