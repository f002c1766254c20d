//! One workspace: its open folder, the lock that holds it, and what is kept of it.

use std::convert::Infallible;
use std::fs::{File, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rustix::fs::{FlockOperation, flock};
use tokio::sync::{Semaphore, mpsc};

use super::command::request::{CommandRequest, Line};
use super::command::{Commands, Kind};
use super::files::{self, Before, FileChange, FileError, Image, Root};
use super::journal;
use super::keeper::Keeper;
use super::quota::Quota;
use crate::agent::ports::checkpoints::Of;
use crate::agent::ports::tools::Reporter;
use crate::agent::ports::workspace::{
    Choice, Command, CommandResult, Diff, Edit, Failure, FileEdit, FileText, Hit, Hits, ListOptions, Listing, Output,
    Pattern, Workspace,
};
use crate::chat::caller::Owner;
use crate::chat::causes::Causes;
use crate::chat::ids::ConversationId;
use crate::chat::tool::Progress;

/// Searches of one workspace at once: each takes a core.
const SEARCHES: usize = 2;

/// A command's lines are told together, so often at most: a run has so many events, and no more.
const TELL_EVERY: Duration = Duration::from_millis(250);

/// Bytes of lines that are told at once; a reader needs no more to see that it goes on.
const TOLD_BYTES: usize = 2_000;

/// How often a command's lines are told; the whole of them is in its result.
const MOST_TOLD: usize = 400;

/// Lines that wait to be told.
const LINES: usize = 256;

/// What the state folder's own `.gitignore` says, so that nothing of the project has to be changed.
const IGNORED: &str = "*\n";

/// One workspace.
#[derive(Debug)]
pub(super) struct Place {
    files: Arc<Root>,
    commands: Commands,
    /// Edits and all that is kept, one after the other.
    keeper: Arc<tokio::sync::Mutex<Keeper>>,
    /// Runs at work. It grows only while the keeper is held, so that who holds it knows.
    pub(super) working: AtomicUsize,
    searches: Arc<Semaphore>,
    /// The folder of its state.
    state: PathBuf,
    /// Held while the file of what an owner has chosen is used.
    chosen: Arc<Mutex<()>>,
    quota: Quota,
}

/// Why a workspace cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its folder, or that of its state, cannot be made or opened.
    #[error("the folder of the workspace cannot be used")]
    Folder(#[source] std::io::Error),
    /// Its folder cannot be opened.
    #[error("the folder of the workspace cannot be opened")]
    Root(#[from] FileError),
    /// Links are in the folder of its state, which this server does not make.
    #[error("there are links in the folder of the workspace's state: remove that folder")]
    Links,
    /// Another process works in it.
    #[error("another server works in this workspace")]
    Held,
    /// What is kept of it cannot be read.
    #[error("the checkpoints of the workspace cannot be used: {0}")]
    Kept(Failure),
}

impl Place {
    /// The workspace at `path`, whose state is in the folder of the name `state` inside it; `lock` is that of [`take`].
    ///
    /// # Errors
    /// See [`OpenError`].
    pub(super) fn open(
        path: &Path,
        state: &str,
        lock: File,
        (commands, quota_bytes): (Commands, u64),
    ) -> Result<Self, OpenError> {
        let files = Root::open(path, state)?;
        let folder = path.join(state);
        let keeper = Keeper::open(path, &folder, lock).map_err(OpenError::Kept)?;
        Ok(Self {
            files: Arc::new(files),
            commands,
            keeper: Arc::new(tokio::sync::Mutex::new(keeper)),
            working: AtomicUsize::new(0),
            searches: Arc::new(Semaphore::new(SEARCHES)),
            state: folder,
            chosen: Arc::default(),
            quota: Quota::new(path, quota_bytes),
        })
    }

    /// Does what blocks, with what is kept at hand. Who does not wait for it any more has not begun it, or it is done to
    /// its end before anybody else's.
    pub(super) async fn with_keeper<T, E>(
        &self,
        (owner, conversation): Of<'_>,
        work: impl FnOnce(&mut Keeper, Of<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Failure> + Send + 'static,
    {
        let (owner, conversation) = (owner.clone(), conversation.clone());
        let mut keeper = self.keeper.clone().lock_owned().await;
        aside(move || work(&mut keeper, (&owner, &conversation))).await?
    }

    /// The conversations of which something is kept and nothing was added for a week.
    pub(super) async fn idle(&self) -> Vec<(Owner, ConversationId)> {
        let keeper = self.keeper.clone().lock_owned().await;
        aside(move || keeper.idle()).await.unwrap_or_default()
    }

    /// Reads or writes the file that keeps what an owner has chosen, one such at a time.
    pub(super) async fn with_state<T: Send + 'static>(
        &self,
        owner: &Owner,
        what: Choice,
        work: impl FnOnce(&Path) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, Failure> {
        let (chosen, file) = (self.chosen.clone(), journal::chosen_file(&self.state, owner));
        let file = match what {
            Choice::Conversation => file,
            Choice::Workload => file.with_added_extension("workload"),
        };
        let done = aside(move || {
            let _one = chosen.lock().unwrap_or_else(PoisonError::into_inner);
            work(&file)
        });
        done.await?.map_err(|error| {
            tracing::warn!(%error, "the state of the workspace was not read or written");
            Failure { code: "io_error", message: "the state of the workspace cannot be used".to_owned() }
        })
    }

    /// Measures what it holds, where that is bounded.
    pub(super) async fn measure(&self) -> Result<(), Failure> {
        let quota = self.quota.clone();
        if quota.is_on() { aside(move || quota.measure()).await } else { Ok(()) }
    }

    /// What commands run in, for the log.
    pub(super) fn sandbox(&self) -> String {
        self.commands.kind().words()
    }

    /// Whether commands run in a sandbox.
    pub(super) fn holds_commands(&self) -> bool {
        matches!(self.commands.kind(), Kind::Bubblewrap | Kind::Landlock { .. })
    }

    /// Waits until nothing that a command has started is left.
    pub(super) async fn settled(&self) {
        self.commands.settled().await;
    }

    async fn with_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Root) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, Failure> {
        let files = self.files.clone();
        aside(move || work(&files)).await?.map_err(|error| failed(&error))
    }
}

/// The lock of a workspace, in the folder of its state, which is made.
///
/// # Errors
/// When the folder cannot be made, or another process has the lock.
pub(super) fn take(folder: &Path) -> Result<File, OpenError> {
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(OpenError::Folder(error)),
        Ok(()) | Err(_) => {}
    }
    let found = std::fs::symlink_metadata(folder).map_err(OpenError::Folder)?;
    if !found.is_dir() {
        return Err(OpenError::Folder(ErrorKind::NotADirectory.into()));
    }
    if has_links(folder).map_err(OpenError::Folder)? {
        return Err(OpenError::Links);
    }
    // What is kept may have been secret once: it is its server's alone.
    std::fs::set_permissions(folder, Permissions::from_mode(0o700)).map_err(OpenError::Folder)?;
    let opened = |name: &str| {
        let mut options = File::options();
        options.create(true).truncate(false).write(true).custom_flags(libc::O_NOFOLLOW);
        options.open(folder.join(name)).map_err(OpenError::Folder)
    };
    let file = opened("lock")?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| OpenError::Held)?;
    let mut ignored = opened(".gitignore")?;
    if ignored.metadata().map_err(OpenError::Folder)?.len() == 0 {
        ignored.write_all(IGNORED.as_bytes()).map_err(OpenError::Folder)?;
    }
    Ok(file)
}

/// Whether anything below a folder of ours is a link: we make none, and one that a project brings along leads elsewhere.
fn has_links(folder: &Path) -> std::io::Result<bool> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_symlink() {
                return Ok(true);
            }
            folders.extend(kind.is_dir().then(|| entry.path()));
        }
    }
    Ok(false)
}

