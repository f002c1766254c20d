//! The preview desk: carries out what the user decided, with that user's own token.
//!
//! **Invariant:** nothing is saved that was not previewed, recorded and accepted; what is saved is the recorded change,
//! whole, over what it was made against. **Invariant:** a save goes out under a claim of the store that was still ours
//! just before, and not later than the claim lasts. One whose answer did not come is never repeated by itself: a user
//! has to accept the preview once more, what is there is read again first, and the backend gets the same key.

mod reader;
mod recorder;
mod until;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::backend::{Backend, BackendError, Request};
use super::keys::text;
use crate::agent::ports::previews::{
    Claimed, DecisionError, PreviewClaims, PreviewDesk, PreviewRights, WaitingPreview,
};
use crate::agent::ports::store_error::StoreError;
use crate::chat::caller::Caller;
use crate::chat::causes::Causes;
use crate::chat::ids::PreviewId;
use crate::chat::preview::{Decided, SaveVerb, Verdict};

pub use reader::{Found, Now, Reader, Readers, base};
pub use recorder::{PreviewBounds, Recorder};

use reader::digest_of;
use until::{TooLate, until};

/// The longest look at what is there: shorter than a claim's life of a minute, or the look would be for nothing.
const LOOK_LIMIT: Duration = Duration::from_secs(40);

/// The longest save, from before it was noted to its answer: shorter than a claim's life of a minute, so that no second decision
/// can begin while it runs.
const SAVE_LIMIT: Duration = Duration::from_secs(45);

/// 256 KiB: what is larger is not compared step by step, and no answer has it.
const CURRENT_BYTES: usize = 256 * 1024;

/// Decides previews.
pub struct Desk {
    clerk: Clerk,
    /// Decisions under way, each of which runs to its end even when whoever decided goes away: half a decision would be a
    /// saved change without a record.
    decisions: TaskTracker,
}

impl Desk {
    /// A desk that saves through `backend` what `readers` find again.
    pub fn new(
        backend: Arc<Backend>,
        previews: Arc<dyn PreviewClaims>,
        rights: Arc<dyn PreviewRights>,
        readers: Readers,
    ) -> Self {
        let readers = Arc::new(readers);
        Self { clerk: Clerk { backend, previews, rights, readers }, decisions: TaskTracker::new() }
    }

    /// Waits for the decisions under way; for shutdown.
    pub async fn drain(&self) {
        self.decisions.close();
        self.decisions.wait().await;
    }
}

#[async_trait]
impl PreviewDesk for Desk {
    async fn waiting(&self, caller: &Caller, id: Option<PreviewId>) -> Result<Vec<WaitingPreview>, StoreError> {
        let mut waiting = self.clerk.previews.waiting_previews(&caller.owner, id).await?;
        waiting.retain(|waiting| self.clerk.rights.lets(caller, &waiting.origin));
        Ok(waiting)
    }

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
    previews: Arc<dyn PreviewClaims>,
    rights: Arc<dyn PreviewRights>,
    readers: Arc<Readers>,
}

impl Clerk {
    async fn decide(
        &self,
        caller: &Caller,
        id: PreviewId,
        verdict: Verdict,
        comment: Option<String>,
    ) -> Result<Decided, DecisionError> {
        let owner = &caller.owner;
        let claimed = self.previews.claim_preview(owner, id).await?;
        if !self.rights.lets(caller, &claimed.origin) {
            self.previews.release_preview(owner, id, claimed.token).await?;
            return Err(DecisionError::Forbidden);
        }
        let saved_id = match verdict {
            Verdict::Reject => None,
            Verdict::Accept => match self.accept(caller, &claimed).await {
                Ok(saved_id) => saved_id,
                Err(NotSaved::Unconfirmed(detail)) => {
                    // The claim is left to end by itself, so that the same save is not sent again at once.
                    tracing::warn!(preview.id = %id, error = detail, "accepted preview may or may not be saved");
                    return Err(DecisionError::Unconfirmed);
                }
                Err(NotSaved::Nothing(error)) => {
                    tracing::warn!(preview.id = %id, error = %Causes(&error), "accepted preview was not saved");
                    self.previews.release_preview(owner, id, claimed.token).await?;
                    return Err(error);
                }
            },
        };
        let Claimed { preview, token, may_be_saved, .. } = claimed;
        let (what, name) = (preview.change.what, preview.change.name);
        let may_be_saved = may_be_saved && verdict == Verdict::Reject;
        let decided = Decided { preview: id, what, name, verdict, comment, saved_id, may_be_saved };
        self.previews.settle_preview(owner, id, token, &decided).await?;
        Ok(decided)
    }

