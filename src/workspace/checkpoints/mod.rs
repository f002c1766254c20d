//! The state of a project's files, kept as git objects in one bare repository in the workspace's state folder.
//!
//! ```text
//! look:    the project's files ─▶ tree        (reads only what is new since the last look)
//! store:   blobs, trees, commits, references  (a bare repository, `git` can read it)
//! changes: tree, tree ─▶ what differs, with diffs
//! restore: tree ─▶ the project's files        (deletes only what is known)
//! ```
//!
//! Everything blocks: it is called on a blocking thread, one call at a time.
//!
//! **Invariant:** nothing below the project's own `.git` is ever written, and no `git` program is run.
//! **Invariant:** this part knows files, trees and commits. Who they belong to is kept by the caller.

mod changes;
mod error;
mod keep;
mod known;
mod look;
mod restore;
mod store;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use changes::{ChangedFile, Status};
pub use error::CheckpointError;
pub use keep::PreImage;
pub use look::Touched;
use look::{Folder, Names, Places, Repositories};
#[cfg(test)]
pub use restore::{Left, Reason, Restored};
pub use store::Mode;
use store::{Id, Intake, Store};

use crate::bounded::memory::Reservation;

/// The approved state and the newest one are asked for again and again.
const MOST_NAMED_TREES: usize = 4;

/// The checkpoints of one project.
#[derive(Debug)]
pub struct Checkpoints {
    places: Places,
    store: Store,
    repositories: Repositories,
    /// The paths of trees that were looked for lately, the latest ones last.
    named: Vec<(Id, Arc<Names>)>,
    /// What the last look has seen, and the file that keeps it.
    seen: Folder,
    seen_file: PathBuf,
}

/// The state of a project's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The id of the tree object, 40 hexadecimal digits.
    pub tree: String,
    /// How many files it has.
    pub files: usize,
    /// How many files had to be read for it.
    pub read: usize,
    /// Files over 64 MiB, which it does not have.
    pub too_large: Vec<Vec<u8>>,
    /// Files and folders that could not be read. It has them as they were at the last look, if they were seen then.
    pub unreadable: Vec<Vec<u8>>,
}

impl Checkpoints {
    /// Opens the checkpoints of the project at `root`, or begins them. They are kept in `state`, a folder inside of the
    /// root that is made when it is missing: `checkpoints.git`, and beside it what was seen of the project.
    ///
    /// # Errors
    /// The project is gone, or the state folder cannot be written.
    pub fn open(root: &Path, state: &Path) -> Result<Self, CheckpointError> {
        if !root.is_dir() {
            return Err(CheckpointError::Gone);
        }
        std::fs::create_dir_all(state).map_err(CheckpointError::while_doing("making the state folder"))?;
        let places = Places::new(root, state)?;
        let store = Store::open(state.join("checkpoints.git"))?;
        let seen_file = state.join("checkpoints.seen");
        let mut seen = look::load(&seen_file).unwrap_or_default();
        retain(&mut seen, &store)?;
        Ok(Self { places, store, repositories: Repositories::default(), named: Vec::new(), seen, seen_file })
    }

    /// The state of the project's files now. Its objects are on the disk.
    ///
    /// These count: what git tracks; what no ignore rule leaves out and is in no folder of dependencies or caches; and,
    /// ignored or not, what is `touched` or in one of the trees `also`. Links count as links. `.git`, the state folder
    /// and what is no file never do.
    ///
    /// # Errors
    /// A tree of `also` is unknown, the project is gone, or something cannot be written.
    pub fn snapshot(&mut self, touched: &Touched, also: &[&str]) -> Result<Snapshot, CheckpointError> {
        let mut trees = Vec::new();
        for tree in also {
            trees.push(self.names_of(parse(tree)?)?);
        }
        let seen = self.look(touched, &trees)?;
        Ok(Snapshot {
            tree: seen.tree.to_string(),
            files: self.seen.files,
            read: seen.told.read,
            too_large: seen.told.too_large,
            unreadable: seen.told.unreadable,
        })
    }

