//! Walking through folders, level by level, in the order of names, never through links.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Instant;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::Root;
use super::asked::Asked;
use super::error::FileError;
use super::resolve::{Found, Purpose};
use super::write::TEMPORARY_PREFIX;

/// Folders of what tools install or remember, which a model asks for by name when it wants them.
pub const DEPENDENCY_FOLDERS: &[&str] = &[
    ".cache",
    ".eggs",
    ".gradle",
    ".mypy_cache",
    ".next",
    ".nox",
    ".nuxt",
    ".parcel-cache",
    ".pnpm-store",
    ".pytest_cache",
    ".ruff_cache",
    ".svelte-kit",
    ".terraform",
    ".tox",
    ".turbo",
    ".venv",
    "__pycache__",
    "bower_components",
    "node_modules",
    "target",
    "venv",
];

/// Entries that one call looks at: a second's work.
const MOST_ENTRIES: usize = 400_000;

/// Levels of folders below the one that was asked for.
const MOST_DEPTH: usize = 150;

/// What a walk leaves out, and where it ends.
#[derive(Debug)]
pub(super) struct Bounds {
    /// Whether names with a dot in front are walked through.
    pub(super) with_hidden: bool,
    /// Whether folders are entered.
    pub(super) is_recursive: bool,
    /// When to stop looking.
    pub(super) until: Instant,
}

/// 32 MiB: what the names of folders that are still to be walked through may take.
const MOST_WAITING_BYTES: usize = 32 << 20;

fn bytes_of(names: &[OsString]) -> usize {
    names.iter().map(|name| name.len() + size_of::<OsString>()).sum()
}

/// One folder that is being walked through.
pub(super) struct Folder {
    /// Below the folder that was asked for.
    pub(super) names: Vec<OsString>,
    /// What is in it, by name, without what is left out.
    pub(super) entries: Vec<Entry>,
}

/// A name in a folder.
pub(super) struct Entry {
    pub(super) name: OsString,
    pub(super) kind: FileType,
}

impl Root {
    /// The folder that was asked for, opened.
    ///
    /// # Errors
    /// `not_a_directory` for anything else, `protected` for the state folder and for `.git`.
    pub(super) fn folder(&self, asked: &Asked) -> Result<OwnedFd, FileError> {
        let place = self.resolve(asked, Purpose::Look)?;
        match place.found {
            Found::Folder => open_folder(place.folder(), OsStr::new("."))
                .map_err(|errno| FileError::of_io(errno.into(), &asked.shown)),
            Found::Nothing(_) => Err(FileError::NotFound { path: asked.shown.clone() }),
            Found::File(_) | Found::Link(_) | Found::Special => {
                Err(FileError::NotADirectory { path: asked.shown.clone() })
            }
        }
    }

    /// Gives `visit` one folder after the other, for as long as it answers true. Folders that cannot be read, or are
    /// gone meanwhile, are passed over. Returns whether all was walked through.
    pub(super) fn walk(&self, top: &OwnedFd, bounds: &Bounds, mut visit: impl FnMut(&Folder) -> bool) -> bool {
        // Links may lead to the root, too: its name does not tell.
        let is_root = self.is_root(top);
        let mut waiting = VecDeque::from([Vec::new()]);
        let mut waiting_bytes = 0;
        let mut looked_at = 0;
        let mut is_whole = true;
        while let Some(names) = waiting.pop_front() {
            waiting_bytes -= bytes_of(&names);
            let Ok(folder) = descend(top, &names) else { continue };
            let Some(entries) = self.entries(folder, is_root && names.is_empty(), bounds, &mut looked_at) else {
                return false;
            };
            let folder = Folder { names, entries };
            if !visit(&folder) {
                return false;
            }
            if !bounds.is_recursive {
                continue;
            }
            if folder.names.len() == MOST_DEPTH {
                is_whole &= !folder.entries.iter().any(|entry| entry.kind == FileType::Directory);
                continue;
            }
            for entry in folder.entries.iter().filter(|entry| entry.kind == FileType::Directory) {
                let names = [folder.names.as_slice(), std::slice::from_ref(&entry.name)].concat();
                waiting_bytes += bytes_of(&names);
                if waiting_bytes > MOST_WAITING_BYTES {
                    return false;
                }
                waiting.push_back(names);
            }
        }
        is_whole
    }

    fn is_root(&self, folder: &OwnedFd) -> bool {
        let of = |fd: &OwnedFd| rustix::fs::fstat(fd).map(|stat| (stat.st_dev, stat.st_ino)).ok();
        of(folder).is_some() && of(folder) == of(&self.folder)
    }

    /// The entries of an open folder by name, or `None` when there are too many, or no time is left.
    fn entries(&self, folder: OwnedFd, is_root: bool, bounds: &Bounds, looked_at: &mut usize) -> Option<Vec<Entry>> {
        let mut entries = Vec::new();
        let Ok(mut reader) = Dir::new(folder) else { return Some(entries) };
        while let Some(Ok(entry)) = reader.read() {
            *looked_at += 1;
            if *looked_at > MOST_ENTRIES || (looked_at.is_multiple_of(256) && Instant::now() > bounds.until) {
                return None;
            }
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            if name == "." || name == ".." {
                continue;
            }
            let mut kind = entry.file_type();
            if kind == FileType::Unknown {
                let stat = reader.fd().and_then(|fd| rustix::fs::statat(fd, &name, AtFlags::SYMLINK_NOFOLLOW));
                let Ok(stat) = stat else { continue };
                kind = FileType::from_raw_mode(stat.st_mode);
            }
            if !self.is_left_out(&name, kind, is_root, bounds.with_hidden) {
                entries.push(Entry { name, kind });
            }
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Some(entries)
    }

    fn is_left_out(&self, name: &OsStr, kind: FileType, is_root: bool, with_hidden: bool) -> bool {
        if !with_hidden && name.as_bytes().starts_with(b".") {
            return true;
        }
        let Some(name) = name.to_str() else { return false };
        (kind == FileType::Directory && DEPENDENCY_FOLDERS.contains(&name))
            || name.starts_with(TEMPORARY_PREFIX)
            || self.is_protected(Purpose::Look, usize::from(!is_root), name)
    }
}

/// Opens the folder `names` below `top`, without any link.
pub(super) fn descend(top: &OwnedFd, names: &[OsString]) -> Result<OwnedFd, Errno> {
    let mut folder = open_folder(top, OsStr::new("."))?;
    for name in names {
        folder = open_folder(&folder, name)?;
    }
    Ok(folder)
}

fn open_folder(folder: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::empty())
}

impl Folder {
    /// The path of `name` below the folder that was asked for; what is not UTF-8 of it is shown as U+FFFD.
    pub(super) fn path(&self, name: &OsStr) -> String {
        let mut path = Vec::new();
        for name in &self.names {
            path.extend_from_slice(name.as_bytes());
            path.push(b'/');
        }
        path.extend_from_slice(name.as_bytes());
        String::from_utf8_lossy(&path).into_owned()
    }
}