    /// Saves the change over what it was made against, and returns the id it has from now on, if the backend tells.
    async fn accept(&self, caller: &Caller, claimed: &Claimed) -> Result<Option<String>, NotSaved> {
        let looked = tokio::time::timeout(LOOK_LIMIT, self.look(caller, claimed)).await;
        let over = match looked.unwrap_or_else(|_| Err(refused("what is there now could not be read in time")))? {
            Look::Saved(id) => return Ok(id),
            Look::Open { etag } => etag,
        };
        // The token of this very request decides, here as when the preview was taken: nothing goes out without the role.
        if !self.rights.lets(caller, &claimed.origin) {
            return Err(NotSaved::Nothing(DecisionError::Forbidden));
        }
        // Counted from before the store's own minute begins.
        let end = Instant::now() + SAVE_LIMIT;
        let (id, token) = (claimed.preview.id, claimed.token);
        self.previews.begin_save(&caller.owner, id, token).await.map_err(nothing)?;
        let answer = match until(end, self.save(caller, claimed, over.as_deref())).await {
            Ok(Ok(answer)) => answer,
            // The status was good, so it is saved; only the answer cannot be read.
            Ok(Err(error)) if error.is_of_good_status() => Value::Null,
            Ok(Err(error)) if is_precondition(&error) && over.is_some() => {
                let current = self.current(caller, claimed).await;
                return Err(NotSaved::Nothing(DecisionError::Stale { current }));
            }
            Ok(Err(error)) if error.proves_nothing_was_done() => return Err(refused(error.to_string())),
            Ok(Err(error)) => return Err(NotSaved::Unconfirmed(Causes(&error).to_string())),
            Err(TooLate::NotBegun) => return Err(refused("there was no time left to send it")),
            Err(TooLate::Unfinished) => return Err(NotSaved::Unconfirmed("no answer in time".to_owned())),
        };
        let existing = claimed.preview.change.existing_id.as_deref();
        Ok(existing.or_else(|| text(&answer, "id")).map(str::to_owned))
    }

    async fn save(&self, caller: &Caller, claimed: &Claimed, over: Option<&str>) -> Result<Value, BackendError> {
        let change = &claimed.preview.change;
        let path = change.save.path.iter().map(String::as_str);
        let key = claimed.preview.id.to_string();
        let request = match change.save.verb {
            SaveVerb::Create => Request::post(path, &change.body),
            SaveVerb::Replace => Request::put(path, &change.body),
        };
        let request = request.idempotency_key(&key);
        let request = match over {
            Some(etag) => request.header("if-match", etag),
            None => request,
        };
        self.backend.call(caller, request).await
    }

    /// Looks at what is there before anything is sent.
    async fn look(&self, caller: &Caller, claimed: &Claimed) -> Result<Look, NotSaved> {
        let unread = |error: BackendError| refused(format!("what is there now could not be read: {error}"));
        let change = &claimed.preview.change;
        let Some(base) = &claimed.base else { return Ok(Look::Open { etag: None }) };
        // Its family of tools is not built in any more.
        let unreadable = || refused("what is there now cannot be read by this server");
        let reader = self.readers.get(base.reader.as_str()).ok_or_else(unreadable)?;
        let is_done = |state: &Value| {
            claimed.may_be_saved && digest_of(&reader.essence(state)) == digest_of(&reader.essence(&change.body))
        };
        match change.save.verb {
            SaveVerb::Create if !claimed.may_be_saved => Ok(Look::Open { etag: None }),
            SaveVerb::Create => match reader.of_that_name(caller, change).await.map_err(unread)? {
                None => Ok(Look::Open { etag: None }),
                Some(found) if is_done(&found.state) => Ok(Look::Saved(found.id)),
                Some(found) => Err(stale(found.state)),
            },
            SaveVerb::Replace => match reader.now(caller, change).await {
                Ok(None) => Err(stale(Value::Null)),
                Ok(Some(now)) if is_done(&now.state) => Ok(Look::Saved(change.existing_id.clone())),
                Ok(Some(now)) => match &base.digest {
                    Some(digest) if *digest != digest_of(&reader.essence(&now.state)) => Err(stale(now.state)),
                    Some(_) | None => Ok(Look::Open { etag: now.etag }),
                },
                // It could not be read then either, and the preview compares nothing.
                Err(_) if base.digest.is_none() && !claimed.may_be_saved => Ok(Look::Open { etag: None }),
                Err(error) => Err(unread(error)),
            },
        }
    }

    /// The current state, for the answer; `None` where it cannot be read.
    async fn current(&self, caller: &Caller, claimed: &Claimed) -> Option<Value> {
        let reader = self.readers.get(claimed.base.as_ref()?.reader.as_str())?;
        let now = tokio::time::timeout(LOOK_LIMIT, reader.now(caller, &claimed.preview.change)).await.ok()?.ok()?;
        known_state(now.map_or(Value::Null, |now| now.state))
    }
}

/// The result of a look before a save.
enum Look {
    /// The state that the change was made against, as far as is known; for `If-Match`, its `ETag`.
    Open { etag: Option<String> },
    /// The change itself: an earlier save was done, whose answer did not come.
    Saved(Option<String>),
}

/// Why an accepted change counts as not saved.
enum NotSaved {
    /// Nothing was done.
    Nothing(DecisionError),
    /// Unknown: the answer did not come.
    Unconfirmed(String),
}

fn nothing(error: impl Into<DecisionError>) -> NotSaved {
    NotSaved::Nothing(error.into())
}

fn refused(reason: impl Into<String>) -> NotSaved {
    NotSaved::Nothing(DecisionError::BackendRefused(reason.into()))
}

fn stale(current: Value) -> NotSaved {
    NotSaved::Nothing(DecisionError::Stale { current: known_state(current) })
}

fn known_state(current: Value) -> Option<Value> {
    Some(current).filter(|current| current.to_string().len() <= CURRENT_BYTES)
}

/// Whether the backend found another state than the request expected.
fn is_precondition(error: &BackendError) -> bool {
    matches!(error, BackendError::Status { status, .. } if status.as_u16() == 412)
}
