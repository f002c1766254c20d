//! The repository that a project lies in when it has none of its own: a folder of a larger whole.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fd::AsFd;
use rustix::fs::{CWD, Mode, OFlags};

use super::ignore::{List, is_ignored};
use super::repository::Repositories;
use crate::workspace::checkpoints::look::names::Names;

/// What a repository around the project says about it.
#[derive(Debug)]
pub(crate) struct Outer {
    /// The project's path in the repository, with a slash at its end.
    prefix: Vec<u8>,
    /// The rules from outside of the project, the most important ones last.
    rules: Vec<Arc<List>>,
    tracked: Arc<Names>,
}

impl Outer {
    /// The nearest repository that a folder above the root has. One of somebody else does not count, nor one that
    /// ignores the project: it is about other things.
    pub(crate) fn around(root: &Path, repositories: &mut Repositories) -> Option<Self> {
        let owner = fs::metadata(root).ok()?.uid();
        if root.join(".git").symlink_metadata().is_ok() {
            return None;
        }
        let top = root.ancestors().skip(1).find(|folder| folder.join(".git").symlink_metadata().is_ok())?;
        if fs::metadata(top).ok()?.uid() != owner {
            return None;
        }
        let repositories = repositories.around();
        let repository = repositories.at(top, b"")?;
        let mut outer = Self { prefix: Vec::new(), rules: vec![repository.exclude], tracked: repository.tracked };
        let mut folder = top.to_owned();
        for name in root.strip_prefix(top).ok()?.iter() {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let opened = rustix::fs::openat(CWD, &folder, flags, Mode::empty()).ok()?;
            outer.rules.extend(repositories.ignore_file(opened.as_fd(), &outer.prefix));
            outer.prefix.extend_from_slice(name.as_bytes());
            if is_ignored(outer.rules.iter().map(Arc::as_ref), &outer.prefix, true) == Some(true) {
                return None;
            }
            outer.prefix.push(b'/');
            folder.push(name);
        }
        Some(outer)
    }

    /// What it tracks of the project.
    pub(crate) fn tracked(&self) -> Option<&Names> {
        let mut names = self.prefix.strip_suffix(b"/")?.split(|&byte| byte == b'/');
        names.try_fold(&*self.tracked, |tracked, name| tracked.get(name))
    }

    /// Whether its rules leave out a path of the project about which no rule of the project says anything.
    pub(crate) fn is_ignored(&self, path: &[u8], is_folder: bool) -> bool {
        let path = [&self.prefix, path].concat();
        is_ignored(self.rules.iter().map(Arc::as_ref), &path, is_folder) == Some(true)
    }
}
