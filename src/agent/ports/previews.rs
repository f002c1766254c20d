//! The previews' ports: tools record them, the user decides them, the model is told afterwards.

use async_trait::async_trait;

use super::store::StoreError;
use crate::chat::caller::{Caller, Owner};
use crate::chat::ids::{ConversationId, PreviewId};
use crate::chat::preview::{Change, Decided, Preview, Verdict};

/// Keeps previews and their decisions.
#[async_trait]
pub trait PreviewStore: Send + Sync {
    /// Keeps a new preview that waits for its decision.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn record_preview(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        change: &Change,
    ) -> Result<PreviewId, StoreError>;

    /// Takes the preview for deciding, so that nobody else decides it meanwhile. A claim that was neither settled
    /// nor released ends by itself after a minute.
    ///
    /// # Errors
    /// [`ClaimError::NotFound`] for another owner's; [`ClaimError::AlreadyDecided`] when decided or claimed.
    async fn claim_preview(&self, owner: &Owner, id: PreviewId) -> Result<Preview, ClaimError>;

    /// Ends a claim: with a decision, which the next run of the conversation tells the model, or without (`None`), and then
    /// the preview waits again.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn end_claim(&self, owner: &Owner, id: PreviewId, decided: Option<&Decided>) -> Result<(), StoreError>;

    /// The owner's previews that wait for their decision, newest first, 100 at most; only the one of that id, where one
    /// is given, and then with what it changes ([`Change::current`]).
    ///
    /// # Errors
    /// When they could not be read.
    async fn waiting_previews(&self, owner: &Owner, id: Option<PreviewId>) -> Result<Vec<WaitingPreview>, StoreError>;

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

/// A preview that waits for its decision.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingPreview {
    /// The preview.
    pub preview: Preview,
    /// When it was made, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
}

/// Why a preview could not be taken for deciding.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// No such preview for this owner.
    #[error("no such preview")]
    NotFound,
    /// It is decided, or is just being decided.
    #[error("the preview has been decided already")]
    AlreadyDecided,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Carries out a user's decision.
#[async_trait]
pub trait PreviewDesk: Send + Sync {
    /// Decides a preview. Accepting saves the change through the backend with this caller's token.
    ///
    /// # Errors
    /// See [`DecisionError`]; after [`DecisionError::BackendRefused`] the preview waits again.
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
