//! The states of a workspace's files around what agents and their users do: which are kept, compared and brought back.
//!
//! **Invariant:** objects are on the disk before the line that names them, and that before anybody hears of them.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::checkpoints::{self, CheckpointError, Checkpoints, Mode, PreImage, Touched};
use super::files::Before;
use super::journal::{self, Journal, Record, TouchedFile, Why};
use crate::agent::ports::checkpoints::{
    Approved, Begun, ChangedFile, Checkpoint, FileStatus, Of, Refusal, Reset, Restored, Session,
};
use crate::agent::ports::clock::{Clock, SystemClock};
use crate::agent::ports::workspace::Failure;
use crate::bounded::memory::Reservation;
use crate::chat::caller::Owner;
use crate::chat::causes::Causes;
use crate::chat::ids::{ConversationId, RunId};

/// Journals that are kept in memory.
const JOURNALS: usize = 256;

/// How long nothing is forgotten of a conversation that is gone: its server may have been started with another database.
const IDLE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Characters of a message that its checkpoint shows, AgentSmithy protocol.
const MESSAGE_CHARS: usize = 50;

/// Keeps the states of one workspace.
#[derive(Debug)]
pub(super) struct Keeper {
    checkpoints: Checkpoints,
    folder: PathBuf,
    journals: HashMap<PathBuf, Journal>,
    /// Held until the last work is done: another process is refused.
    _lock: File,
}

