//! Removes what no reference keeps any more.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;

use super::refs::{parent_lines, tree_line};
use super::trees::children;
use super::{Id, Kind, Store};
use crate::workspace::checkpoints::CheckpointError;

impl Store {
    /// Removes the objects that lie by themselves and are not reachable from any reference. Returns how many.
    ///
    /// Nothing is removed when something that a reference needs cannot be read: what it needed in turn is not known.
    ///
    /// # Errors
    /// Something is damaged, or the system refused.
    pub(crate) fn prune(&self) -> Result<usize, CheckpointError> {
        let kept = self.reachable()?;
        let loose = self.loose_ids().map_err(CheckpointError::while_doing("listing the objects"))?;
        let mut removed = 0;
        for id in loose.into_iter().filter(|id| !kept.contains(id)) {
            match fs::remove_file(self.loose(id)) {
                Ok(()) => removed += 1,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(CheckpointError::while_doing("removing an object")(error)),
            }
        }
        Ok(removed)
    }

    /// All objects that a reference leads to. Parents of a commit are kept by it, forgotten or not.
    fn reachable(&self) -> Result<HashSet<Id>, CheckpointError> {
        let referenced = self.referenced()?;
        let mut kept = HashSet::new();
        let mut commits: Vec<Id> = referenced.iter().copied().collect();
        let mut trees = Vec::new();
        while let Some(commit) = commits.pop() {
            if !kept.insert(commit) {
                continue;
            }
            let content = self.read(commit, Kind::Commit)?;
            trees.extend(tree_line(&content));
            commits.extend(parent_lines(&content));
        }
        while let Some(tree) = trees.pop() {
            if !kept.insert(tree) {
                continue;
            }
            let (folders, files) = children(self, tree)?;
            trees.extend(folders);
            kept.extend(files);
        }
        Ok(kept)
    }
}
