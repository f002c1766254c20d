//! The walk: folder by folder, beside what the last look has seen of it, by two threads where there is enough to do.

mod entries;
mod file;
mod helper;
mod wanted;

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use super::memory::Folder;
use super::names::Names;
use super::places::Places;
use super::rules::{List, Outer, Repositories, is_ignored};
use crate::workspace::checkpoints::CheckpointError;
use crate::workspace::checkpoints::store::{Id, Intake, Store};
use wanted::Wanted;

/// Folders within folders. Each level holds a file descriptor, of which there are often 1,024.
pub(super) const DEEPEST: usize = 200;

/// 32 KiB: the names of some hundred files at a time.
const LISTING_BYTES: usize = 32 << 10;

/// What a look has seen.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) folder: Folder,
    pub(crate) tree: Id,
    pub(crate) told: Told,
}

/// What a look tells beside the files.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// How many files were read.
    pub(crate) read: usize,
    /// Whether something is not as it was at the last look.
    pub(crate) is_new: bool,
    pub(crate) too_large: Vec<Vec<u8>>,
    pub(crate) unreadable: Vec<Vec<u8>>,
}

/// Looks at the project. New objects are in `intake` afterwards.
///
/// `also` are paths that count although they may be ignored. A file that cannot be read stays as `last` has it.
///
/// # Errors
/// The project is gone, an object cannot be written, or the system is out of something.
pub(crate) fn look(
    places: &Places,
    store: &Store,
    intake: &Intake,
    repositories: &mut Repositories,
    also: &[&Names],
    last: Folder,
) -> Result<Seen, CheckpointError> {
    let root = places.open()?;
    let outer = Outer::around(&places.root, repositories);
    let shared = Shared {
        places,
        store,
        intake,
        repositories: Mutex::new(repositories),
        outer: outer.as_ref(),
        running: AtomicUsize::new(1),
    };
    let mut walk = Walk::new(&shared, Vec::new(), Vec::new());
    let tracked = outer.as_ref().and_then(Outer::tracked);
    let wanted = Wanted { is_listed: true, tracked, also: also.to_vec() };
    let mut folder = walk.folder(&root, last, wanted, 0)?;
    let tree = match folder.tree {
        Some(tree) => tree,
        // Nothing is in it.
        None => walk.write_tree(&[])?,
    };
    folder.tree = Some(tree);
    let mut told = walk.told;
    told.too_large.sort_unstable();
    told.unreadable.sort_unstable();
    Ok(Seen { folder, tree, told })
}

/// What both threads use.
struct Shared<'a> {
    places: &'a Places,
    store: &'a Store,
    intake: &'a Intake,
    repositories: Mutex<&'a mut Repositories>,
    outer: Option<&'a Outer>,
    /// How many threads walk now; one that waits for the other does not.
    running: AtomicUsize,
}

/// What one thread knows where it is.
struct Walk<'a, 's> {
    shared: &'s Shared<'a>,
    /// The rules that hold in the folder, the most important ones last.
    rules: Vec<Arc<List>>,
    /// The path of the folder, then of the entry.
    path: Vec<u8>,
    listing: Vec<u8>,
    told: Told,
}

impl<'a, 's> Walk<'a, 's> {
    fn new(shared: &'s Shared<'a>, rules: Vec<Arc<List>>, path: Vec<u8>) -> Self {
        Self { shared, rules, path, listing: Vec::with_capacity(LISTING_BYTES), told: Told::default() }
    }

    /// Does something where the path is one name longer.
    fn within<T>(&mut self, name: &[u8], work: impl FnOnce(&mut Self) -> T) -> T {
        let len = self.path.len();
        if len > 0 {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name);
        let value = work(self);
        self.path.truncate(len);
        value
    }

    /// The folder's path as rules want it: with a slash at its end, unless it is the root.
    fn base(&self) -> Vec<u8> {
        if self.path.is_empty() { Vec::new() } else { [&self.path, b"/".as_slice()].concat() }
    }

    fn is_ignored(&self, is_folder: bool) -> bool {
        is_ignored(self.rules.iter().map(Arc::as_ref), &self.path, is_folder)
            .unwrap_or_else(|| self.shared.outer.is_some_and(|outer| outer.is_ignored(&self.path, is_folder)))
    }
}

impl Told {
    fn add(&mut self, other: Self) {
        self.read += other.read;
        self.is_new |= other.is_new;
        self.too_large.extend(other.too_large);
        self.unreadable.extend(other.unreadable);
    }
}
