//! Where the project is, and what in it is none of its files.

use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::workspace::checkpoints::CheckpointError;

/// The project's folder and the state folder in it.
#[derive(Debug)]
pub(crate) struct Places {
    pub(crate) root: PathBuf,
    /// The state folder relative to the root; `None` when it lies elsewhere.
    state: Option<Vec<u8>>,
    /// A hidden state folder's name: folders of this name are state folders of projects within this one.
    hidden: Option<Vec<u8>>,
}

impl Places {
    /// The places, with the links on the way to them resolved.
    ///
    /// # Errors
    /// There is no such folder.
    pub(crate) fn new(root: &Path, state: &Path) -> Result<Self, CheckpointError> {
        let root = root.canonicalize().map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => CheckpointError::Gone,
            _ => CheckpointError::while_doing("finding the project's folder")(error),
        })?;
        let state = state.canonicalize().map_err(CheckpointError::while_doing("finding the state folder"))?;
        let relative = state.strip_prefix(&root).ok().map(|path| path.as_os_str().as_bytes().to_vec());
        let name = relative.as_ref().and(state.file_name()).map(|name| name.as_bytes().to_vec());
        Ok(Self { root, state: relative, hidden: name.filter(|name| name.starts_with(b".")) })
    }

    /// Opens the project's folder.
    ///
    /// # Errors
    /// It is gone, or may not be read.
    pub(crate) fn open(&self) -> Result<OwnedFd, CheckpointError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(CWD, &self.root, flags, Mode::empty()).map_err(|error| match error {
            Errno::NOENT | Errno::NOTDIR => CheckpointError::Gone,
            error => CheckpointError::while_doing("opening the project's folder")(error),
        })
    }

    /// Whether what has this path and, at its end, this name is never a file of the project: `.git` in any spelling,
    /// and state folders.
    pub(super) fn is_outside(&self, path: &[u8], name: &[u8]) -> bool {
        name.eq_ignore_ascii_case(b".git")
            || self.hidden.as_deref() == Some(name)
            || self.state.as_deref() == Some(path)
    }

    /// The same for every folder on the way to a path.
    pub(crate) fn is_anywhere_outside(&self, path: &[u8]) -> bool {
        let mut start = 0;
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        ends.chain([path.len()]).any(|end| {
            let is_outside = self.is_outside(&path[..end], &path[start..end]);
            start = end + 1;
            is_outside
        })
    }
}