impl Keeper {
    /// Opens what is kept of the workspace at `root` in the folder `state`, and drops what no journal knows.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub(super) fn open(root: &Path, state: &Path, lock: File) -> Result<Self, Failure> {
        let mut checkpoints = Checkpoints::open(root, state).map_err(failed)?;
        let folder = state.join(journal::FOLDER);
        std::fs::create_dir_all(&folder).map_err(damaged)?;
        let (mut known, mut is_whole) = (BTreeSet::new(), true);
        for entry in std::fs::read_dir(&folder).map_err(damaged)? {
            let path = entry.map_err(damaged)?.path();
            if path.extension().is_none_or(|extension| extension != "jsonl") {
                continue;
            }
            match Journal::open(path) {
                Ok(journal) => known.extend(journal.references().map(str::to_owned)),
                // That conversation alone cannot be gone on with; what it knows is kept.
                Err(error) => {
                    tracing::error!(%error, "the journal of a conversation's checkpoints is damaged");
                    is_whole = false;
                }
            }
        }
        if is_whole {
            let all = checkpoints.ids().map_err(failed)?;
            let unknown: Vec<&str> = all.iter().map(String::as_str).filter(|id| !known.contains(*id)).collect();
            checkpoints.forget(&unknown).map_err(failed)?;
            checkpoints.prune().map_err(failed)?;
        }
        Ok(Self { checkpoints, folder, journals: HashMap::new(), _lock: lock })
    }

    /// Keeps the files before a message.
    pub(super) fn begin(&mut self, of: Of<'_>, run: RunId, message: &str) -> Result<Begun, Failure> {
        self.load(of)?;
        let tree = self.look(of, None)?;
        if self.journal(of)?.approved().is_none() {
            self.keep(of, &tree, Why::Initial, "Initial checkpoint".to_owned(), None)?;
        }
        let shown: String = message.chars().take(MESSAGE_CHARS).collect();
        let message = match shown.is_empty() {
            true => "Before the answer goes on".to_owned(),
            false => format!("Before user message: {shown}"),
        };
        let id = self.keep(of, &tree, Why::Message, message, Some(run))?;
        Ok(Begun { id, session: self.journal(of)?.session() })
    }

    /// Keeps the files as a run leaves them.
    pub(super) fn end(&mut self, of: Of<'_>, run: RunId) -> Result<(), Failure> {
        self.load(of)?;
        let tree = self.look(of, None)?;
        // One that was deleted meanwhile is not begun anew.
        if self.journal(of)?.records.last().is_some_and(|last| last.tree != tree) {
            self.keep(of, &tree, Why::Run, "Behind a run".to_owned(), Some(run))?;
        }
        Ok(())
    }

    /// Notes that a tool of a conversation touches a file, with what it was where no checkpoint has that.
    pub(super) fn touch(&mut self, of: Of<'_>, relative: &str, before: &Before) -> Result<(), Failure> {
        self.load(of)?;
        let journal = self.journal(of)?;
        // Before the first checkpoint there is nothing to come back to.
        if journal.touched.contains_key(relative) || journal.records.is_empty() {
            return Ok(());
        }
        let (behind, newest) = (journal.records.len(), journal.records.last().map(|last| last.tree.clone()));
        let path = relative.as_bytes();
        let is_kept = match &newest {
            Some(tree) => self.checkpoints.has(tree, path).map_err(failed)?,
            None => false,
        };
        let content = match before {
            Before::File(bytes, true) => Some((bytes, Mode::Executable)),
            Before::File(bytes, false) => Some((bytes, Mode::File)),
            Before::Link(target) => Some((target, Mode::Link)),
            Before::Nothing => None,
        };
        let before = match content.filter(|_| !is_kept) {
            Some((bytes, mode)) => self.checkpoints.keep_before(path, Some((bytes, mode))).map_err(failed)?.id,
            None => None,
        };
        let touched = TouchedFile { path: relative.to_owned(), before, behind };
        self.journal(of)?.touch(touched).map_err(damaged)
    }

    /// All checkpoints that were told.
    pub(super) fn checkpoints(&mut self, of: Of<'_>) -> Result<Vec<Checkpoint>, Failure> {
        self.load(of)?;
        let told = self.journal(of)?.records.iter().filter_map(|record| {
            let run = record.run.as_deref().and_then(|run| RunId::parse(run).ok());
            Some(Checkpoint {
                id: record.id.clone(),
                kind: record.why.kind()?,
                message: record.message.clone(),
                session: record.session,
                run,
                at_ms: record.at_ms,
            })
        });
        Ok(told.collect())
    }

    /// What has changed since the files were last approved.
    ///
    /// Memory for it is taken by `held`.
    pub(super) fn session(&mut self, of: Of<'_>, held: &mut Reservation) -> Result<Session, Refusal> {
        self.load(of)?;
        let journal = self.journal(of)?;
        let number = journal.session();
        let Some(at) = journal.approved() else { return Ok(Session { number, approved: None, files: Vec::new() }) };
        let approved = Some((journal.records[at].id.clone(), journal.records[at].at_ms));
        let (tree, before) = self.state_at(of, at)?;
        let touched = self.touched(of)?;
        let files = self.checkpoints.compare((&tree, &before), &touched, held).map_err(|error| match error {
            CheckpointError::Exhausted(exhausted) => exhausted.into(),
            error => Refusal::Failed(failed(error)),
        })?;
        Ok(Session { number, approved, files: files.into_iter().map(changed).collect() })
    }

    /// What is there now is approved.
    pub(super) fn approve(&mut self, of: Of<'_>, message: Option<&str>) -> Result<Approved, Refusal> {
        self.load(of)?;
        let now = match self.approved_tree(of)? {
            Some((id, from)) => {
                let now = self.look(of, Some(&from))?;
                if now == from {
                    return Ok(Approved { checkpoint: id, session: self.journal(of)?.session(), count: 0 });
                }
                now
            }
            None => self.look(of, None)?,
        };
        let message = message.map(str::trim).filter(|message| !message.is_empty()).unwrap_or("Approved");
        let at = self.journal(of)?.approved().unwrap_or_default();
        let checkpoint = self.keep(of, &now, Why::Approved, message.to_owned(), None)?;
        let journal = self.journal(of)?;
        let since = journal.records.get(at..).unwrap_or_default();
        let count = since.windows(2).filter(|pair| pair[0].tree != pair[1].tree).count();
        Ok(Approved { checkpoint, session: journal.session(), count })
    }

    /// The files become as they were approved.
    pub(super) fn reset(&mut self, of: Of<'_>) -> Result<Reset, Refusal> {
        self.load(of)?;
        let Some((to, target)) = self.approved_tree(of)? else {
            return Err(Refusal::Unknown);
        };
        let newest = self.newest(of)?;
        let now = self.look(of, Some(&target))?;
        let (mut before, mut left) = (None, Vec::new());
        let mut after = now.clone();
        if now != target {
            before = Some(self.keep(of, &now, Why::BeforeReset, "Before reset".to_owned(), None)?);
            left = self.bring_back(of, &target, (&newest, &now))?;
            after = self.look(of, Some(&target))?;
        }
        self.keep(of, &after, Why::Reset, "Reset".to_owned(), None)?;
        Ok(Reset { to, session: self.journal(of)?.session(), before, left })
    }

    /// The files become as they were at a checkpoint.
    pub(super) fn restore(&mut self, of: Of<'_>, id: &str) -> Result<Restored, Refusal> {
        self.load(of)?;
        let at = self.journal(of)?.told(id).ok_or(Refusal::Unknown)?;
        let target = self.tree_at(of, at)?;
        let newest = self.newest(of)?;
        let now = self.look(of, Some(&target))?;
        let told = self.journal(of)?.records.iter().rfind(|record| record.why.kind().is_some());
        // What nobody can name cannot be gone back to.
        if told.is_none_or(|told| told.tree != now) {
            self.keep(of, &now, Why::BeforeRestore, format!("Before restore of {id}"), None)?;
        }
        let left = self.bring_back(of, &target, (&newest, &now))?;
        let after = self.look(of, Some(&target))?;
        let message = format!("Restored to checkpoint {id}");
        let checkpoint = self.keep(of, &after, Why::Restored, message, None)?;
        Ok(Restored { to: id.to_owned(), checkpoint, left })
    }

    /// Forgets all of a conversation.
    pub(super) fn forget(&mut self, of: Of<'_>) -> Result<(), Failure> {
        self.load(of)?;
        let Some(journal) = self.journals.remove(&journal::file(&self.folder, of)) else { return Ok(()) };
        let ids: Vec<String> = journal.references().map(str::to_owned).collect();
        // First the journal: what it names must be there as long as it is.
        journal.remove().map_err(damaged)?;
        self.checkpoints.forget(&ids.iter().map(String::as_str).collect::<Vec<_>>()).map_err(failed)
    }

    /// Makes the files what they are in `target`; `now` is what they are, and is kept.
    fn bring_back(&mut self, of: Of<'_>, target: &str, (newest, now): (&str, &str)) -> Result<Vec<String>, Failure> {
        let touched = self.touched(of)?;
        let restored = self.checkpoints.restore(target, newest, &touched).map_err(failed)?;
        let left = restored.left.iter().map(|left| {
            let path = String::from_utf8_lossy(&left.path).into_owned();
            tracing::warn!(file = path, reason = ?left.reason, "a file was not brought back");
            path
        });
        let left = left.collect();
        if let Some(id) = restored.overwritten {
            let tree = self.checkpoints.tree_of(&id).map_err(failed)?.unwrap_or_default();
            if self.checkpoints.is_within(&tree, now).map_err(failed)? {
                self.checkpoints.forget(&[&id]).map_err(failed)?;
                return Ok(left);
            }
            let message = "Edited while it was brought back".to_owned();
            self.note(of, (id, tree), Why::BeforeRestore, message, None)?;
        }
        Ok(left)
    }

    /// The files as they are now, with those of `also`.
    fn look(&mut self, of: Of<'_>, also: Option<&str>) -> Result<String, Failure> {
        let touched = self.touched(of)?;
        let also: Vec<&str> = also.into_iter().collect();
        Ok(self.checkpoints.snapshot(&touched, &also).map_err(failed)?.tree)
    }

    fn touched(&mut self, of: Of<'_>) -> Result<Touched, Failure> {
        let mut touched = Touched::default();
        for path in self.journal(of)?.touched.keys() {
            touched.insert(path.as_bytes());
        }
        Ok(touched)
    }

    /// The files at a checkpoint, with what files were that a tool has touched since and that no checkpoint had.
    fn tree_at(&mut self, of: Of<'_>, at: usize) -> Result<String, Failure> {
        let (tree, before) = self.state_at(of, at)?;
        if before.is_empty() {
            return Ok(tree);
        }
        self.checkpoints.with_files_before(&tree, &before).map_err(failed)
    }

    /// The tree of a checkpoint, and those files.
    fn state_at(&mut self, of: Of<'_>, at: usize) -> Result<(String, Vec<PreImage>), Failure> {
        let journal = self.journal(of)?;
        let tree = journal.records[at].tree.clone();
        let since = journal.touched.values().filter(|file| file.behind > at);
        let before = since
            .filter(|file| file.before.is_some())
            .map(|file| PreImage { path: file.path.as_bytes().to_vec(), id: file.before.clone() })
            .collect();
        Ok((tree, before))
    }

    fn approved_tree(&mut self, of: Of<'_>) -> Result<Option<(String, String)>, Failure> {
        let journal = self.journal(of)?;
        let Some(at) = journal.approved() else { return Ok(None) };
        let id = journal.records[at].id.clone();
        Ok(Some((id, self.tree_at(of, at)?)))
    }

    /// The newest state that was kept.
    fn newest(&mut self, of: Of<'_>) -> Result<String, Failure> {
        let newest = self.journal(of)?.records.last().map(|last| last.tree.clone());
        newest.ok_or_else(|| Failure { code: "not_found", message: "nothing was kept yet".to_owned() })
    }

    fn keep(
        &mut self,
        of: Of<'_>,
        tree: &str,
        why: Why,
        message: String,
        run: Option<RunId>,
    ) -> Result<String, Failure> {
        let parent = self.journal(of)?.records.last().map(|last| last.id.clone());
        let parents: Vec<&str> = parent.as_deref().into_iter().collect();
        let id = self.checkpoints.keep(tree, &parents, &message).map_err(failed)?;
        self.note(of, (id.clone(), tree.to_owned()), why, message, run)?;
        Ok(id)
    }

    /// Adds a record of a commit and its tree, in the session that is open now.
    fn note(
        &mut self,
        of: Of<'_>,
        (id, tree): (String, String),
        why: Why,
        message: String,
        run: Option<RunId>,
    ) -> Result<(), Failure> {
        let journal = self.journal(of)?;
        let (session, run) = (journal.session(), run.map(|run| run.to_string()));
        journal.add(Record { id, tree, why, session, message, run, at_ms: now_ms() }).map_err(damaged)
    }

    /// The conversations of which something is kept and nothing was added for a week, where their journals say whose they
    /// are.
    pub(super) fn idle(&self) -> Vec<(Owner, ConversationId)> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let is_idle = |entry: &std::fs::DirEntry| {
            let age = entry.metadata().ok()?.modified().ok()?.elapsed().ok()?;
            Some(age > IDLE && entry.path().extension()? == "jsonl")
        };
        let journals = entries.filter(|entry| is_idle(entry) == Some(true)).map(|entry| entry.path());
        journals.filter_map(|path| Journal::open(path).ok()?.of?.read()).collect()
    }

    /// Has the journal of a conversation in memory.
    fn load(&mut self, of: Of<'_>) -> Result<(), Failure> {
        let path = journal::file(&self.folder, of);
        if !self.journals.contains_key(&path) {
            if self.journals.len() >= JOURNALS {
                self.journals.clear();
            }
            let journal = Journal::of(&self.folder, of).map_err(damaged)?;
            self.journals.insert(path, journal);
        }
        Ok(())
    }

    fn journal(&mut self, of: Of<'_>) -> Result<&mut Journal, Failure> {
        let path = journal::file(&self.folder, of);
        self.journals.get_mut(&path).ok_or_else(|| damaged(io::ErrorKind::NotFound.into()))
    }
}

