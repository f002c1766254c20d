//! The conversations' port: what was said, durable, scoped by owner.

use std::borrow::Cow;

use async_trait::async_trait;

use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::message::{Message, UserMessage};
use crate::chat::stream::Usage;

/// Keeps conversations.
///
/// Runs of one conversation are ordered by their start and each run's messages stay together, so that the transcript is
/// valid for a model whatever happened: an assistant message with calls is only ever appended together with all its results.
#[async_trait]
pub trait ConversationStore: Send + Sync {
    /// Begins a run: makes the conversation if the owner has none of that id, and commits the user's message together
    /// with the decisions that the model has not been told yet, which are thereby told.
    ///
    /// # Errors
    /// When nothing could be committed; then nothing was.
    async fn begin_run(&self, run: NewRun<'_>) -> Result<RunStart, StoreError>;

    /// Appends messages of a running run, all or none. They are numbered from `first` on, where 0 is the user's message; a
    /// message whose number is taken is already kept, so a commit of unknown fate can be repeated.
    ///
    /// # Errors
    /// When they could not be committed.
    async fn append(&self, run: RunId, first: u32, messages: &[Message]) -> Result<(), StoreError>;

    /// Records how a run ended.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn finish_run(&self, run: RunId, outcome: RunOutcome, usage: Usage) -> Result<(), StoreError>;
}

/// A run about to begin.
#[derive(Debug, Clone, Copy)]
pub struct NewRun<'a> {
    /// Its id.
    pub id: RunId,
    /// Whose conversation it is.
    pub owner: &'a Owner,
    /// The conversation to continue or begin.
    pub conversation: &'a ConversationId,
    /// The profile that answers.
    pub profile: &'a str,
    /// The user's words.
    pub text: &'a str,
    /// How much history to load, newest first, in bytes of stored messages.
    pub history_bytes: usize,
}

/// What a run begins with.
#[derive(Debug, Clone)]
pub struct RunStart {
    /// The newest earlier messages that fit, oldest first; begins with a user message and holds no half of a tool pair. Of a
    /// run that fits only in part its question is there, and its newest turns.
    pub history: Vec<Message>,
    /// The message that was committed.
    pub message: UserMessage,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunOutcome {
    /// With an answer.
    Completed,
    /// With this failure code.
    Failed(Cow<'static, str>),
    /// Its client went away.
    Cancelled,
}

/// A store that failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database did not do it; the cause is for the log.
    #[error("the store is unavailable")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A row does not read back as what was written.
    #[error("a stored record is damaged")]
    Damaged(#[source] Box<dyn std::error::Error + Send + Sync>),
}
