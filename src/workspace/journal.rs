//! What is known of a conversation's checkpoints: a file of lines, which only grows.
//!
//! A line is on the disk before anybody hears of it, and what it refers to before that. A line that a crash has broken off
//! was never told: it is dropped.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::agent::ports::checkpoints::{CheckpointKind, Of};
use crate::chat::caller::Owner;
use crate::chat::digest::sha256_hex;
use crate::chat::ids::ConversationId;

/// The folder of all journals, in that of the state.
pub(super) const FOLDER: &str = "conversations";

/// The journal of one conversation.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    /// Whose it is, where it says so.
    pub(super) of: Option<Whose>,
    pub(super) records: Vec<Record>,
    /// Files that its tools have touched, by their paths.
    pub(super) touched: BTreeMap<String, TouchedFile>,
}

/// The owner of a conversation, and its id: what a file's name does not tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Whose {
    tenant: String,
    user: String,
    conversation: String,
}

impl Whose {
    fn of((owner, conversation): Of<'_>) -> Self {
        let Owner { tenant, user } = owner.clone();
        Self { tenant, user, conversation: conversation.to_string() }
    }

    /// The owner and the id; `None` where it is no id.
    pub(super) fn read(self) -> Option<(Owner, ConversationId)> {
        let Self { tenant, user, conversation } = self;
        Some((Owner { tenant, user }, ConversationId::parse(&conversation).ok()?))
    }
}

/// A state of the files that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The id of its commit.
    pub(super) id: String,
    /// The id of its tree.
    pub(super) tree: String,
    pub(super) why: Why,
    /// The session it was made in.
    pub(super) session: u32,
    /// What it is, for people.
    pub(super) message: String,
    /// The run whose message it stands before, or which it stands behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<String>,
    pub(super) at_ms: i64,
}

/// Why a state was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Why {
    Initial,
    Message,
    BeforeRestore,
    Restored,
    BeforeReset,
    Approved,
    /// Behind a run; nobody is told.
    Run,
    /// Behind a reset; nobody is told.
    Reset,
}

impl Why {
    /// As its user is told of it.
    pub(super) fn kind(self) -> Option<CheckpointKind> {
        match self {
            Self::Initial => Some(CheckpointKind::Initial),
            Self::Message => Some(CheckpointKind::Message),
            Self::BeforeRestore => Some(CheckpointKind::BeforeRestore),
            Self::Restored => Some(CheckpointKind::Restored),
            Self::BeforeReset => Some(CheckpointKind::BeforeReset),
            Self::Approved => Some(CheckpointKind::Approved),
            Self::Run | Self::Reset => None,
        }
    }
}

/// A file that a tool has touched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TouchedFile {
    /// Relative to the workspace.
    pub(super) path: String,
    /// What keeps its content before, where no checkpoint has it; `None`: it was not there, or one has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) before: Option<String>,
    /// How many checkpoints there were.
    pub(super) behind: usize,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The first one.
    Of(Whose),
    Checkpoint(Record),
    Touched(TouchedFile),
}