fn changed(file: checkpoints::ChangedFile) -> ChangedFile {
    ChangedFile {
        path: file.path,
        status: match file.status {
            checkpoints::Status::Added => FileStatus::Added,
            checkpoints::Status::Modified => FileStatus::Modified,
            checkpoints::Status::Deleted => FileStatus::Deleted,
        },
        additions: file.additions,
        deletions: file.deletions,
        diff: file.diff,
        base_content: file.base_content,
        is_binary: file.is_binary,
        is_too_large: file.is_too_large,
    }
}

fn failed(error: CheckpointError) -> Failure {
    Failure { code: "io_error", message: Causes(&error).to_string() }
}

fn damaged(error: io::Error) -> Failure {
    Failure { code: "io_error", message: format!("what is kept of checkpoints cannot be read or written: {error}") }
}

fn now_ms() -> i64 {
    SystemClock.now_ms()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_has_added_to_for_a_week_is_idle_and_is_told_with_its_owner() {
        let root = tempfile::tempdir().unwrap();
        let state = root.path().join(".state");
        std::fs::create_dir(&state).unwrap();
        let lock = File::create(state.join("lock")).unwrap();
        let mut keeper = Keeper::open(root.path(), &state, lock).unwrap();
        let owner = Owner { tenant: "t".to_owned(), user: "u".to_owned() };
        let id = ConversationId::parse("c1").unwrap();
        keeper.begin((&owner, &id), RunId::fresh(), "Hi").unwrap();
        assert_eq!(keeper.idle(), []);
        let journal = journal::file(&state.join(journal::FOLDER), (&owner, &id));
        let file = File::options().write(true).open(&journal).unwrap();
        file.set_modified(std::time::SystemTime::now() - IDLE - Duration::from_secs(1)).unwrap();
        assert_eq!(keeper.idle(), [(owner.clone(), id.clone())]);
        keeper.forget((&owner, &id)).unwrap();
        assert_eq!((keeper.idle(), journal.exists()), (Vec::new(), false));
    }
}
