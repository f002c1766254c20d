//! The previews' ports: tools record them, the user decides them, the model reads the decisions afterwards.
//!
//! **Invariant:** every time that decides here is the store's own, and whoever saves holds a [`ClaimToken`] of the store: a
//! process whose clock is wrong, or that was paused, can do no more than one that is not there.

use async_trait::async_trait;
use serde_json::Value;

use super::store_error::StoreError;
use crate::chat::caller::{Caller, Owner};
use crate::chat::ids::{ConversationId, PreviewId, RunId};
use crate::chat::preview::{Base, Change, Decided, Origin, Preview, Verdict};

/// Keeps what tools make, and tells them what became of it.
#[async_trait]
pub trait PreviewStore: Send + Sync {
    /// Keeps a new preview that waits for its decision. One of the same thing in the same conversation that waits already is
    /// superseded, unless it is just being decided.
    ///
    /// # Errors
    /// [`RecordError::Full`] where as many wait as may; else when it could not be committed.
    async fn record_preview(&self, new: NewPreview<'_>) -> Result<PreviewId, RecordError>;

    /// The changes of this conversation that the user has accepted, newest first, with the ids they were saved under.
    ///
    /// # Errors
    /// When they could not be read.
    async fn accepted_changes(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
    ) -> Result<Vec<(Change, Decided)>, StoreError>;
}

/// Decides them, for whoever holds a claim.
#[async_trait]
pub trait PreviewClaims: Send + Sync {
    /// Takes the preview for deciding, so that no other request decides it meanwhile. A claim that was neither settled
    /// nor released ends by itself after a minute; each has a greater token than the one before it.
    ///
    /// # Errors
    /// See [`ClaimError`].
    async fn claim_preview(&self, owner: &Owner, id: PreviewId) -> Result<Claimed, ClaimError>;

    /// Notes that the change is sent from now on, and gives the claim another minute. Whoever goes by it must not begin to send
    /// later than that.
    ///
    /// # Errors
    /// [`ClaimError::Lost`] when the claim is over or another request's: then nothing may be sent.
    async fn begin_save(&self, owner: &Owner, id: PreviewId, token: ClaimToken) -> Result<(), ClaimError>;

    /// Ends a claim with a decision, which the next run of the conversation tells the model. The same decision may be written
    /// again.
    ///
    /// # Errors
    /// [`ClaimError::Lost`] when the claim is another request's by now.
    async fn settle_preview(
        &self,
        owner: &Owner,
        id: PreviewId,
        token: ClaimToken,
        decided: &Decided,
    ) -> Result<(), ClaimError>;

    /// Ends a claim without a decision: the preview waits again. A claim that is over, or another request's, stays as
    /// it is.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn release_preview(&self, owner: &Owner, id: PreviewId, token: ClaimToken) -> Result<(), StoreError>;

    /// The owner's previews that wait for their decision, newest first, 100 at most; only the one of that id, where one
    /// is given, and then with what it changes ([`Change::current`]).
    ///
    /// # Errors
    /// When they could not be read.
    async fn waiting_previews(&self, owner: &Owner, id: Option<PreviewId>) -> Result<Vec<WaitingPreview>, StoreError>;
}

/// A preview to be kept.
#[derive(Debug, Clone, Copy)]
pub struct NewPreview<'a> {
    /// The owner.
    pub owner: &'a Owner,
    /// Where it is made.
    pub conversation: &'a ConversationId,
    /// The run that makes it: its profile is the preview's.
    pub run: RunId,
    /// The tool that makes it.
    pub tool: &'a str,
    /// The change that accepting it makes.
    pub change: &'a Change,
    /// The state that it was made against.
    pub base: &'a Base,
    /// How long it waits, in milliseconds.
    pub life_ms: i64,
    /// How many may wait in its conversation, that one among them; 0 means any number.
    pub most: usize,
}

/// Why a preview was not kept.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// As many wait in the conversation as may.
    #[error("as many previews wait in this conversation as may")]
    Full,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The number of a claim of a preview: each is greater than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClaimToken(pub i64);

/// A claimed preview.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    /// The preview.
    pub preview: Preview,
    /// The token of this claim.
    pub token: ClaimToken,
    /// The state that it was made against; `None` in records of before this was kept.
    pub base: Option<Base>,
    /// Who made it.
    pub origin: Origin,
    /// Whether an earlier save was sent whose answer never came: its outcome is unknown.
    pub may_be_saved: bool,
}

/// A preview that waits for its decision.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingPreview {
    /// The preview.
    pub preview: Preview,
    /// Who made it.
    pub origin: Origin,
    /// Whether a save was sent whose answer has not come.
    pub may_be_saved: bool,
    /// When it was made, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// Until when it can be decided.
    pub expires_at_ms: i64,
}

/// Why a preview could not be taken for deciding, or is not held any more.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// No such preview for this owner.
    #[error("no such preview")]
    NotFound,
    /// It is decided, or is just being decided.
    #[error("the preview has been decided already")]
    AlreadyDecided,
    /// A newer preview of the same thing replaces it.
    #[error("a newer preview of the same thing has taken its place")]
    Superseded,
    /// It was not decided in time.
    #[error("the preview has expired: nobody decided it in time")]
    Expired,
    /// The claim is over, and may be another request's.
    #[error("the decision took too long, and somebody else may have taken it; look at the preview again")]
    Lost,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Knows who may do what with previews.
pub trait PreviewRights: Send + Sync {
    /// Whether `caller` may make such a preview today: they may use its profile, and there its tool.
    fn lets(&self, caller: &Caller, origin: &Origin) -> bool;
}

/// Shows what waits, and carries out a user's decision.
#[async_trait]
pub trait PreviewDesk: Send + Sync {
    /// The previews that wait for `caller`, as far as their roles let them see it; see
    /// [`PreviewClaims::waiting_previews`].
    ///
    /// # Errors
    /// When they could not be read.
    async fn waiting(&self, caller: &Caller, id: Option<PreviewId>) -> Result<Vec<WaitingPreview>, StoreError>;

    /// Decides a preview. Accepting saves the change through the backend with this caller's token, if what it was made
    /// against is still so.
    ///
    /// # Errors
    /// See [`DecisionError`]; the preview waits again after [`DecisionError::BackendRefused`] and [`DecisionError::Stale`].
    async fn decide(
        &self,
        caller: &Caller,
        id: PreviewId,
        verdict: Verdict,
        comment: Option<String>,
    ) -> Result<Decided, DecisionError>;
}

/// Why a decision did not take effect.
#[derive(Debug, thiserror::Error)]
pub enum DecisionError {
    /// The preview could not be taken.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// The caller's token lists none of the roles that making such a preview asks for.
    #[error("deciding this preview needs a role that the token does not list")]
    Forbidden,
    /// The target has changed since the preview was made. Nothing was sent, or the backend refused it for that.
    #[error("what this would change has changed since it was shown; nothing was saved")]
    Stale {
        /// The target now, in the shape of the change's body, null where there is none; `None` where it could not be
        /// read.
        current: Option<Value>,
    },
    /// The backend did not save it. The text is the backend's, cut and safe for the caller, whose own request it was.
    #[error("the backend refused the save: {0}")]
    BackendRefused(String),
    /// The backend's answer did not come, so the change may or may not be saved. The preview waits again after a minute.
    #[error("the backend did not confirm the save; look whether it is there before you try again in a minute")]
    Unconfirmed,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
