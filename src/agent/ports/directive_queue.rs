//! The queue of directives, which their rows are: attempts are taken, noted before their bytes go out, and ended.
//!
//! **Invariant:** whoever sends holds a [`Fence`] of the store, and has noted before that the bytes go out.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use super::store_error::StoreError;
use crate::chat::directive::{Directive, DirectiveError, DirectiveErrorCode};
use crate::chat::ids::DirectiveId;
use crate::chat::signal::SignalFact;

/// The queue that the rows are.
#[async_trait]
pub trait DirectiveQueue: Send + Sync {
    /// Takes what is due, oldest first, so that nobody else does while the lease lasts.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn claim_directives(&self, claiming: Claiming<'_>) -> Result<Vec<Claimed>, StoreError>;

    /// Notes that the bytes of these attempts go out now; those of which they may. Where a claim is over or another's,
    /// nothing may be sent.
    ///
    /// # Errors
    /// When it could not be committed: then nothing may be sent at all.
    async fn begin_attempts(&self, fences: &[Fence], lease_ms: i64) -> Result<Vec<Fence>, StoreError>;

    /// Ends attempts, all of them or none; the directives as they are now, but for those that somebody else has ended.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn settle_attempts(&self, ended: &[(Fence, &Settlement)]) -> Result<Vec<Directive>, StoreError>;

    /// Gives these claims of this process another lease, from now on; also where theirs is over, as long as nobody else has taken
    /// them.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn renew_claims(&self, claims: &[DirectiveId], process: &str, lease_ms: i64) -> Result<(), StoreError>;

    /// Ends what nobody decided in time, and removes what was over before `over_before_ms`; whether there may be more.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn tidy_directives(&self, kept_ms: Option<i64>) -> Result<bool, StoreError>;
}

/// What a process takes.
#[derive(Debug, Clone, Copy)]
pub struct Claiming<'a> {
    /// The process.
    pub process: &'a str,
    /// For how long.
    pub lease_ms: i64,
    /// At most so many.
    pub most: u32,
    /// Which.
    pub what: Due,
    /// The commands that it knows: what is due of others is left to other processes, and what was left of others at first.
    pub names: &'a [String],
}

/// What may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Those of services whose time has come.
    Now,
    /// One that runs with its caller's token, whose caller is here.
    This(DirectiveId),
    /// Those whose process has died; they are not begun anew.
    Abandoned,
}

/// A directive that was taken.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// As it is now.
    pub directive: Directive,
    /// What proves that it was.
    pub fence: Fence,
    /// Whether the bytes of its attempt may have gone out.
    pub was_sent: bool,
    /// Whether an attempt since its request, or since it was run again, may have been done.
    pub in_doubt: bool,
}

/// What the one who took a directive has in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence {
    /// The directive.
    pub id: DirectiveId,
    /// Grows with each claim.
    pub token: i64,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Attempt {
    /// The backend has done it.
    Done(AttemptDone),
    /// It has not, or perhaps not.
    Failed {
        /// What that proves.
        proof: Proof,
        /// Why, in words.
        error: DirectiveError,
        /// When the backend wants to be asked again.
        retry_after: Option<Duration>,
    },
}

/// What an attempt that was done has made.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptDone {
    /// The projection of the answer.
    pub result: Value,
    /// The same in words, where its tool has some.
    pub text: Option<String>,
    /// The domain's signals, in order.
    pub signals: Vec<SignalFact>,
}

/// What a failed attempt proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Nothing was done, and it may work later: never connected, 425, 429.
    NotNow,
    /// The backend failed: 500, 501, 503.
    Broke,
    /// Nothing was done, and it will not work later.
    Refused,
    /// It may have been done.
    Doubt,
}

/// What an attempt comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Settlement {
    /// It is done.
    Succeeded(AttemptDone),
    /// It failed for good.
    Failed(DirectiveError),
    /// Nobody knows.
    Unknown(DirectiveError),
    /// It is tried again.
    Again {
        /// Why the attempt failed.
        error: DirectiveError,
        /// After so many milliseconds.
        in_ms: i64,
        /// Whether the attempt may have been done.
        in_doubt: bool,
    },
    /// Its caller has gone before it was sent.
    CallerGone,
}

impl Attempt {
    /// A failed attempt.
    pub fn failed(proof: Proof, code: DirectiveErrorCode, message: impl Into<String>) -> Self {
        Self::Failed { proof, error: DirectiveError { code, message: message.into() }, retry_after: None }
    }
}
