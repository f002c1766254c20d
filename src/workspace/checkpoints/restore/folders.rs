//! Folders of the project, opened name by name: no link is followed on the way.

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::workspace::checkpoints::CheckpointError;
use crate::workspace::checkpoints::look::Places;

/// The project's folder, and the folder in it that was used last.
pub(super) struct Folders {
    root: OwnedFd,
    last: Option<(Vec<u8>, OwnedFd)>,
    has_made: bool,
}

impl Folders {
    /// Nothing but the root is open.
    ///
    /// # Errors
    /// The project is gone.
    pub(super) fn new(places: &Places) -> Result<Self, CheckpointError> {
        Ok(Self { root: places.open()?, last: None, has_made: false })
    }

    /// The project's folder itself.
    pub(super) fn root(&self) -> &OwnedFd {
        &self.root
    }

    /// Whether folders were made.
    pub(super) fn has_made(&self) -> bool {
        self.has_made
    }

    /// The folder that a path is in, and the path's last name. Folders that are missing are made if `is_made`.
    ///
    /// # Errors
    /// What the system says: `NOTDIR` or `LOOP` when a file or a link is where a folder should be.
    pub(super) fn parent<'p>(&mut self, path: &'p [u8], is_made: bool) -> Result<(&OwnedFd, &'p [u8]), Errno> {
        let Some(slash) = path.iter().rposition(|&byte| byte == b'/') else {
            return Ok((&self.root, path));
        };
        let (folder, name) = (&path[..slash], &path[slash + 1..]);
        let last = match self.last.take() {
            Some((known, opened)) if known == folder => (known, opened),
            _ => (folder.to_vec(), self.open(folder, is_made)?),
        };
        Ok((&self.last.insert(last).1, name))
    }

    /// Forgets the folder that was used last: it may be removed.
    pub(super) fn close(&mut self) {
        self.last = None;
    }

    fn open(&mut self, folder: &[u8], is_made: bool) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut opened: Option<OwnedFd> = None;
        for name in folder.split(|&byte| byte == b'/') {
            let here = opened.as_ref().unwrap_or(&self.root);
            let below = match rustix::fs::openat(here, name, flags, Mode::empty()) {
                Err(Errno::NOENT) if is_made => {
                    // The user's mask takes away what it is meant to.
                    match rustix::fs::mkdirat(here, name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(error),
                    }
                    self.has_made = true;
                    rustix::fs::openat(here, name, flags, Mode::empty())?
                }
                other => other?,
            };
            opened = Some(below);
        }
        opened.ok_or(Errno::INVAL)
    }
}