/// Does what blocks off the workers.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Failure { code: "io_error", message: "the server failed at this".to_owned() })
}

fn failed(error: &FileError) -> Failure {
    if error.code() == "io_error" {
        tracing::warn!(error = %Causes(error), "a file of the workspace was not read or changed");
    }
    Failure { code: error.code(), message: error.to_string() }
}

#[async_trait]
impl Workspace for Place {
    async fn read(&self, path: &str) -> Result<FileText, Failure> {
        let path = path.to_owned();
        let text = self.with_files(move |files| files.read_text(&path)).await?;
        Ok(FileText { path: text.path, content: text.text, is_cut: text.cut })
    }

    async fn edit(
        &self,
        (owner, conversation): (&Owner, &ConversationId),
        path: &str,
        edit: Edit,
    ) -> Result<FileEdit, Failure> {
        let (files, path, quota) = (self.files.clone(), path.to_owned(), self.quota.clone());
        let changed = self.with_keeper((owner, conversation), move |keeper, of| {
            let failed = |error: FileError| failed(&error);
            let standing = files.standing(&path, matches!(edit, Edit::Delete)).map_err(failed)?;
            // What will not be done touches nothing.
            let text = match edit {
                Edit::Write(text) if text.len() as u64 <= files::MOST_FILE_BYTES => Some(text),
                Edit::Write(text) => return files.write(&path, &text).map(told).map_err(failed),
                Edit::Replace(diff) => Some(files.replaced(&path, &diff).map_err(failed)?),
                Edit::Delete if standing.before == Before::Nothing => {
                    let deleted = files.delete(&path).map_err(failed)?;
                    return Ok(deleted.map_or_else(|| not_there(&files, &standing.relative), told));
                }
                Edit::Delete => None,
            };
            if let Some(text) = &text {
                quota.take(text.len() as u64)?;
            }
            keeper.touch(of, &standing.relative, &standing.before)?;
            let changed = match text {
                Some(text) => files.write(&path, &text).map(Some),
                None => files.delete(&path),
            };
            let changed = changed.map_err(failed)?;
            if let Some(change) = changed.as_ref().filter(|change| change.relative != standing.relative) {
                // Another path where a folder on the way was a link and the file is new. It is written already.
                keeper.touch(of, &change.relative, &Before::Nothing).unwrap_or_else(|failure| {
                    tracing::warn!(reason = failure.message, "a new file behind a link is not noted as a tool's");
                });
            }
            Ok(changed.map_or_else(|| not_there(&files, &standing.relative), told))
        });
        changed.await
    }

