//! From names to an open folder and a last name in it, step by step, each from a folder that is open already.
//!
//! Links are read and followed here, and not by the kernel: so the names that a path really leads through are known,
//! and the walls stand before each of them. A link that is exchanged in between is just another name to open.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::Root;
use super::asked::Asked;
use super::error::FileError;

/// How many links one path may lead through, as in the kernel.
const MOST_LINKS: usize = 40;

/// What is meant to be done, which decides where the walls stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Anything but the state folder.
    Read,
    /// Neither the state folder nor `.git`.
    Look,
    /// As [`Purpose::Look`], a link at the end leads on, and folders that are missing are made.
    Write,
    /// As [`Purpose::Look`], but a link at the end is meant itself.
    Delete,
}

/// What stands at the end of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// A folder: the last one of the place.
    Folder,
    /// A regular file of that name in the last folder.
    File(OsString),
    /// A link that was not to be followed.
    Link(OsString),
    /// A pipe, a socket or a device.
    Special,
    /// No such name in the last folder.
    Nothing(OsString),
}

/// Where a path leads to.
#[derive(Debug)]
pub(super) struct Place<'a> {
    pub(super) root: &'a Root,
    /// From the root on, without the root.
    folders: Vec<(OsString, OwnedFd)>,
    /// The first of `folders` that was made on the way.
    made: Option<usize>,
    /// What is there.
    pub(super) found: Found,
}

/// A name that is still to be walked through.
struct Step {
    name: OsString,
    /// Whether a link says so, and not the path that was asked for.
    is_of_link: bool,
}

enum Stop {
    Outside,
    Protected,
    Errno(Errno),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

impl Root {
    /// Where `asked` leads to.
    ///
    /// # Errors
    /// When a folder on the way is missing (but for [`Purpose::Write`]) or none, when a link leads outside, or when the
    /// place is protected.
    pub(super) fn resolve(&self, asked: &Asked, purpose: Purpose) -> Result<Place<'_>, FileError> {
        let protected = || FileError::Protected { path: asked.shown.clone() };
        // Before anything is looked up, so that a protected place is told as such though it is not there.
        if asked.names.iter().enumerate().any(|(depth, name)| self.is_protected(purpose, depth, name)) {
            return Err(protected());
        }
        let mut place = Place { root: self, folders: Vec::new(), made: None, found: Found::Folder };
        match place.walk(asked, purpose) {
            Ok(found) => {
                place.found = found;
                Ok(place)
            }
            Err(stop) => {
                place.unmake();
                Err(match stop {
                    Stop::Protected => protected(),
                    Stop::Outside => FileError::Outside {
                        path: asked.shown.clone(),
                        reason: "a link on the way leads outside of the workspace",
                    },
                    Stop::Errno(errno) => FileError::of_io(errno.into(), &asked.shown),
                })
            }
        }
    }

    pub(super) fn is_protected(&self, purpose: Purpose, depth: usize, name: &str) -> bool {
        let name = name.to_lowercase();
        (depth == 0 && name == self.state) || (purpose != Purpose::Read && name == ".git")
    }

    /// The way from the root that a link's absolute text means.
    fn below<'t>(&self, text: &'t Path) -> Option<&'t Path> {
        [&self.path, &self.canonical].into_iter().find_map(|own| text.strip_prefix(own).ok())
    }
}