impl Journal {
    /// The journal in the file at `path`, empty where there is none.
    ///
    /// # Errors
    /// When it cannot be read, or is damaged.
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        let mut journal = Self { path, of: None, records: Vec::new(), touched: BTreeMap::new() };
        let text = match std::fs::read(&journal.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(journal),
            Err(error) => return Err(error),
        };
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for line in text[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            journal.take(serde_json::from_slice(line)?);
        }
        if whole < text.len() {
            let file = OpenOptions::new().write(true).open(&journal.path)?;
            file.set_len(whole as u64)?;
            file.sync_all()?;
        }
        Ok(journal)
    }

    /// The journal of a conversation in `folder`, empty where there is none.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(super) fn of(folder: &Path, of: Of<'_>) -> io::Result<Self> {
        let mut journal = Self::open(file(folder, of))?;
        if journal.is_new() {
            journal.of = Some(Whose::of(of));
        }
        Ok(journal)
    }

    fn is_new(&self) -> bool {
        self.records.is_empty() && self.touched.is_empty()
    }

    /// Adds a record, which is on the disk afterwards.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn add(&mut self, record: Record) -> io::Result<()> {
        self.write(Line::Checkpoint(record))
    }

    /// Notes that a tool touches a file; it is on the disk afterwards.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn touch(&mut self, file: TouchedFile) -> io::Result<()> {
        self.write(Line::Touched(file))
    }

    fn write(&mut self, line: Line) -> io::Result<()> {
        let is_new = self.is_new();
        let mut text = Vec::new();
        let first = self.of.clone().filter(|_| is_new).map(Line::Of);
        for line in first.iter().chain([&line]) {
            serde_json::to_writer(&mut text, line)?;
            text.push(b'\n');
        }
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        let before = file.metadata()?.len();
        let written = file.write_all(&text).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // Half a line would be read as a part of the next one.
            _ = file.set_len(before);
            return Err(error);
        }
        if let Some(folder) = self.path.parent().filter(|_| is_new) {
            File::open(folder)?.sync_all()?;
        }
        self.take(line);
        Ok(())
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Of(whose) => self.of = Some(whose),
            Line::Checkpoint(record) => self.records.push(record),
            Line::Touched(file) => {
                self.touched.insert(file.path.clone(), file);
            }
        }
    }

    /// The session that is open.
    pub(super) fn session(&self) -> u32 {
        let ends = self.records.iter().filter(|record| matches!(record.why, Why::Approved | Why::Reset)).count();
        u32::try_from(ends).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// The place of the checkpoint that was approved last, or of the first one.
    pub(super) fn approved(&self) -> Option<usize> {
        self.records.iter().rposition(|record| matches!(record.why, Why::Approved | Why::Initial))
    }

    /// The place of a checkpoint that was told under `id`.
    pub(super) fn told(&self, id: &str) -> Option<usize> {
        self.records.iter().position(|record| record.id == id && record.why.kind().is_some())
    }

    /// Everything that keeps objects for it.
    pub(super) fn references(&self) -> impl Iterator<Item = &str> {
        let before = self.touched.values().filter_map(|file| file.before.as_deref());
        self.records.iter().map(|record| record.id.as_str()).chain(before)
    }

    /// Removes its file.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub(super) fn remove(self) -> io::Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// The file of a conversation's journal in `folder`. No name of theirs is part of it.
pub(super) fn file(folder: &Path, (owner, conversation): Of<'_>) -> PathBuf {
    let name = named(&[owner.tenant.as_bytes(), owner.user.as_bytes(), conversation.as_str().as_bytes()]);
    folder.join(format!("{name}.jsonl"))
}

/// The file of what an owner has chosen, in the folder of the state.
pub(super) fn chosen_file(state: &Path, owner: &Owner) -> PathBuf {
    let name = named(&[owner.tenant.as_bytes(), owner.user.as_bytes()]);
    state.join(FOLDER).join(format!("{name}.current"))
}

fn named(parts: &[&[u8]]) -> String {
    // Each behind its length, so that no two lists of parts are one text.
    let whole: Vec<u8> = parts.iter().flat_map(|part| [&part.len().to_be_bytes(), *part].concat()).collect();
    sha256_hex(&whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: &str, why: Why) -> Record {
        Record {
            id: id.to_owned(),
            tree: format!("t{id}"),
            why,
            session: 1,
            message: "Before\nuser message".to_owned(),
            run: None,
            at_ms: 1,
        }
    }

    #[test]
    fn what_was_written_is_read_and_what_was_broken_off_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j.jsonl");
        let mut journal = Journal::open(path.clone()).unwrap();
        journal.add(record("1", Why::Initial)).unwrap();
        journal.touch(TouchedFile { path: "a".to_owned(), before: Some("9".to_owned()), behind: 1 }).unwrap();
        journal.add(record("2", Why::Approved)).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for broken in 1..whole.len() {
            std::fs::write(&path, &whole[..broken]).unwrap();
            let read = Journal::open(path.clone()).unwrap();
            let lines = whole[..broken].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(read.records.len() + read.touched.len(), lines, "{broken}");
            let left = std::fs::read(&path).unwrap();
            assert!(left.is_empty() || left.ends_with(b"\n"), "what comes next is a line of its own");
        }
        std::fs::write(&path, &whole).unwrap();
        let read = Journal::open(path.clone()).unwrap();
        assert_eq!((&read.records, &read.touched), (&journal.records, &journal.touched));
        assert_eq!((read.session(), read.approved(), read.told("2"), read.told("9")), (2, Some(1), Some(1), None));
        assert_eq!(read.references().collect::<Vec<_>>(), ["1", "2", "9"]);
        let owner = Owner { tenant: "t".to_owned(), user: "u".to_owned() };
        let id = ConversationId::parse("c1").unwrap();
        let mut journal = Journal::of(folder.path(), (&owner, &id)).unwrap();
        journal.add(record("1", Why::Initial)).unwrap();
        let read = Journal::open(file(folder.path(), (&owner, &id))).unwrap();
        assert_eq!((read.of.and_then(Whose::read), read.records.len()), (Some((owner, id)), 1));
        std::fs::write(&path, "{\"other\":1}\n").unwrap();
        assert!(Journal::open(path).is_err(), "a damaged one is not taken for an empty one");
    }
}