    async fn list(&self, path: &str, ListOptions { recursive, hidden }: ListOptions) -> Result<Listing, Failure> {
        let path = path.to_owned();
        let listing = self.with_files(move |files| files.list(&path, recursive, hidden)).await?;
        Ok(Listing { path: listing.path, items: listing.items, is_cut: listing.cut })
    }

    async fn search(&self, path: &str, Pattern { regex, files }: Pattern) -> Result<Hits, Failure> {
        let closed = |_| Failure { code: "io_error", message: "the server is shutting down".to_owned() };
        let turn = self.searches.clone().acquire_owned().await.map_err(closed)?;
        let path = path.to_owned();
        let found = self.with_files(move |root| {
            // Given back when it is over, also where nobody waits for it any more.
            let _turn = turn;
            root.search(&path, &regex, files.as_deref())
        });
        let found = found.await?;
        let hits = found.hits.into_iter().map(|hit| Hit { file: hit.file, line: hit.line, context: hit.context });
        Ok(Hits { hits: hits.collect(), is_cut: found.cut })
    }

    async fn run(&self, command: Command, progress: Reporter<'_>) -> Result<CommandResult, Failure> {
        self.quota.take(0)?;
        let Command { command, cwd, timeout, env, max_output_bytes } = command;
        let request = CommandRequest { command, cwd, timeout, env, max_output_bytes };
        let (lines, told) = mpsc::channel(LINES);
        let ran = tokio::select! {
            biased;
            ran = self.commands.run(request, Some(lines)) => ran,
            never = tell(told, progress) => match never {},
        };
        self.measure().await?;
        let ran = ran.map_err(|error| Failure { code: error.code(), message: error.to_string() })?;
        Ok(CommandResult {
            command: ran.command,
            cwd: ran.cwd,
            exit_code: ran.exit_code,
            stdout: Output { text: ran.stdout, cut_bytes: ran.stdout_truncated_bytes },
            stderr: Output { text: ran.stderr, cut_bytes: ran.stderr_truncated_bytes },
            timed_out: ran.timed_out,
            duration_ms: ran.duration_ms,
        })
    }
}

fn told(change: FileChange) -> FileEdit {
    let diff = change.diff().map(|diff| Diff { text: diff.text, added: diff.added, removed: diff.removed });
    let is_change = change.before != change.after || matches!(change.before, Image::TooLarge);
    FileEdit { path: change.path, diff, is_change }
}

/// What was to be deleted is not there.
fn not_there(files: &Root, relative: &str) -> FileEdit {
    FileEdit { path: files.absolute(relative), diff: None, is_change: false }
}

/// Tells a command's lines, those that have gathered together.
async fn tell(mut lines: mpsc::Receiver<Line>, progress: Reporter<'_>) -> Infallible {
    for _ in 0..MOST_TOLD {
        let Some(first) = lines.recv().await else { break };
        let mut message = first.text;
        while let Ok(next) = lines.try_recv() {
            if message.len() < TOLD_BYTES {
                message.push('\n');
                message.push_str(&next.text);
            }
        }
        message.truncate(message.floor_char_boundary(TOLD_BYTES));
        progress.report(Progress { stage: "output".to_owned(), message, fraction: None, data: None });
        tokio::time::sleep(TELL_EVERY).await;
    }
    std::future::pending().await
}
