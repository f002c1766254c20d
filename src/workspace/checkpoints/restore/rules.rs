//! What a tree could not have: its own rules leave it out.

use std::collections::HashMap;
use std::sync::Arc;

use crate::workspace::checkpoints::CheckpointError;
use crate::workspace::checkpoints::look::{List, MOST_RULE_BYTES, is_dependency_folder, is_ignored, parse_rules};
use crate::workspace::checkpoints::store::{Id, Kind, Leaf, Mode, Store, leaf_at};

/// The rules of a tree.
pub(super) struct Rules<'a> {
    store: &'a Store,
    tree: Id,
    /// What was read, by folder: `""`, or a path that ends in a slash.
    read: HashMap<Vec<u8>, Option<Arc<List>>>,
}

impl<'a> Rules<'a> {
    pub(super) fn new(store: &'a Store, tree: Id) -> Self {
        Self { store, tree, read: HashMap::new() }
    }

    /// Whether they leave out a file of this path, or a folder on the way to it.
    pub(super) fn leave_out(&mut self, path: &[u8]) -> Result<bool, CheckpointError> {
        let mut lists = Vec::from_iter(self.list(b"")?);
        let mut start = 0;
        for name in path.split(|&byte| byte == b'/') {
            let end = start + name.len();
            let is_folder = end < path.len();
            let is_dependency = is_folder && is_dependency_folder(name);
            if is_dependency || is_ignored(lists.iter().map(Arc::as_ref), &path[..end], is_folder) == Some(true) {
                return Ok(true);
            }
            start = end + 1;
            if is_folder {
                lists.extend(self.list(&path[..start])?);
            }
        }
        Ok(false)
    }

    fn list(&mut self, folder: &[u8]) -> Result<Option<Arc<List>>, CheckpointError> {
        if let Some(known) = self.read.get(folder) {
            return Ok(known.clone());
        }
        let file = leaf_at(self.store, self.tree, &[folder, b".gitignore"].concat())?;
        let list = match file {
            Some(Leaf { id, mode: Mode::File | Mode::Executable }) => {
                let text = self.store.read(id, Kind::Blob)?;
                (text.len() <= MOST_RULE_BYTES).then(|| Arc::new(parse_rules(&text, folder)))
            }
            _ => None,
        };
        self.read.insert(folder.to_vec(), list.clone());
        Ok(list)
    }
}
