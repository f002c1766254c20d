//! What counts in a folder.

use std::collections::BTreeSet;

use rustix::fs::FileType;

use crate::workspace::checkpoints::look::names::Names;

/// A name in a folder, and what has it.
pub(super) type Named = (Box<[u8]>, FileType);

/// What counts in a folder.
#[derive(Clone)]
pub(super) struct Wanted<'n> {
    /// Whether everything counts that is not ignored; if not, only the named paths do.
    pub(super) is_listed: bool,
    /// What git tracks in it.
    pub(super) tracked: Option<&'n Names>,
    /// What was touched, or is in a tree that is looked for.
    pub(super) also: Vec<&'n Names>,
}

impl<'n> Wanted<'n> {
    /// The same for a folder in this one.
    pub(super) fn below(&self, name: &[u8], is_listed: bool) -> Self {
        let tracked = self.tracked.and_then(|names| names.get(name));
        Self { is_listed, tracked, also: self.also.iter().filter_map(|names| names.get(name)).collect() }
    }

    /// Whether a file in this folder is named.
    pub(super) fn names_file(&self, name: &[u8]) -> bool {
        self.named().filter_map(|names| names.get(name)).any(Names::is_file)
    }

    /// Whether something in this folder is named.
    pub(super) fn names_any(&self) -> bool {
        self.named().any(Names::is_folder)
    }

    /// The named paths of this folder, sorted; what they are has to be asked.
    pub(super) fn names(&self) -> Vec<Named> {
        let mut names = BTreeSet::new();
        self.named().for_each(|named| named.collect(&mut names));
        names.into_iter().map(|name| (name, FileType::Unknown)).collect()
    }

    fn named(&self) -> impl Iterator<Item = &'n Names> {
        self.tracked.into_iter().chain(self.also.iter().copied())
    }
}
