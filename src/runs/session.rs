//! What a message of a client that keeps a session wants before its run begins.

use super::task::RequestedRun;
use super::warm::ComingRun;
use super::{Runs, StartError};
use crate::agent::ports::store::BeginError;
use crate::chat::caller::Caller;
use crate::chat::ids::ConversationId;
use crate::chat::input::OnBusy;
use crate::chat::place::Place;
use crate::chat::run::CancelledBy;

impl Runs {
    /// Finds the session that waits for a first message, and loads what its place is about. A run that is still under way
    /// is cancelled before. What is refused takes nothing.
    pub(super) async fn enter_session(&self, caller: &Caller, requested: &mut RequestedRun) -> Result<(), StartError> {
        let owner = &caller.owner;
        let (context_type, update) = (requested.profile.context_type.clone(), &requested.options.place);
        let (place, waits) = match requested.is_first {
            true => {
                let place = Place::begun(context_type, update);
                let waiting = self.places.ahead(owner, &place).await.map_err(BeginError::from)?;
                let waits = waiting.is_some();
                requested.conversation = waiting.unwrap_or_else(ConversationId::fresh);
                (Some(place), waits)
            }
            false => {
                if requested.options.on_busy == Some(OnBusy::Interrupt) {
                    let live = self.store.live_runs(owner, &requested.conversation).await.map_err(BeginError::from)?;
                    for run in live.into_iter().rev() {
                        self.cancel_by(owner, run, CancelledBy::NextMessage).await.map_err(BeginError::from)?;
                    }
                }
                let head = self.places.head(owner, &requested.conversation).await.map_err(BeginError::from)?;
                let waits = head.as_ref().is_some_and(|head| head.message_count == 0);
                (update.apply(head.and_then(|head| head.place).as_ref(), &context_type), waits)
            }
        };
        let coming = ComingRun {
            conversation: &requested.conversation,
            place: place.as_ref(),
            context: requested.options.context.as_ref(),
        };
        self.require_data(caller, &requested.profile, coming).await.map_err(StartError::NotLoaded)?;
        if waits {
            let taken = self.places.take_ahead(owner, &requested.conversation).await.map_err(BeginError::from)?;
            // Another first message was faster.
            if requested.is_first && !taken {
                requested.conversation = ConversationId::fresh();
            }
        }
        Ok(())
    }
}
