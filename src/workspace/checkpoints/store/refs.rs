//! Commits, and the references that keep them: `refs/checkpoints/<id>`, one for each.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Id, Intake, Kind, Store, sync_folder};
use crate::workspace::checkpoints::CheckpointError;

/// Where the references are.
const PREFIX: &str = "refs/checkpoints";

/// Who made a commit, for `git log`.
const AUTHOR: &str = "Switchboard <switchboard@localhost>";

impl Store {
    /// Makes a commit and the reference that keeps it; both are on the disk afterwards. Its id is that of no other one,
    /// even for equal trees and messages.
    ///
    /// # Errors
    /// Something cannot be written.
    pub(crate) fn commit(
        &self,
        intake: Intake,
        tree: Id,
        parents: &[Id],
        message: &str,
    ) -> Result<Id, CheckpointError> {
        let message = message.replace('\0', "\u{fffd}");
        let mut number = 0_u32;
        let id = loop {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let mut content = format!("tree {tree}\n");
            for parent in parents {
                content.push_str(&format!("parent {parent}\n"));
            }
            for role in ["author", "committer"] {
                content.push_str(&format!("{role} {AUTHOR} {} +0000\n", now.as_secs()));
            }
            // Equal states at the same second are two checkpoints nevertheless.
            content.push_str(&format!("\n{message}\n\nCheckpoint: {}-{number}\n", now.as_nanos()));
            let id = intake.write(self, Kind::Commit, content.as_bytes())?.ok_or(CheckpointError::Unknown)?;
            if !self.reference(id).exists() {
                break id;
            }
            number += 1;
        };
        intake.finish(self)?;
        self.write_reference(id).map_err(CheckpointError::while_doing("writing a reference"))?;
        Ok(id)
    }

    fn reference(&self, id: Id) -> PathBuf {
        self.root.join(PREFIX).join(id.to_string())
    }

    fn write_reference(&self, id: Id) -> io::Result<()> {
        let folder = self.root.join(PREFIX);
        // `git gc` removes the folder when it has packed the references.
        fs::create_dir_all(&folder)?;
        let temporary = self.root.join("reference.new");
        let mut file = File::create(&temporary)?;
        writeln!(file, "{id}")?;
        file.sync_all()?;
        fs::rename(&temporary, self.reference(id))?;
        sync_folder(&folder)
    }

    /// The tree of a commit that a reference keeps.
    ///
    /// # Errors
    /// The commit is damaged or cannot be read.
    pub(crate) fn tree_of(&self, commit: Id) -> Result<Option<Id>, CheckpointError> {
        if !self.reference(commit).exists() && !self.packed_references()?.iter().any(|(id, _)| *id == commit) {
            return Ok(None);
        }
        let content = self.read(commit, Kind::Commit)?;
        tree_line(&content).map(Some).ok_or_else(|| super::read::corrupt(commit))
    }

    /// Removes the references of these commits. Those that have none are left alone.
    ///
    /// # Errors
    /// The system refused.
    pub(crate) fn forget(&self, commits: &HashSet<Id>) -> Result<(), CheckpointError> {
        let packed = self.packed_references()?;
        let work = || {
            if packed.iter().any(|(id, _)| commits.contains(id)) {
                self.repack_references(packed.iter().filter(|(id, _)| !commits.contains(id)))?;
            }
            for &commit in commits {
                match fs::remove_file(self.reference(commit)) {
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            fs::create_dir_all(self.root.join(PREFIX))?;
            sync_folder(&self.root.join(PREFIX))
        };
        work().map_err(CheckpointError::while_doing("removing references"))
    }

    /// What every reference points to.
    pub(crate) fn referenced(&self) -> Result<HashSet<Id>, CheckpointError> {
        let mut ids: HashSet<Id> = self.packed_references()?.into_iter().map(|(id, _)| id).collect();
        let mut folders = vec![self.root.join("refs")];
        let mut work = || {
            while let Some(folder) = folders.pop() {
                for entry in fs::read_dir(folder)? {
                    let entry = entry?;
                    if entry.file_type()?.is_dir() {
                        folders.push(entry.path());
                    } else {
                        ids.extend(Id::parse(fs::read_to_string(entry.path())?.trim_end()));
                    }
                }
            }
            Ok(())
        };
        work().map_err(CheckpointError::while_doing::<io::Error>("reading the references"))?;
        Ok(ids)
    }

    /// The references that `git pack-refs` or `git gc` have put into one file: ids and names.
    fn packed_references(&self) -> Result<Vec<(Id, String)>, CheckpointError> {
        let text = match fs::read_to_string(self.root.join("packed-refs")) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(CheckpointError::while_doing("reading the references")(error)),
        };
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        Ok(lines.filter_map(|(id, name)| Some((Id::parse(id)?, name.to_owned()))).collect())
    }

    fn repack_references<'a>(&self, kept: impl Iterator<Item = &'a (Id, String)>) -> io::Result<()> {
        let temporary = self.root.join("packed-refs.new");
        let mut file = File::create(&temporary)?;
        for (id, name) in kept {
            writeln!(file, "{id} {name}")?;
        }
        file.sync_all()?;
        fs::rename(&temporary, self.root.join("packed-refs"))?;
        sync_folder(&self.root)
    }
}

/// The tree that a commit's first line names.
pub(super) fn tree_line(commit: &[u8]) -> Option<Id> {
    let line = commit.strip_prefix(b"tree ")?.split(|&byte| byte == b'\n').next()?;
    Id::parse(std::str::from_utf8(line).ok()?)
}

/// The commits that a commit's lines name as its parents.
pub(super) fn parent_lines(commit: &[u8]) -> impl Iterator<Item = Id> {
    let head = commit.split(|&byte| byte == b'\n').take_while(|line| !line.is_empty());
    head.filter_map(|line| Id::parse(std::str::from_utf8(line.strip_prefix(b"parent ")?).ok()?))
}
