//! A run's hold of its workspace: the files are kept before its first turn there, and as it leaves them.

use std::time::Duration;

use tokio::time::timeout;

use super::context::{Agent, Ended, failed};
use super::stop::{Stop, StopReason};
use crate::agent::offer::profile::Profile;
use crate::agent::ports::checkpoints::Working;
use crate::agent::ports::events::EventSink;
use crate::agent::ports::tools::ToolContext;
use crate::chat::event::AgentEvent;
use crate::chat::failure::FailureCode;

/// A run that ends waits so long for its files to be kept: its client waits for the end meanwhile. The next message
/// keeps them in any case.
const KEEP_LIMIT: Duration = Duration::from_secs(30);

/// What a run holds.
pub(super) type Held = Option<Box<dyn Working>>;

impl Agent {
    /// Keeps the files before anything touches them, where `profile` works on some and they are not `held` yet.
    ///
    /// # Errors
    /// When they were not kept: the run ends before any tool of it.
    pub(super) async fn enter_workspace(
        &self,
        profile: &Profile,
        (cx, message): (&ToolContext<'_>, String),
        held: &mut Held,
        (events, stop): (&dyn EventSink, &Stop),
    ) -> Result<(), Ended> {
        let Some((checkpoints, role)) = &self.checkpoints else { return Ok(()) };
        // Who may touch no file holds none.
        if held.is_some() || !(role.is_empty() || cx.caller.has_role(role)) || !self.touches_files(profile) {
            return Ok(());
        }
        let keeping = checkpoints.begin((&cx.caller.owner, cx.conversation), cx.run, &message);
        let kept = tokio::select! {
            biased;
            reason = stop.stopped() => return Err(Ended::Stopped(reason)),
            kept = keeping => kept,
        };
        match kept {
            Ok(working) => {
                events.emit(AgentEvent::Artifact(Box::new(working.checkpoint().artifact())));
                *held = Some(working);
                Ok(())
            }
            Err(failure) => {
                tracing::error!(error.kind = failure.code, reason = failure.message, "files not kept before a run");
                let words = "The files of the workspace could not be kept before this message; please try again";
                Err(failed(FailureCode::WorkspaceUnavailable, words, true))
            }
        }
    }

    /// Whether the tools of `profile`, or of those that it may ask, work on files.
    fn touches_files(&self, profile: &Profile) -> bool {
        let asked = profile.delegation.iter().flat_map(|delegation| &delegation.assistants);
        let mut asked = asked.filter_map(|assistant| self.profiles.of_type(&assistant.context_type));
        profile.in_workspace || asked.any(|profile| profile.in_workspace)
    }
}

/// Keeps the files as the run leaves them. What is not kept now is kept before the next message; so nobody waits for it where
/// the server stops.
pub(super) async fn leave(held: Held, ended: &Result<(), Ended>) {
    let Some(working) = held else { return };
    if matches!(ended, Err(Ended::Stopped(StopReason::Interrupted))) {
        return;
    }
    match timeout(KEEP_LIMIT, working.end()).await {
        Ok(Ok(())) => {}
        Ok(Err(failure)) => {
            tracing::warn!(error.kind = failure.code, reason = failure.message, "files not kept behind a run");
        }
        Err(_) => tracing::warn!("files not kept behind a run in time"),
    }
}
