//! The piece as its callers use it, on real folders.

mod changes;
mod folders;
mod links;
mod paths;
mod race;
mod reading;
mod writing;

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{FileChange, FileError, Root};

impl Root {
    /// As its caller does it.
    pub(super) fn replace(&self, path: &str, diff: &str) -> Result<FileChange, FileError> {
        self.write(path, &self.replaced(path, diff)?)
    }
}

/// A folder for a root, and one beside it where nobody may get.
struct Place {
    _folder: TempDir,
    inside: PathBuf,
    outside: PathBuf,
    root: Root,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().canonicalize().unwrap();
        let (inside, outside) = (own.join("root"), own.join("outside"));
        std::fs::create_dir(&inside).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::create_dir(inside.join(".state")).unwrap();
        std::fs::write(inside.join(".state/secret"), "secret").unwrap();
        std::fs::write(outside.join("secret.txt"), "secret").unwrap();
        let root = Root::open(&inside, ".state").unwrap();
        Self { _folder: folder, inside, outside, root }
    }

    /// Puts a file there, by the side of the piece.
    fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.inside.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn get(&self, path: &str) -> String {
        std::fs::read_to_string(self.inside.join(path)).unwrap()
    }

    fn link(&self, target: impl AsRef<Path>, path: &str) {
        let path = self.inside.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    /// Names in a folder, sorted.
    fn names(&self, path: &str) -> Vec<String> {
        names(&self.inside.join(path))
    }
}

fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn code<T: std::fmt::Debug>(result: Result<T, FileError>) -> &'static str {
    match result {
        Ok(value) => panic!("no error, but {value:?}"),
        Err(error) => error.code(),
    }
}

fn pipe(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}
