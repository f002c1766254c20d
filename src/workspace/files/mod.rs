//! Files below one open directory: what the tools of a coding agent read, write, replace, delete, list and search.
//!
//! ```text
//! path as asked ─asked─▶ names below the root ─resolve─▶ open folder + last name ─▶ read | write | delete | list | search
//! ```
//!
//! **Invariant:** every step goes from a folder that is open to a name in it, and never lets the kernel follow a link:
//! whatever is exchanged meanwhile, nothing outside of the root is opened.
//! **Invariant:** no folder `.git`, in any letter case, is written to; the state folder is not even read.
//! **Invariant:** a file is replaced whole, by rename: a reader who had begun keeps what it began with.

mod asked;
mod change;
mod delete;
mod error;
mod list;
mod read;
mod replace;
mod resolve;
mod search;
mod standing;
mod walk;
mod write;

#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};

pub use change::{FileChange, Image};
pub use error::FileError;
pub use replace::replaced;
pub use standing::Before;

/// 10 MB: what may be written as one file, and what is searched.
pub const MOST_FILE_BYTES: u64 = 10_000_000;

/// 64 MiB: what a checkpoint keeps of one file.
const MOST_KEPT_BYTES: u64 = 64 << 20;

/// One open directory, and the name of the folder in it that belongs to the server.
///
/// All functions block: they belong on threads for that. Nothing here locks: who calls [`Root::replaced`],
/// [`Root::write`] or [`Root::delete`] holds a lock, so that of two edits none is lost.
#[derive(Debug)]
pub struct Root {
    folder: OwnedFd,
    path: PathBuf,
    /// `path` without any link: absolute paths and links may be written either way.
    canonical: PathBuf,
    /// In lower case.
    state: String,
}

impl Root {
    /// Opens the directory `path`, in which no tool sees the folder `state`.
    ///
    /// # Errors
    /// When it is not there, no directory, or may not be opened.
    pub fn open(path: &Path, state: &str) -> Result<Self, FileError> {
        let shown = path.to_string_lossy();
        let failed = |error: io::Error| FileError::of_io(error, &shown);
        let canonical = path.canonicalize().map_err(failed)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?;
        let absolute = std::path::absolute(path).map_err(failed)?;
        let is_plain = absolute.components().all(|part| part != std::path::Component::ParentDir);
        let path = if is_plain { absolute.components().collect() } else { canonical.clone() };
        Ok(Self { folder, path, canonical, state: state.to_lowercase() })
    }

    /// The absolute path of `relative`, which is `""` for the root; what is not UTF-8 of it is shown as U+FFFD.
    pub fn absolute(&self, relative: &str) -> String {
        let root = self.path.to_string_lossy();
        match (root.as_ref(), relative) {
            (root, "") => root.to_owned(),
            ("/", relative) => format!("/{relative}"),
            (root, relative) => format!("{root}/{relative}"),
        }
    }
}