    /// How the project's files differ now from those of a tree, together with what files were before a tool's first touch.
    /// It is only a look: nothing of it stays in the store.
    ///
    /// # Errors
    /// As [`Checkpoints::snapshot`], or there is no memory for what differs.
    pub fn compare(
        &mut self,
        (tree, before): (&str, &[PreImage]),
        touched: &Touched,
        held: &mut Reservation,
    ) -> Result<Vec<ChangedFile>, CheckpointError> {
        let intake = Intake::new(&self.store);
        let from = self.with_files(&intake, parse(tree)?, before)?;
        let names = self.names_of(from)?;
        let look::Seen { folder, tree, told } = self.glance(&intake, touched, &[names], self.seen.clone())?;
        let differing = self.differing(from, tree, held);
        // What the store does not get is read again at the next look.
        if intake.is_empty() {
            self.remember(folder, told.is_new);
        }
        differing
    }

    /// Looks at the project, stores what is new and remembers what was seen.
    fn look(&mut self, touched: &Touched, trees: &[Arc<Names>]) -> Result<look::Seen, CheckpointError> {
        let intake = Intake::new(&self.store);
        let last = std::mem::take(&mut self.seen);
        let mut seen = self.glance(&intake, touched, trees, last)?;
        intake.finish(&self.store)?;
        self.remember(std::mem::take(&mut seen.folder), seen.told.is_new);
        Ok(seen)
    }

    /// Looks at the project, of which `last` was seen before. What is new is in `intake`.
    fn glance(
        &mut self,
        intake: &Intake,
        touched: &Touched,
        trees: &[Arc<Names>],
        last: Folder,
    ) -> Result<look::Seen, CheckpointError> {
        let mut named = Names::default();
        touched.iter().for_each(|path| named.insert(path));
        let also: Vec<&Names> = trees.iter().map(Arc::as_ref).chain([&named]).collect();
        look::look(&self.places, &self.store, intake, &mut self.repositories, &also, last)
    }

    /// Remembers what was seen, all of which the store has.
    fn remember(&mut self, seen: Folder, is_new: bool) {
        self.seen = seen;
        if is_new {
            // Without it everything is read once more after a restart: no reason to fail.
            let _ = look::save(&self.seen_file, &self.seen);
        }
    }

    /// The paths of a tree.
    fn names_of(&mut self, tree: Id) -> Result<Arc<Names>, CheckpointError> {
        let known = self.named.iter().position(|(known, _)| *known == tree);
        let latest = match known {
            Some(place) => self.named.remove(place),
            None => {
                let mut names = Names::default();
                store::differences(&self.store, None, Some(tree), &mut |path, _, _| names.insert(path))?;
                (tree, Arc::new(names))
            }
        };
        let names = Arc::clone(&latest.1);
        self.named.push(latest);
        if self.named.len() > MOST_NAMED_TREES {
            self.named.remove(0);
        }
        Ok(names)
    }

    /// Removes the references of these checkpoints, so that [`Checkpoints::prune`] may remove what only they had.
    /// What is no id of a checkpoint is passed over.
    ///
    /// # Errors
    /// The system refused.
    pub fn forget(&mut self, ids: &[&str]) -> Result<(), CheckpointError> {
        let ids: HashSet<Id> = ids.iter().filter_map(|id| Id::parse(id)).collect();
        self.store.forget(&ids)
    }

    /// Removes the objects that no checkpoint has, and returns how many. Trees that were told but not kept are gone
    /// afterwards: it is to be called at start, before anything else.
    ///
    /// # Errors
    /// Something is damaged, in which case nothing is removed; or the system refused.
    pub fn prune(&mut self) -> Result<usize, CheckpointError> {
        let removed = self.store.prune()?;
        retain(&mut self.seen, &self.store)?;
        Ok(removed)
    }
}

/// Forgets of what was seen that which the store does not have, such as what was pruned.
fn retain(seen: &mut Folder, store: &Store) -> Result<(), CheckpointError> {
    let loose = store.loose_ids().map_err(CheckpointError::while_doing("listing the objects"))?;
    let loose: HashSet<Id> = loose.into_iter().collect();
    seen.retain(&|id| loose.contains(&id) || store.contains(id));
    Ok(())
}

/// The id that a caller names.
fn parse(id: &str) -> Result<Id, CheckpointError> {
    Id::parse(id).ok_or(CheckpointError::Unknown)
}
