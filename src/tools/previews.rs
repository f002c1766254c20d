//! The preview desk: carries out what the user decided, with that user's own token.
//!
//! **Invariant:** nothing is saved that was not previewed, recorded and accepted; what is saved is the recorded change, whole.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use super::backend::{Backend, BackendError, Request};
use super::keys::text;
use crate::agent::ports::previews::{DecisionError, PreviewDesk, PreviewStore};
use crate::agent::ports::store::StoreError;
use crate::chat::caller::Caller;
use crate::chat::causes::Causes;
use crate::chat::ids::PreviewId;
use crate::chat::preview::{Change, Decided, SaveVerb, Verdict};

/// Decides previews.
pub struct Desk {
    clerk: Clerk,
    /// Decisions under way, each of which runs to its end even when whoever decided goes away: half a decision would be a
    /// saved change that nobody knows of.
    decisions: TaskTracker,
}

impl Desk {
    /// A desk that saves through `backend`.
    pub fn new(backend: Arc<Backend>, previews: Arc<dyn PreviewStore>) -> Self {
        Self { clerk: Clerk { backend, previews }, decisions: TaskTracker::new() }
    }

    /// Waits for the decisions under way; for shutdown.
    pub async fn drain(&self) {
        self.decisions.close();
        self.decisions.wait().await;
    }
}

#[async_trait]
impl PreviewDesk for Desk {
    async fn decide(
        &self,
        caller: &Caller,
        id: PreviewId,
        verdict: Verdict,
        comment: Option<String>,
    ) -> Result<Decided, DecisionError> {
        let (clerk, caller) = (self.clerk.clone(), caller.clone());
        let decision = self.decisions.spawn(async move { clerk.decide(&caller, id, verdict, comment).await });
        decision.await.unwrap_or_else(|error| Err(DecisionError::Store(StoreError::Unavailable(Box::new(error)))))
    }
}

#[derive(Clone)]
struct Clerk {
    backend: Arc<Backend>,
    previews: Arc<dyn PreviewStore>,
}

impl Clerk {
    async fn decide(
        &self,
        caller: &Caller,
        id: PreviewId,
        verdict: Verdict,
        comment: Option<String>,
    ) -> Result<Decided, DecisionError> {
        let preview = self.previews.claim_preview(&caller.owner, id).await?;
        let change = preview.change;
        let saved_id = match verdict {
            Verdict::Reject => None,
            Verdict::Accept => match self.save(caller, id, &change).await {
                Ok(saved_id) => saved_id,
                Err(SaveError::Refused(refused)) => {
                    tracing::warn!(preview.id = %id, error = %Causes(&refused), "accepted preview was not saved");
                    self.previews.end_claim(&caller.owner, id, None).await?;
                    return Err(DecisionError::BackendRefused(refused.to_string()));
                }
                Err(SaveError::Unconfirmed(detail)) => {
                    // The claim is left to end by itself, so that the same save is not sent again at once.
                    tracing::warn!(preview.id = %id, error = detail, "accepted preview may or may not be saved");
                    return Err(DecisionError::Unconfirmed);
                }
            },
        };
        let decided = Decided { preview: id, what: change.what, name: change.name, verdict, comment, saved_id };
        self.previews.end_claim(&caller.owner, id, Some(&decided)).await?;
        Ok(decided)
    }

    /// Saves the change and returns the id it has from now on, if the backend tells.
    async fn save(&self, caller: &Caller, id: PreviewId, change: &Change) -> Result<Option<String>, SaveError> {
        let path = change.save.path.iter().map(String::as_str);
        let key = id.to_string();
        let request = match change.save.verb {
            SaveVerb::Create => Request::post(path, &change.body),
            SaveVerb::Replace => Request::put(path, &change.body),
        };
        let saving = self.backend.call(caller, request.idempotency_key(&key));
        let answer = match tokio::time::timeout(SAVE_LIMIT, saving).await {
            Ok(Ok(answer)) => answer,
            // The status was good, so it is saved; only the answer cannot be read.
            Ok(Err(BackendError::NotJson(_) | BackendError::TooLarge { .. })) => Value::Null,
            Ok(Err(error)) if error.proves_nothing_was_done() => return Err(SaveError::Refused(error)),
            Ok(Err(error)) => return Err(SaveError::Unconfirmed(Causes(&error).to_string())),
            Err(_) => return Err(SaveError::Unconfirmed("no answer in time".to_owned())),
        };
        Ok(change.existing_id.as_deref().or_else(|| text(&answer, "id")).map(str::to_owned))
    }
}

/// The longest save: shorter than a claim's life of a minute, so that no second decision can begin while it runs.
const SAVE_LIMIT: Duration = Duration::from_secs(45);

/// Why an accepted change counts as not saved.
enum SaveError {
    /// The backend said no, or was never reached.
    Refused(BackendError),
    /// Nobody knows: the answer did not come.
    Unconfirmed(String),
}
