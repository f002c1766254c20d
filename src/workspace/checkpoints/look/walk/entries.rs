//! One folder: what is in it, what of that counts, and its tree object.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode as Permissions, OFlags, RawDir};
use rustix::io::Errno;

use super::helper::Task;
use super::wanted::Named;
use super::{DEEPEST, Walk, Wanted};
use crate::workspace::checkpoints::CheckpointError;
use crate::workspace::checkpoints::look::memory::{Entry, Folder, Node};
use crate::workspace::checkpoints::look::rules::is_dependency_folder;
use crate::workspace::checkpoints::store::{Id, Kind, encode};

impl Walk<'_, '_> {
    /// Looks at a folder that is open.
    pub(super) fn folder(
        &mut self,
        folder: &OwnedFd,
        last: Folder,
        wanted: Wanted<'_>,
        depth: usize,
    ) -> Result<Folder, CheckpointError> {
        let names = match if wanted.is_listed { self.list(folder) } else { Ok(wanted.names()) } {
            Ok(names) => names,
            // Deleted since it was opened.
            Err(Errno::NOENT) => return Ok(Folder::default()),
            Err(error) => return self.refused(error, last),
        };
        let outer_rules = self.rules.len();
        let has = |name: &[u8]| names.binary_search_by(|(found, _)| (**found).cmp(name)).is_ok();
        let base = self.base();
        let mut repository = None;
        if wanted.is_listed && has(b".git") {
            let path = self.shared.places.root.join(Path::new(std::ffi::OsStr::from_bytes(&self.path)));
            let mut repositories = self.shared.repositories.lock().unwrap_or_else(PoisonError::into_inner);
            repository = repositories.at(&path, &base);
        }
        self.rules.extend(repository.as_ref().map(|repository| Arc::clone(&repository.exclude)));
        if wanted.is_listed && has(b".gitignore") {
            let mut repositories = self.shared.repositories.lock().unwrap_or_else(PoisonError::into_inner);
            self.rules.extend(repositories.ignore_file(folder.as_fd(), &base));
        }
        let tracked = repository.as_ref().map(|repository| &*repository.tracked).or(wanted.tracked);
        let folder = self.entries(folder, names, last, &Wanted { tracked, ..wanted }, depth);
        self.rules.truncate(outer_rules);
        folder
    }

    fn entries(
        &mut self,
        folder: &OwnedFd,
        names: Vec<Named>,
        last: Folder,
        wanted: &Wanted<'_>,
        depth: usize,
    ) -> Result<Folder, CheckpointError> {
        let mut is_same = true;
        let mut entries = Vec::with_capacity(last.entries.len());
        let mut tasks = Vec::new();
        let mut known = last.entries.into_iter().peekable();
        for (name, kind) in names {
            while known.next_if(|entry| *entry.name < *name).is_some() {
                is_same = false;
            }
            let old = known.next_if(|entry| entry.name == name).map(|entry| entry.node);
            let old_item = old.as_ref().and_then(Node::item);
            let found = self.within(&name, |walk| walk.entry(folder.as_fd(), &name, kind, old, wanted))?;
            match found {
                Counts::Not => is_same &= old_item.is_none(),
                Counts::File(node) => {
                    is_same &= node.item() == old_item;
                    entries.push(Entry { name, node });
                }
                Counts::Folder(last, wanted) => {
                    // A folder of this name may have been a file, which is no folder's last state.
                    tasks.push(Task { place: entries.len(), old_item, last, wanted });
                    entries.push(Entry { name, node: Node::Folder(Folder::default()) });
                }
            }
        }
        is_same &= known.next().is_none();
        is_same &= self.folders(folder, &mut entries, tasks, depth)?;
        // Folders without files do not count.
        entries.retain(|entry| !matches!(&entry.node, Node::Folder(folder) if folder.entries.is_empty()));
        self.told.is_new |= !is_same;
        let tree = match last.tree.filter(|_| is_same) {
            Some(tree) => Some(tree),
            None if entries.is_empty() => None,
            None => Some(self.write_tree(&entries)?),
        };
        Ok(Folder::new(entries, tree))
    }

    /// What counts of an entry. The path is the entry's.
    fn entry<'n>(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &[u8],
        kind: FileType,
        old: Option<Node>,
        wanted: &Wanted<'n>,
    ) -> Result<Counts<'n>, CheckpointError> {
        if self.shared.places.is_outside(&self.path, name) {
            return Ok(Counts::Not);
        }
        match kind {
            FileType::Directory => {
                let is_left_out = !wanted.is_listed || is_dependency_folder(name) || self.is_ignored(true);
                let below = wanted.below(name, !is_left_out);
                if is_left_out && !below.names_any() {
                    return Ok(Counts::Not);
                }
                let last = if let Some(Node::Folder(last)) = old { last } else { Folder::default() };
                Ok(Counts::Folder(last, below))
            }
            FileType::RegularFile | FileType::Symlink => {
                if !wanted.names_file(name) && (!wanted.is_listed || self.is_ignored(false)) {
                    return Ok(Counts::Not);
                }
                let old = if let Some(Node::File(old)) = old { Some(old) } else { None };
                Ok(self.file(folder, name, old)?.map_or(Counts::Not, |seen| Counts::File(Node::File(seen))))
            }
            // File systems that do not tell in a listing, and names that were not listed.
            FileType::Unknown => match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                    FileType::Unknown => Ok(Counts::Not),
                    kind => self.entry(folder, name, kind, old, wanted),
                },
                Err(_) => Ok(Counts::Not),
            },
            _ => Ok(Counts::Not),
        }
    }

    /// Looks at a folder in an open one. The path is the folder's own.
    pub(super) fn enter(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &[u8],
        last: Folder,
        wanted: Wanted<'_>,
        depth: usize,
    ) -> Result<Folder, CheckpointError> {
        if depth == DEEPEST {
            return self.refused(Errno::NAMETOOLONG, Folder::default());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(folder, name, flags, Permissions::empty()) {
            Ok(below) => self.folder(&below, last, wanted, depth + 1),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(Folder::default()),
            Err(error) => self.refused(error, last),
        }
    }

    /// What is in a folder, sorted by name.
    fn list(&mut self, folder: &OwnedFd) -> Result<Vec<Named>, Errno> {
        let mut names = Vec::new();
        let mut listing = RawDir::new(folder, self.listing.spare_capacity_mut());
        while let Some(entry) = listing.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") {
                names.push((name.into(), entry.file_type()));
            }
        }
        names.sort_unstable_by(|(a, _): &Named, (b, _)| a.cmp(b));
        Ok(names)
    }

    pub(super) fn write_tree(&mut self, entries: &[Entry]) -> Result<Id, CheckpointError> {
        let items = entries.iter().filter_map(|entry| Some((&*entry.name, entry.node.item()?))).collect();
        let tree = self.shared.intake.write(self.shared.store, Kind::Tree, &encode(items))?;
        tree.ok_or(CheckpointError::Unknown)
    }
}

/// Whether an entry counts, and how.
enum Counts<'n> {
    Not,
    File(Node),
    /// With what was last seen in it, and what is wanted of it.
    Folder(Folder, Wanted<'n>),
}
