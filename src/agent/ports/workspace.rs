//! The workspace: the files below one folder that an agent works on, and commands that it runs there.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::tools::Reporter;
use crate::chat::caller::Owner;
use crate::chat::ids::ConversationId;

/// Where the workspaces are.
#[async_trait]
pub trait Workspaces: Send + Sync {
    /// The workspace of `owner`: their own, or the one that all share.
    ///
    /// # Errors
    /// When its folder cannot be had, or another process holds it.
    async fn of(&self, owner: &Owner) -> Result<Arc<dyn Workspace>, Failure>;
}

/// What each owner has chosen in their editor.
#[async_trait]
pub trait Choices: Send + Sync {
    /// What was chosen; it may be gone meanwhile.
    ///
    /// # Errors
    /// When it cannot be read.
    async fn chosen(&self, owner: &Owner, what: Choice) -> Result<Option<String>, Failure>;

    /// Chooses it; `None`: nothing.
    ///
    /// # Errors
    /// When it cannot be kept.
    async fn choose(&self, owner: &Owner, what: Choice, chosen: Option<&str>) -> Result<(), Failure>;
}

/// What an owner chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The conversation that messages go to which name none.
    Conversation,
    /// The workload that answers.
    Workload,
}

/// What tools do in a workspace. Every path is relative to its folder, or absolute inside it; no call reads or writes
/// outside of it, in a `.git`, or in the folder of its state.
#[async_trait]
pub trait Workspace: Send + Sync + fmt::Debug {
    /// The text of a file, at most 1 MB of it.
    ///
    /// # Errors
    /// When it is none, or may not be read.
    async fn read(&self, path: &str) -> Result<FileText, Failure>;

    /// Changes one file, whole or not at all. `conversation` is whose change it is.
    ///
    /// # Errors
    /// When nothing was changed.
    async fn edit(&self, conversation: (&Owner, &ConversationId), path: &str, edit: Edit) -> Result<FileEdit, Failure>;

    /// What is in a folder.
    ///
    /// # Errors
    /// When it is none, or may not be read.
    async fn list(&self, path: &str, listing: ListOptions) -> Result<Listing, Failure>;

    /// The lines that an expression matches, in the files below a folder.
    ///
    /// # Errors
    /// When it is no folder, or no expression.
    async fn search(&self, path: &str, pattern: Pattern) -> Result<Hits, Failure>;

    /// Runs a command to its end, or to the end of its time. Dropping the future ends all that it has started.
    ///
    /// # Errors
    /// When it was not started.
    async fn run(&self, command: Command, progress: Reporter<'_>) -> Result<CommandResult, Failure>;
}

/// Why something was not done in a workspace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The AgentSmithy protocol's word for it, such as `not_found` or `outside_workspace`.
    pub code: &'static str,
    /// Words that help a model: no path outside of the workspace is in them.
    pub message: String,
}

/// A change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// This is its text from now on; it is made with its folders where it is not there.
    Write(String),
    /// Blocks of text that are looked for, each with what stands there instead; or hunks of a patch.
    Replace(String),
    /// It goes.
    Delete,
}

/// A file as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileText {
    /// Its absolute path.
    pub path: String,
    /// Its text, line ends as they are.
    pub content: String,
    /// Whether there is more of it.
    pub is_cut: bool,
}

/// An edit that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdit {
    /// The file's absolute path.
    pub path: String,
    /// The change as a unified diff with absolute paths; `None` where one side is no text, or too large.
    pub diff: Option<Diff>,
    /// Whether there is another file now; a file may have had that text before, or not have been there.
    pub is_change: bool,
}

/// A unified diff, and how many lines it adds and removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// The diff.
    pub text: String,
    /// Lines that are new.
    pub added: usize,
    /// Lines that are gone.
    pub removed: usize,
}

/// How a folder is listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// With all folders below it.
    pub recursive: bool,
    /// With entries whose names begin with a dot.
    pub hidden: bool,
}

/// What is in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Its absolute path.
    pub path: String,
    /// Absolute paths, sorted.
    pub items: Vec<String>,
    /// Whether there are more.
    pub is_cut: bool,
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// The expression.
    pub regex: String,
    /// Which files: a glob on their names, or on their paths where it has a `/`.
    pub files: Option<String>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hits {
    /// In order of files and lines.
    pub hits: Vec<Hit>,
    /// Whether there may be more.
    pub is_cut: bool,
}

/// A line that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The file's absolute path.
    pub file: String,
    /// The line's number, from 1.
    pub line: usize,
    /// It and up to two lines around it, joined by line feeds.
    pub context: String,
}

/// A command of a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Its text.
    pub command: String,
    /// The folder it runs in; `None`: the workspace's own.
    pub cwd: Option<String>,
    /// How long it may take.
    pub timeout: Duration,
    /// Its environment besides the usual.
    pub env: BTreeMap<String, String>,
    /// Bytes that are kept of each output.
    pub max_output_bytes: usize,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandResult {
    /// Its text.
    pub command: String,
    /// The absolute path of the folder it ran in.
    pub cwd: String,
    /// Its exit code; 128 and the number of the signal that ended it.
    pub exit_code: i32,
    /// What it wrote.
    pub stdout: Output,
    /// What it wrote on the side.
    pub stderr: Output,
    /// Whether its time was over.
    pub timed_out: bool,
    /// Milliseconds that it took.
    pub duration_ms: u64,
}

/// What a command wrote to one of its outputs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// The beginning of it.
    pub text: String,
    /// Bytes that were thrown away.
    pub cut_bytes: u64,
}
