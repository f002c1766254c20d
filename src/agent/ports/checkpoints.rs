//! Checkpoints: the state of a workspace's files before each message, so that what an agent did can be shown, approved
//! and taken back.
//!
//! What has piled up since the files were last *approved* is a *session*, counted from 1 in each conversation.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::workspace::Failure;
use crate::bounded::memory::{Exhausted, Reservation};
use crate::chat::artifact::{Artifact, CHECKPOINT};
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, RunId};

/// Whose checkpoints.
pub type Of<'a> = (&'a Owner, &'a ConversationId);

/// Keeps the state of the files around runs.
#[async_trait]
pub trait Checkpoints: Send + Sync {
    /// Keeps the files as they are, before anything of `run` touches them; `message` is what its user has said.
    ///
    /// # Errors
    /// When they were not kept: nothing may touch them then.
    async fn begin(&self, of: Of<'_>, run: RunId, message: &str) -> Result<Box<dyn Working>, Failure>;

    /// The conversations of which something is kept and nothing was added for a week, in the workspaces that are open.
    async fn idle(&self) -> Vec<(Owner, ConversationId)>;

    /// Forgets all that was kept for a conversation, which is gone. The files stay as they are.
    ///
    /// # Errors
    /// When it is still there.
    async fn forget(&self, of: Of<'_>) -> Result<(), Failure>;
}

/// A run at work in a workspace. While there is one, nothing is approved or taken back; dropping it ends that too.
#[async_trait]
pub trait Working: Send + Sync {
    /// The checkpoint that it began with.
    fn checkpoint(&self) -> Begun;

    /// Keeps the files as the run leaves them.
    ///
    /// # Errors
    /// When they were not kept.
    async fn end(self: Box<Self>) -> Result<(), Failure>;
}

/// What its user does with an agent's work.
#[async_trait]
pub trait Changes: Send + Sync {
    /// All checkpoints of the conversation, oldest first; each can be restored.
    ///
    /// # Errors
    /// When they cannot be read.
    async fn checkpoints(&self, of: Of<'_>) -> Result<Vec<Checkpoint>, Refusal>;

    /// What has changed since the files were last approved; `held` comes back with the memory that it takes.
    ///
    /// # Errors
    /// When the files cannot be read, or there is no memory for it.
    async fn session(&self, of: Of<'_>, held: Reservation) -> Result<(Session, Reservation), Refusal>;

    /// What is there now is approved, and the next session begins.
    ///
    /// # Errors
    /// See [`Refusal`].
    async fn approve(&self, of: Of<'_>, message: Option<&str>) -> Result<Approved, Refusal>;

    /// The files become as they were approved, and the next session begins.
    ///
    /// # Errors
    /// See [`Refusal`].
    async fn reset(&self, of: Of<'_>) -> Result<Reset, Refusal>;

    /// The files become as they were at a checkpoint; what is there now is kept as another one.
    ///
    /// # Errors
    /// See [`Refusal`].
    async fn restore(&self, of: Of<'_>, checkpoint: &str) -> Result<Restored, Refusal>;
}

/// Why nothing was done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// An answer is being given in this workspace.
    #[error("an answer is being given in this workspace")]
    Busy,
    /// It is no checkpoint of this conversation.
    #[error("there is no such checkpoint")]
    Unknown,
    /// There is no memory for the answer now.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// The workspace did not do it.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// The checkpoint that a run began with, and its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// The checkpoint's id: text for those who use it.
    pub id: String,
    /// The session's number.
    pub session: u32,
}

impl Begun {
    /// The same for the client.
    pub fn artifact(&self) -> Artifact {
        let payload: Value = json!({"checkpoint_id": self.id, "session": session_name(self.session)});
        Artifact { kind: CHECKPOINT.into(), payload }
    }
}

/// The name of a session, as wires write it.
pub fn session_name(session: u32) -> String {
    format!("session_{session}")
}

/// Why there is a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckpointKind {
    /// The files when the conversation began with them.
    Initial,
    /// Before a message.
    Message,
    /// Before a restore.
    BeforeRestore,
    /// After one.
    Restored,
    /// Before a reset.
    BeforeReset,
    /// Approved by its user.
    Approved,
}

impl CheckpointKind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Initial, Self::Message, Self::BeforeRestore, Self::Restored, Self::BeforeReset, Self::Approved];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Message => "message",
            Self::BeforeRestore => "before_restore",
            Self::Restored => "restored",
            Self::BeforeReset => "before_reset",
            Self::Approved => "approved",
        }
    }
}

/// A state of the files that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Its id.
    pub id: String,
    /// Why.
    pub kind: CheckpointKind,
    /// What it is, for people.
    pub message: String,
    /// The session it was made in.
    pub session: u32,
    /// The run whose message it stands before.
    pub run: Option<RunId>,
    /// When it was made, in milliseconds since 1970.
    pub at_ms: i64,
}

/// What has piled up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its number.
    pub number: u32,
    /// The approved checkpoint and when that was, in milliseconds since 1970; `None` before the first one.
    pub approved: Option<(String, i64)>,
    /// Sorted by path; empty where nothing is pending.
    pub files: Vec<ChangedFile>,
}

/// How a file has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileStatus {
    /// It is new.
    Added,
    /// It is another.
    Modified,
    /// It is gone.
    Deleted,
}

impl FileStatus {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
        }
    }
}

/// A file that has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Relative to the workspace, with slashes.
    pub path: String,
    /// How.
    pub status: FileStatus,
    /// Lines that are new.
    pub additions: usize,
    /// Lines that are gone.
    pub deletions: usize,
    /// The change of a text that is there on both sides, as a unified diff.
    pub diff: Option<String>,
    /// The text before, where there was one.
    pub base_content: Option<String>,
    /// Whether one side is no text.
    pub is_binary: bool,
    /// Whether one side is over 1 MiB, or all together are too much.
    pub is_too_large: bool,
}

/// What became of an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approved {
    /// The checkpoint that is approved now.
    pub checkpoint: String,
    /// The session that has begun.
    pub session: u32,
    /// Checkpoints since the last approved one that changed something.
    pub count: usize,
}

/// What became of a reset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reset {
    /// The approved checkpoint.
    pub to: String,
    /// The session that has begun.
    pub session: u32,
    /// The files as they were before; `None` where nothing was pending.
    pub before: Option<String>,
    /// Files that could not be brought back.
    pub left: Vec<String>,
}

/// What became of a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The checkpoint that was asked for.
    pub to: String,
    /// The new one behind it.
    pub checkpoint: String,
    /// Files that could not be brought back.
    pub left: Vec<String>,
}