impl Place<'_> {
    fn walk(&mut self, asked: &Asked, purpose: Purpose) -> Result<Found, Stop> {
        let steps = asked.names.iter().rev();
        let mut steps: Vec<Step> = steps.map(|name| Step { name: name.into(), is_of_link: false }).collect();
        let mut links = 0;
        while let Some(Step { name, is_of_link }) = steps.pop() {
            if name == ".." {
                self.folders.pop().ok_or(Stop::Outside)?;
                self.forget_made();
                continue;
            }
            if self.root.is_protected(purpose, self.folders.len(), &name.to_string_lossy()) {
                return Err(Stop::Protected);
            }
            let is_last = steps.is_empty();
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = match rustix::fs::openat(self.folder(), &name, flags, Mode::empty()) {
                Err(Errno::NOENT) if is_last => return Ok(Found::Nothing(name)),
                Err(Errno::NOENT) if purpose == Purpose::Write && !is_of_link => self.make(&name)?,
                opened => opened?,
            };
            match FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode) {
                FileType::Directory => self.folders.push((name, opened)),
                FileType::Symlink if is_last && purpose == Purpose::Delete => return Ok(Found::Link(name)),
                FileType::Symlink => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(Errno::LOOP.into());
                    }
                    self.follow(&opened, &mut steps)?;
                }
                _ if !is_last => return Err(Errno::NOTDIR.into()),
                FileType::RegularFile => return Ok(Found::File(name)),
                _ => return Ok(Found::Special),
            }
        }
        Ok(Found::Folder)
    }

    /// Puts the names of an open link in front of the `steps` that are left.
    fn follow(&mut self, link: &OwnedFd, steps: &mut Vec<Step>) -> Result<(), Stop> {
        let text = OsString::from_vec(rustix::fs::readlinkat(link, "", Vec::new())?.into_bytes());
        let mut text = Path::new(&text);
        if text.is_absolute() {
            text = self.root.below(text).ok_or(Stop::Outside)?;
            self.folders.clear();
            self.forget_made();
        }
        for part in text.components().rev() {
            match part {
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
                Component::ParentDir | Component::Normal(_) => {
                    steps.push(Step { name: part.as_os_str().to_owned(), is_of_link: true });
                }
            }
        }
        Ok(())
    }

    /// Makes the folder `name`, unless somebody else just did, and opens it.
    fn make(&mut self, name: &OsString) -> Result<OwnedFd, Errno> {
        match rustix::fs::mkdirat(self.folder(), name, Mode::from_raw_mode(0o777)) {
            Ok(()) => self.made = self.made.or(Some(self.folders.len())),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(self.folder(), name, flags, Mode::empty())
    }

    /// What was made is not on the way any more, as a link that somebody put there leads back.
    fn forget_made(&mut self) {
        self.made = self.made.filter(|first| *first < self.folders.len());
    }

    /// Removes the folders that were made on the way. Those that somebody uses already are not empty, and stay.
    pub(super) fn unmake(&mut self) {
        let Some(first) = self.made.take() else { return };
        while self.folders.len() > first {
            if let Some((name, _)) = self.folders.pop() {
                _ = rustix::fs::unlinkat(self.folder(), &name, AtFlags::REMOVEDIR);
            }
        }
    }

    /// The last folder.
    pub(super) fn folder(&self) -> BorrowedFd<'_> {
        self.folders.last().map_or(self.root.folder.as_fd(), |(_, folder)| folder.as_fd())
    }

    /// The path from the root to `name` in the last folder, as it is after all links; what is not UTF-8 of it is shown
    /// as U+FFFD.
    pub(super) fn relative(&self, name: &OsString) -> String {
        let mut path = Vec::new();
        for (folder, _) in &self.folders {
            path.extend_from_slice(folder.as_bytes());
            path.push(b'/');
        }
        path.extend_from_slice(name.as_bytes());
        String::from_utf8_lossy(&path).into_owned()
    }

    /// Makes what was changed in the last folder last, and the folders that were made. What cannot be synced (no
    /// permission to read, no such thing in the file system) is there nevertheless.
    pub(super) fn sync(&self) {
        let first = self.made.unwrap_or(self.folders.len());
        for depth in first..=self.folders.len() {
            let folder = match depth.checked_sub(1).and_then(|at| self.folders.get(at)) {
                Some((_, folder)) => folder.as_fd(),
                None => self.root.folder.as_fd(),
            };
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            if let Ok(folder) = rustix::fs::openat(folder, ".", flags, Mode::empty()) {
                _ = rustix::fs::fsync(folder);
            }
        }
    }
}
