//! A project in a temporary folder, its checkpoints, and what is said about both.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::bounded::memory::{Kind, Memory, Reservation};
use crate::workspace::checkpoints::{ChangedFile, CheckpointError, Checkpoints, Restored, Snapshot, Touched, parse};

/// The name of the state folder.
pub(super) const STATE: &str = ".state";

/// A project with its checkpoints.
pub(super) struct Project {
    pub(super) folder: TempDir,
    pub(super) checkpoints: Checkpoints,
    pub(super) touched: Touched,
}

/// Memory without a limit.
pub(super) fn no_limit() -> Reservation {
    Memory::new(0).reserve(Kind::Export, 0).unwrap()
}

/// Everything in a folder: what it is, its permissions and its content.
pub(super) type Files = BTreeMap<Vec<u8>, (u32, Vec<u8>)>;

impl Project {
    /// An empty folder without git.
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let checkpoints = open(folder.path());
        Self { folder, checkpoints, touched: Touched::default() }
    }

    /// A folder with an empty repository of git, which does not see the state folder.
    pub(super) fn with_git() -> Self {
        let project = Self::new();
        fs::write(project.at(STATE).join(".gitignore"), "*\n").unwrap();
        project.git(&["init", "-q", "-b", "main"]);
        project
    }

    pub(super) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn at(&self, path: impl AsRef<[u8]>) -> PathBuf {
        self.root().join(OsStr::from_bytes(path.as_ref()))
    }

    pub(super) fn write(&self, path: impl AsRef<[u8]>, content: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn read(&self, path: impl AsRef<[u8]>) -> Vec<u8> {
        fs::read(self.at(path)).unwrap()
    }

    pub(super) fn remove(&self, path: impl AsRef<[u8]>) {
        fs::remove_file(self.at(path)).unwrap();
    }

    pub(super) fn link(&self, path: impl AsRef<[u8]>, target: &str) {
        symlink(target, self.at(path)).unwrap();
    }

    pub(super) fn mode(&self, path: impl AsRef<[u8]>, mode: u32) {
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(super) fn exists(&self, path: impl AsRef<[u8]>) -> bool {
        self.at(path).symlink_metadata().is_ok()
    }

    pub(super) fn snapshot(&mut self) -> Snapshot {
        self.checkpoints.snapshot(&self.touched, &[]).unwrap()
    }

    /// The tree of a snapshot.
    pub(super) fn tree(&mut self) -> String {
        self.snapshot().tree
    }

    /// The paths of a snapshot.
    pub(super) fn paths(&mut self) -> Vec<String> {
        let tree = self.tree();
        let names = self.objects(&["ls-tree", "-r", "-z", "--name-only", &tree]);
        names.split_terminator('\0').map(str::to_owned).collect()
    }

    /// A snapshot as before a restore, and the restore.
    pub(super) fn restore(&mut self, target: &str) -> Restored {
        let newest = self.checkpoints.snapshot(&self.touched, &[target]).unwrap().tree;
        self.checkpoints.restore(target, &newest, &self.touched).unwrap()
    }

    pub(super) fn changes(&self, from: &str, to: &str) -> Vec<ChangedFile> {
        self.try_changes(from, to).unwrap()
    }

    pub(super) fn try_changes(&self, from: &str, to: &str) -> Result<Vec<ChangedFile>, CheckpointError> {
        self.checkpoints.differing(parse(from)?, parse(to)?, &mut no_limit())
    }

    /// Opens the checkpoints as another process would.
    pub(super) fn reopen(&mut self) {
        self.checkpoints = open(self.root());
    }

    /// Runs git in the project.
    pub(super) fn git(&self, arguments: &[&str]) -> String {
        git(self.root(), arguments)
    }

    /// Runs git in the object store.
    pub(super) fn objects(&self, arguments: &[&str]) -> String {
        git(&self.at(STATE).join("checkpoints.git"), arguments)
    }

    /// How many objects the store has.
    pub(super) fn stored(&self) -> usize {
        self.checkpoints.store.loose_ids().unwrap().len()
    }

    /// All files of the project but for the state folder.
    pub(super) fn files(&self) -> Files {
        let mut files = files(self.root());
        files.retain(|path, _| !path.starts_with(STATE.as_bytes()));
        files
    }

    /// Asks git whether the object store is in order.
    pub(super) fn check_objects(&self) {
        let said = self.objects(&["fsck", "--full", "--strict", "--no-dangling"]);
        assert!(said.is_empty() || said.starts_with("notice: HEAD points to an unborn branch"), "{said}");
    }
}

fn open(root: &Path) -> Checkpoints {
    Checkpoints::open(root, &root.join(STATE)).unwrap()
}

/// Runs git; what it says on both of its outputs.
pub(super) fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=n", "-c", "user.email=e@localhost", "-c", "protocol.file.allow=always"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", folder)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "git {arguments:?}: {said}");
    said
}

/// Everything in a folder.
pub(super) fn files(folder: &Path) -> Files {
    let mut files = Files::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let about = path.symlink_metadata().unwrap();
            let content = if about.is_dir() {
                folders.push(path.clone());
                Vec::new()
            } else if about.is_symlink() {
                fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else if about.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            let name = path.strip_prefix(folder).unwrap().as_os_str().as_bytes().to_vec();
            files.insert(name, (about.mode(), content));
        }
    }
    files
}

/// Waits until files that were written before are not new any more, so that they are not read again for their newness.
pub(super) fn settle() {
    std::thread::sleep(Duration::from_millis(50));
}
