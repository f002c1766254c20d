//! The objects: a bare repository of git whose objects lie one by one, and its references.
//!
//! ```text
//! content ─▶ Intake: written aside ─sync─▶ moved into `objects/` ─sync─▶ id is told
//!            trees: folders as objects, what differs between two, what is added to one
//!            refs: commits and the references that keep them; prune: what no reference keeps goes
//! ```
//!
//! **Invariant:** an object that is at its place is whole: it was on the disk before it was moved there.

mod id;
mod intake;
mod pack;
mod prune;
mod read;
mod refs;
mod trees;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

pub use id::Mode;
pub(crate) use id::{Id, Kind, Leaf};
pub(super) use intake::Intake;
pub(super) use trees::{Item, add, differences, encode, leaf_at};

use super::CheckpointError;
use pack::Packs;

/// What `git` needs to take the folder for a repository. `gc.auto`: nothing of git's own accord throws away what no
/// reference keeps yet.
const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n[gc]\n\tauto = 0\n[receive]\n\tautogc = false\n";

/// The folder beside `objects` where files wait until they are moved into the project.
const STAGING: &str = "outgoing";

/// One bare repository.
#[derive(Debug)]
pub(super) struct Store {
    root: PathBuf,
    packs: Packs,
}

impl Store {
    /// Opens the repository at `root`, or makes it.
    ///
    /// # Errors
    /// The folder cannot be made or written.
    pub(super) fn open(root: PathBuf) -> Result<Self, CheckpointError> {
        make(&root).map_err(CheckpointError::while_doing("making the object store"))?;
        let packs = Packs::new(root.join("objects/pack"));
        Ok(Self { root, packs })
    }

    /// Where the object would be if it lies by itself.
    fn loose(&self, id: Id) -> PathBuf {
        let hex = id.to_string();
        self.root.join("objects").join(&hex[..2]).join(&hex[2..])
    }

    /// Where the object waits until it is stored.
    fn waiting(&self, id: Id) -> PathBuf {
        self.root.join(intake::ASIDE).join(id.to_string())
    }

    /// The folder for files that are on their way into the project.
    pub(crate) fn staging(&self) -> PathBuf {
        self.root.join(STAGING)
    }

    /// Whether the object is there.
    pub(super) fn contains(&self, id: Id) -> bool {
        rustix::fs::access(self.loose(id), rustix::fs::Access::EXISTS).is_ok() || self.packs.contains(id)
    }

    /// The ids of all objects that lie by themselves.
    pub(super) fn loose_ids(&self) -> io::Result<Vec<Id>> {
        let mut ids = Vec::new();
        for shard in fs::read_dir(self.root.join("objects"))? {
            let shard = shard?;
            let Some(first) = shard.file_name().to_str().filter(|name| name.len() == 2).map(str::to_owned) else {
                continue;
            };
            let files = match fs::read_dir(shard.path()) {
                Ok(files) => files,
                Err(error) if error.kind() == ErrorKind::NotADirectory => continue,
                Err(error) => return Err(error),
            };
            for file in files {
                let name = file?.file_name();
                ids.extend(name.to_str().and_then(|rest| Id::parse(&format!("{first}{rest}"))));
            }
        }
        Ok(ids)
    }
}

/// Makes what is not there yet; everything that is there stays. `HEAD` comes last: without it git sees no repository.
fn make(root: &Path) -> io::Result<()> {
    for folder in ["objects/info", "objects/pack", "refs/heads", "refs/checkpoints"] {
        fs::create_dir_all(root.join(folder))?;
    }
    for broken_off in [intake::ASIDE, STAGING] {
        let folder = root.join(broken_off);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
    }
    for (name, content) in [("config", CONFIG), ("HEAD", "ref: refs/heads/main\n")] {
        let path = root.join(name);
        if fs::read(&path).is_ok_and(|found| !found.is_empty()) {
            continue;
        }
        let temporary = root.join(format!("{name}.new"));
        fs::write(&temporary, content)?;
        fs::File::open(&temporary)?.sync_all()?;
        fs::rename(&temporary, &path)?;
    }
    sync_folder(root)?;
    sync_folder(&root.join("refs"))
}

/// Brings the names in a folder onto the disk.
fn sync_folder(path: &Path) -> io::Result<()> {
    fs::File::open(path)?.sync_all()
}
