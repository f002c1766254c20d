//! What a run does, before its first turn, about what it does not read of its conversation.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};

use super::context::{Ended, failed};
use super::state::Transcript;
use super::stop::Stop;
use crate::agent::ports::events::EventSink;
use crate::agent::ports::summaries::CatchUp;
use crate::chat::event::AgentEvent;
use crate::chat::failure::FailureCode;
use crate::chat::state::StateEvent;

/// What it does.
pub enum Recall {
    /// Nothing: it reads everything, or nobody summarises.
    Nothing,
    /// It tells that a summary stands for the rest.
    Told,
    /// It waits until one does.
    Awaited(Box<dyn CatchUp>),
}

impl Recall {
    /// Does it, and tells so. A run that gets no summary within `patience` goes on without.
    ///
    /// # Errors
    /// When the run ends meanwhile.
    pub(super) async fn wait(
        self,
        transcript: &mut Transcript,
        patience: Duration,
        (events, stop, deadline): (&dyn EventSink, &Stop, Option<Instant>),
    ) -> Result<(), Ended> {
        if matches!(self, Self::Nothing) {
            return Ok(());
        }
        events.emit(AgentEvent::Summarising);
        let waited = match self {
            Self::Nothing | Self::Told => Ok(None),
            Self::Awaited(catch_up) => {
                let out_of_time = async {
                    match deadline {
                        Some(deadline) => sleep_until(deadline).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    reason = stop.stopped() => Err(Ended::Stopped(reason)),
                    past = timeout(patience, catch_up.past()) => Ok(past.ok().flatten()),
                    () = out_of_time => Err(failed(FailureCode::RunTimeout, "The run took too long and was ended", true)),
                }
            }
        };
        events.emit(AgentEvent::Summarised);
        let Some(past) = waited? else { return Ok(()) };
        transcript.about.remember(&past);
        transcript.messages.remember(past);
        if let Some(usage) = transcript.about.usage().cloned() {
            events.emit(AgentEvent::State(Box::new(StateEvent::ContextUsage(usage))));
        }
        Ok(())
    }
}
