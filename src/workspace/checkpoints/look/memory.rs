//! What the last look has seen: the folders with their files, kept in memory between two looks.

use super::stamp::Stamp;
use crate::workspace::checkpoints::store::{Id, Item, Leaf};

/// A folder as it was seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Folder {
    /// What is in it, sorted by the bytes of the names. Folders without files are not in it.
    pub(super) entries: Vec<Entry>,
    /// Its tree object; `None` when that has to be written yet.
    pub(super) tree: Option<Id>,
    /// How many files are in it and below.
    pub(crate) files: usize,
}

/// A name in a folder.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) name: Box<[u8]>,
    pub(super) node: Node,
}

/// What has the name.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Folder(Folder),
    File(Seen),
}

/// A file as it was seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) leaf: Leaf,
    /// `None`: it is read at the next look in any case.
    pub(super) stamp: Option<Stamp>,
}

impl Node {
    /// The entry in the tree object; `None` for a folder whose object is not written yet.
    pub(super) fn item(&self) -> Option<Item> {
        match self {
            Self::Folder(folder) => folder.tree.map(Item::Folder),
            Self::File(seen) => Some(Item::File(seen.leaf)),
        }
    }
}

impl Folder {
    /// A folder with these entries.
    pub(super) fn new(entries: Vec<Entry>, tree: Option<Id>) -> Self {
        let files = |entry: &Entry| if let Node::Folder(folder) = &entry.node { folder.files } else { 1 };
        let files = entries.iter().map(files).sum();
        Self { entries, tree, files }
    }

    /// Forgets what the store does not have: those files are read again, those trees written again. Returns whether
    /// it has everything.
    pub(crate) fn retain(&mut self, has: &impl Fn(Id) -> bool) -> bool {
        let mut is_whole = self.tree.is_some_and(has);
        self.entries.retain_mut(|entry| match &mut entry.node {
            Node::Folder(folder) => {
                is_whole &= folder.retain(has);
                true
            }
            Node::File(seen) => {
                let is_there = has(seen.leaf.id);
                is_whole &= is_there;
                is_there
            }
        });
        if !is_whole {
            self.tree = None;
        }
        is_whole
    }
}
