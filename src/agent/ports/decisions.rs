//! Decisions on several calls of one turn: a run that began with one of them takes the others in, as long as it waits for
//! them.

use async_trait::async_trait;

use super::store::{BeginError, DecidedCall};
use super::store_error::StoreError;
use crate::chat::approval::Decision;
use crate::chat::caller::Owner;
use crate::chat::ids::{ApprovalId, ConversationId, RunId};
use crate::chat::message::UserMessage;

/// Brings decisions to the run that waits for them.
#[async_trait]
pub trait Decisions: Send + Sync {
    /// Takes the owner's decision on a call for the run that goes on behind that call's turn and still waits for decisions:
    /// that run. `None` where there is none. A decision that it does not read before it ends is taken back. With
    /// `is_repeated`, one that was taken so before finds its run again.
    ///
    /// # Errors
    /// When the call cannot be decided (any more), or nothing could be committed.
    async fn hand_over(
        &self,
        of: (&Owner, &ConversationId),
        approval: ApprovalId,
        decision: &Decision,
        is_repeated: bool,
    ) -> Result<Option<RunId>, BeginError>;

    /// The next decision that was handed to a run, which reads it as its message number `seq`. With `last`, none is taken for
    /// it after this.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn take(
        &self,
        of: (&Owner, &ConversationId),
        run: RunId,
        seq: u32,
        last: bool,
    ) -> Result<Gathered, StoreError>;
}

/// What a run has found.
#[derive(Debug, Clone, PartialEq)]
pub enum Gathered {
    /// A decision, and what the model reads of it.
    Decision(Box<(DecidedCall, UserMessage)>),
    /// None yet: calls of the turn still wait for their user.
    NotYet,
    /// None, and no call that its user could decide waits.
    Nothing,
}
