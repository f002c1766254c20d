//! A run's life apart from its connection: started, attached to, cancelled when its reader goes away, drained at the end.

pub mod log;
mod registry;

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use registry::Registry;

use crate::agent::menu::NotOffered;
use crate::agent::ports::store::{ConversationStore, NewRun, StoreError};
use crate::agent::profile::{Profile, Profiles};
use crate::agent::prompt::system_prompt;
use crate::agent::run::{Agent, Run};
use crate::chat::caller::Caller;
use crate::chat::event::AgentEvent;
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::input::RunInput;

/// Events between the loop and its reader: enough that a burst of a model's chunks does not wait for the socket, few enough
/// that a slow reader holds back the model instead of filling memory.
const EVENT_QUEUE: usize = 64;

/// Starts runs and owns their tasks.
pub struct Runs {
    agent: Arc<Agent>,
    store: Arc<dyn ConversationStore>,
    profiles: Profiles,
    history_bytes: usize,
    in_flight: Registry,
    tasks: TaskTracker,
    draining: CancellationToken,
    stopped: CancellationToken,
}

/// A run with its one reader. Dropping it cancels the run.
pub struct Attached {
    /// The run.
    pub run: RunId,
    /// The conversation, which may be new.
    pub conversation: ConversationId,
    /// The run's events; the channel closes after the terminal one.
    pub events: mpsc::Receiver<AgentEvent>,
    _cancel_when_dropped: DropGuard,
}

/// Why a run did not start; then nothing was stored.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The request's `context_type` selects no profile.
    #[error("must be one of: {0}")]
    UnknownContextType(String),
    /// The request wants its model asked in a way that the profile does not allow.
    #[error("the request chooses what its context_type does not offer")]
    NotOffered(Vec<NotOffered>),
    /// The server is about to stop.
    #[error("the server is shutting down")]
    Draining,
    /// The user's message could not be committed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its task ended before it began.
    #[error("the run could not be started")]
    Failed,
}

impl Runs {
    /// A registry for runs of `agent`. `history_bytes` bounds the history a run begins with.
    pub fn new(agent: Arc<Agent>, profiles: Profiles, history_bytes: usize) -> Self {
        Self {
            store: agent.store.clone(),
            agent,
            profiles,
            history_bytes,
            in_flight: Registry::default(),
            tasks: TaskTracker::new(),
            draining: CancellationToken::new(),
            stopped: CancellationToken::new(),
        }
    }

    /// Starts a run and attaches to it. The user's message is committed when this returns. Dropping this future cancels a run
    /// that has begun, like any reader that goes away: it is settled, not forgotten.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start(&self, caller: Caller, input: RunInput) -> Result<Attached, StartError> {
        // Counted before the question is asked, so that the drain waits for a run that was let in just before it.
        let _admitted = self.tasks.token();
        if self.draining.is_cancelled() {
            return Err(StartError::Draining);
        }
        let profile = self.profile(&input.context_type)?;
        let model = profile.models.choose(&input.model).map_err(StartError::NotOffered)?;
        let id = RunId::fresh();
        let conversation = input.conversation.unwrap_or_else(ConversationId::fresh);
        self.in_flight.settled(&caller.owner, &conversation).await;

        let cancel = self.stopped.child_token();
        let place = self.in_flight.enter(&caller.owner, &conversation, cancel.clone());
        let (sender, events) = mpsc::channel(EVENT_QUEUE);
        let guard = cancel.clone().drop_guard();
        let (begun, has_begun) = oneshot::channel();
        let (agent, store, history_bytes) = (self.agent.clone(), self.store.clone(), self.history_bytes);
        let attached_to = conversation.clone();
        let running = async move {
            let new = NewRun {
                id,
                owner: &caller.owner,
                conversation: &conversation,
                profile: &profile.id,
                text: &input.message,
                history_bytes,
            };
            let start = match store.begin_run(new).await {
                Ok(start) => start,
                Err(error) => return drop(begun.send(Err(error))),
            };
            // Whoever asked may be gone; their guard has cancelled the run then, and driving it settles it.
            let _ = begun.send(Ok(()));
            let system = system_prompt(&profile, input.context.as_ref());
            let run = Run { id, caller, conversation, profile, model, context: input.context, system, start };
            agent.drive(run, &sender, &cancel).await;
            drop(place);
        };
        self.tasks.spawn(running.in_current_span());
        has_begun.await.map_err(|_| StartError::Failed)??;
        Ok(Attached { run: id, conversation: attached_to, events, _cancel_when_dropped: guard })
    }

    fn profile(&self, context_type: &str) -> Result<Arc<Profile>, StartError> {
        self.profiles
            .select(context_type)
            .ok_or_else(|| StartError::UnknownContextType(self.profiles.context_types().join(", ")))
    }

    /// Refuses new runs from now on.
    pub fn drain(&self) {
        self.draining.cancel();
        self.tasks.close();
    }

    /// Whether new runs are refused.
    pub fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Returns when no run is left. Only after [`Self::drain`].
    pub async fn finished(&self) {
        self.tasks.wait().await;
    }

    /// Cancels whatever still runs.
    pub fn cancel_all(&self) {
        self.stopped.cancel();
    }
}
