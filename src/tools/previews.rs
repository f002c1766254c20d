//! The preview desk: carries out what the user decided, with that user's own token.
//!
//! **Invariant:** nothing is saved that was not previewed, recorded and accepted; what is saved is the recorded change, whole.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use super::backend::{Backend, BackendError, Request};
use super::keys::text;
use crate::agent::ports::previews::{DecisionError, PreviewDesk, PreviewStore};
use crate::agent::ports::store::StoreError;
use crate::chat::caller::Caller;
use crate::chat::ids::PreviewId;
use crate::chat::preview::{Change, ChangeTarget, Decided, Verdict};

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
            Verdict::Accept => match self.save(caller, &change).await {
                Ok(saved_id) => saved_id,
                Err(refused) => {
                    tracing::warn!(preview.id = %id, error = %refused, "accepted preview was not saved");
                    self.previews.end_claim(&caller.owner, id, None).await?;
                    return Err(DecisionError::BackendRefused(refused.to_string()));
                }
            },
        };
        let decided = Decided { preview: id, target: change.target, name: change.name, verdict, comment, saved_id };
        self.previews.end_claim(&caller.owner, id, Some(&decided)).await?;
        Ok(decided)
    }

    /// Saves the change and returns the id it has from now on, if the backend tells.
    async fn save(&self, caller: &Caller, change: &Change) -> Result<Option<String>, BackendError> {
        let existing = change.existing_id.as_deref();
        let request = match (change.target, existing) {
            (ChangeTarget::Workflow, None) => Request::post(["v1", "workflow", "rules", "full"], &change.body),
            (ChangeTarget::Workflow, Some(id)) => Request::put(["v1", "workflow", "rules", id, "full"], &change.body),
            (ChangeTarget::TableConfig, None) => Request::post(["v1", "data"], &change.body),
            (ChangeTarget::TableConfig, Some(id)) => Request::put(["v1", "data", id], &change.body),
        };
        let answer = match self.backend.call(caller, request).await {
            Ok(answer) => answer,
            // The status was good, so it is saved; only the answer cannot be read.
            Err(BackendError::NotJson(_) | BackendError::TooLarge { .. }) => Value::Null,
            Err(refused) => return Err(refused),
        };
        Ok(existing.or_else(|| text(&answer, "id")).map(str::to_owned))
    }
}
