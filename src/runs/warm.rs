//! The data of prompts, loaded ahead: the run that comes soon finds it at hand.

use super::{Runs, StartError};
use crate::agent::ports::data::Warm;
use crate::agent::ports::tools::{Reporter, ToolContext};
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

impl Runs {
    /// Loads the data of the profile that answers `caller` at `screen`, all of it at once, for a run of `conversation` at
    /// `place` with the screen state `context`. Nothing of that is kept in the conversation.
    ///
    /// # Errors
    /// When no profile answers the caller there. Data that cannot be loaded is no error.
    pub async fn warm(
        &self,
        caller: &Caller,
        conversation: &ConversationId,
        screen: &Screen,
        (place, context): (Option<&Place>, Option<&ScreenState>),
    ) -> Result<Vec<WarmSlot>, StartError> {
        let (profile, _) = self.answering(caller, screen, &RunOptions::default())?;
        let cx = ToolContext {
            caller,
            conversation,
            number: None,
            // There is no run yet; the id is for log lines.
            run: RunId::fresh(),
            call: None,
            context,
            place,
            completed: None,
            first_try: None,
            progress: Reporter::default(),
        };
        let slots = profile.data.iter().map(|slot| async {
            WarmSlot { slot: slot.slot.clone(), warm: self.agent.data.warm(&slot.loader, &cx).await }
        });
        Ok(futures::future::join_all(slots).await)
    }
}
