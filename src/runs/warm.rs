//! The data of prompts, loaded ahead: the run that comes soon finds it at hand.

use super::{Runs, StartError};
use crate::agent::offer::profile::Profile;
use crate::agent::ports::data::{NotLoaded, Warm};
use crate::agent::ports::tools::{KeepsFiles, Reporter, ToolContext};
use crate::chat::caller::Caller;
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::input::{RunOptions, Screen};
use crate::chat::place::Place;
use crate::chat::screen::ScreenState;

/// A slot of a profile's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmSlot {
    /// Its name in prompts.
    pub slot: String,
    /// How it became at hand.
    pub warm: Warm,
}

/// A run that may come soon.
#[derive(Debug, Clone, Copy)]
pub struct ComingRun<'a> {
    /// Its conversation.
    pub conversation: &'a ConversationId,
    /// The place, as it will be then.
    pub place: Option<&'a Place>,
    /// The screen state that its message will bring.
    pub context: Option<&'a ScreenState>,
}

impl Runs {
    /// Loads the data of the profile that answers `caller` at `screen`, all of it at once. Nothing of that is kept in the
    /// conversation.
    ///
    /// # Errors
    /// When no profile answers the caller there. Data that cannot be loaded is no error.
    pub async fn warm(
        &self,
        caller: &Caller,
        screen: &Screen,
        coming: ComingRun<'_>,
    ) -> Result<Vec<WarmSlot>, StartError> {
        let (profile, _) = self.answering(caller, screen, &RunOptions::default())?;
        Ok(self.warm_slots(caller, &profile, coming).await)
    }

    /// Loads the data of `profile`, and tells why one without which it cannot answer was not loaded. What is not kept for
    /// the run is not loaded here.
    pub(super) async fn require_data(
        &self,
        caller: &Caller,
        profile: &Profile,
        coming: ComingRun<'_>,
    ) -> Result<(), NotLoaded> {
        if !profile.data.iter().any(|slot| slot.is_required) {
            return Ok(());
        }
        let warmed = self.warm_slots(caller, profile, coming).await;
        for (slot, WarmSlot { warm, .. }) in profile.data.iter().zip(warmed) {
            if let Warm::Failed(why) = warm
                && slot.is_required
            {
                if why == NotLoaded::Failed {
                    tracing::warn!(slot = slot.slot, "a run did not begin, since its profile's data were not loaded");
                }
                return Err(why);
            }
        }
        Ok(())
    }

    async fn warm_slots(&self, caller: &Caller, profile: &Profile, coming: ComingRun<'_>) -> Vec<WarmSlot> {
        let cx = ToolContext {
            caller,
            conversation: coming.conversation,
            number: None,
            // There is no run yet; the id is for log lines.
            run: RunId::fresh(),
            call: None,
            context: coming.context,
            place: coming.place,
            completed: None,
            first_try: None,
            progress: Reporter::default(),
            files: KeepsFiles::default(),
        };
        let loading = profile.data.iter().map(|slot| async {
            WarmSlot { slot: slot.slot.clone(), warm: self.agent.data.warm(&slot.loader, &cx).await }
        });
        futures::future::join_all(loading).await
    }
}
