//! Which runs of a conversation are in flight in this process.
//!
//! A user who stops an answer and sends the next message at once must find the stopped answer's beginning in the history, so a
//! new run waits for cancelled ones of its conversation to settle. It does not wait for runs that go on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::chat::caller::Owner;
use crate::chat::ids::ConversationId;

/// How long a new run waits for cancelled ones: they only have to commit.
const SETTLING: Duration = Duration::from_secs(2);

type Key = (Owner, ConversationId);

/// The runs in flight, by conversation.
#[derive(Default)]
pub(super) struct Registry(Arc<Mutex<HashMap<Key, Vec<InFlight>>>>);

#[derive(Clone)]
struct InFlight {
    cancel: CancellationToken,
    settled: CancellationToken,
}

/// A run's place in the registry, given back when the run has settled.
pub(super) struct Place {
    registry: Arc<Mutex<HashMap<Key, Vec<InFlight>>>>,
    key: Key,
    settled: CancellationToken,
}

impl Registry {
    /// Waits until no cancelled run of the conversation has something left to commit.
    pub(super) async fn settled(&self, owner: &Owner, conversation: &ConversationId) {
        let key = (owner.clone(), conversation.clone());
        let cancelled: Vec<CancellationToken> = {
            let runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let of_conversation = runs.get(&key).map(Vec::as_slice).unwrap_or_default();
            of_conversation.iter().filter(|run| run.cancel.is_cancelled()).map(|run| run.settled.clone()).collect()
        };
        let all = async {
            for run in cancelled {
                run.cancelled().await;
            }
        };
        if tokio::time::timeout(SETTLING, all).await.is_err() {
            tracing::warn!(conversation.id = %conversation, "a cancelled run takes long to settle");
        }
    }

    /// Notes a run that `cancel` cancels.
    pub(super) fn enter(&self, owner: &Owner, conversation: &ConversationId, cancel: CancellationToken) -> Place {
        let key = (owner.clone(), conversation.clone());
        let settled = CancellationToken::new();
        let run = InFlight { cancel, settled: settled.clone() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key.clone()).or_default().push(run);
        Place { registry: self.0.clone(), key, settled }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.settled.cancel();
        let mut runs = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_conversation) = runs.get_mut(&self.key) {
            of_conversation.retain(|run| !run.settled.is_cancelled());
            if of_conversation.is_empty() {
                runs.remove(&self.key);
            }
        }
    }
}
