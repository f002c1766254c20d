//! Does what is planned: removes, then writes aside and renames.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, FileType, Mode as Permissions, OFlags, Stat};
use rustix::io::Errno;

use super::folders::Folders;
use super::plan::Plan;
use super::{Left, Reason};
use crate::workspace::checkpoints::CheckpointError;
use crate::workspace::checkpoints::look::Places;
use crate::workspace::checkpoints::store::{Kind, Leaf, Mode, Store};

/// So many files are written aside before they are brought onto the disk together.
const BATCH_FILES: usize = 256;

/// 64 MiB: the same for their bytes.
const BATCH_BYTES: usize = 64 << 20;

/// Up to so many files or folders each is brought onto the disk by itself; for more, the whole file system is quicker.
const MOST_SINGLE_SYNCS: usize = 24;

/// What was done.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) written: usize,
    pub(super) removed: usize,
    pub(super) left: Vec<Left>,
    /// Folders whose names have changed.
    folders: BTreeSet<Vec<u8>>,
}

/// Does it all. What a single file refuses is told, and the others go on.
///
/// # Errors
/// No space is left, the system is out of something, or an object cannot be read.
pub(super) fn apply(places: &Places, store: &Store, plan: &Plan) -> Result<Done, CheckpointError> {
    let mut folders = Folders::new(places)?;
    let mut done = Done::default();
    for path in &plan.remove {
        let result = remove(&mut folders, path, plan.kept.contains(path));
        if done.note(path, result)? == Some(true) {
            done.removed += 1;
        }
    }
    folders.close();
    for path in &plan.empty {
        // One that is not empty, or is no folder any more, stays.
        if let Ok((parent, name)) = folders.parent(path, false)
            && rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR).is_ok()
        {
            done.changed(path);
        }
    }
    folders.close();
    let mut rest = plan.write.as_slice();
    while !rest.is_empty() {
        let mut staging = Staging::new(store)?;
        while let [(path, leaf), after @ ..] = rest
            && staging.has_room()
        {
            staging.add(store, path, *leaf)?;
            rest = after;
        }
        staging.sync()?;
        for (number, (path, leaf)) in staging.files.iter().enumerate() {
            let aside = staging.path(number);
            let result = place(&mut folders, store, &aside, path, *leaf, plan.kept.contains(*path));
            if done.note(path, result)?.is_some() {
                done.written += 1;
            }
        }
    }
    done.sync(&mut folders).map_err(CheckpointError::while_doing("bringing the files onto the disk"))?;
    Ok(done)
}

/// Why one file is not as it should be.
enum Trouble {
    Left(Reason),
    System(Errno),
    Store(CheckpointError),
}

impl From<Errno> for Trouble {
    fn from(error: Errno) -> Self {
        Self::System(error)
    }
}

impl Done {
    /// What came of a file. `None` when it was left as it is.
    fn note<T>(&mut self, path: &[u8], result: Result<T, Trouble>) -> Result<Option<T>, CheckpointError> {
        let reason = match result {
            Ok(value) => {
                self.changed(path);
                return Ok(Some(value));
            }
            Err(Trouble::Left(reason)) => reason,
            Err(Trouble::Store(error)) => return Err(error),
            Err(Trouble::System(
                error @ (Errno::NOSPC | Errno::DQUOT | Errno::MFILE | Errno::NFILE | Errno::NOMEM),
            )) => return Err(CheckpointError::while_doing("restoring a file")(error)),
            Err(Trouble::System(Errno::NOTDIR | Errno::LOOP)) => Reason::InTheWay,
            Err(Trouble::System(_)) => Reason::Refused,
        };
        self.left.push(Left { path: path.to_vec(), reason });
        Ok(None)
    }

    fn changed(&mut self, path: &[u8]) {
        let end = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
        self.folders.insert(path[..end].to_vec());
    }

    /// Brings the names onto the disk. Folders that are gone have none.
    fn sync(&self, folders: &mut Folders) -> io::Result<()> {
        if self.folders.len() > MOST_SINGLE_SYNCS || folders.has_made() {
            return Ok(rustix::fs::syncfs(folders.root())?);
        }
        for folder in &self.folders {
            let path = [folder, b"/".as_slice()].concat();
            let path = path.strip_prefix(b"/").unwrap_or(&path);
            if let Ok((opened, _)) = folders.parent(path, false) {
                rustix::fs::fsync(opened)?;
            }
        }
        Ok(())
    }
}

/// Removes a file or a link. `false`: it was gone already.
fn remove(folders: &mut Folders, path: &[u8], is_kept: bool) -> Result<bool, Trouble> {
    let (parent, name) = match folders.parent(path, false) {
        Ok(found) => found,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    let stat = match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile | FileType::Symlink if is_kept => {
            rustix::fs::unlinkat(parent, name, AtFlags::empty())?;
            Ok(true)
        }
        FileType::RegularFile | FileType::Symlink => Err(Trouble::Left(Reason::NotKept)),
        // By now it is something else than the file that was to go.
        _ => Ok(false),
    }
}

/// Moves a file that was written aside to its place.
fn place(
    folders: &mut Folders,
    store: &Store,
    aside: &Path,
    path: &[u8],
    leaf: Leaf,
    is_kept: bool,
) -> Result<(), Trouble> {
    let (parent, name) = folders.parent(path, true)?;
    let old = match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Some(stat),
        Err(Errno::NOENT) => None,
        Err(error) => return Err(error.into()),
    };
    match old.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        None => {}
        Some(FileType::RegularFile | FileType::Symlink) if is_kept => {}
        Some(FileType::RegularFile | FileType::Symlink) => return Err(Trouble::Left(Reason::NotKept)),
        // An empty folder holds nothing that could be lost.
        Some(FileType::Directory) => match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Ok(()) => {}
            Err(Errno::NOTEMPTY | Errno::EXIST) => return Err(Trouble::Left(Reason::InTheWay)),
            Err(error) => return Err(error.into()),
        },
        Some(_) => return Err(Trouble::Left(Reason::InTheWay)),
    }
    if leaf.mode != Mode::Link {
        adopt(aside, parent, old.as_ref(), leaf.mode);
    }
    match rustix::fs::renameat(CWD, aside, parent, name) {
        // The state folder is on another file system than this folder.
        Err(Errno::XDEV) => place_across(store, aside, parent, name, leaf),
        result => Ok(result?),
    }
}

/// Gives the new file the owner and the permissions of the one it replaces, or the group that its folder hands down.
/// Where the system does not let us, it stays as it was made.
fn adopt(aside: &Path, parent: &OwnedFd, old: Option<&Stat>, mode: Mode) {
    let old = old.filter(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    let Ok(new) = rustix::fs::stat(aside) else {
        return;
    };
    let group = match old {
        Some(old) => Some(old.st_gid),
        None => rustix::fs::fstat(parent).ok().filter(|stat| stat.st_mode & 0o2000 != 0).map(|stat| stat.st_gid),
    };
    let owner = old.map(|old| old.st_uid).filter(|owner| *owner != new.st_uid);
    let group = group.filter(|group| *group != new.st_gid);
    if owner.is_some() || group.is_some() {
        let _ = std::os::unix::fs::chown(aside, owner, group);
    }
    if let Some(old) = old {
        let kept = old.st_mode & 0o777;
        let permissions = match mode {
            // Who may read it may execute it, as git has it.
            Mode::Executable => kept | (kept & 0o444) >> 2 | 0o100,
            Mode::File | Mode::Link => kept & !0o111,
        };
        let _ = fs::set_permissions(aside, fs::Permissions::from_mode(permissions));
    }
}

/// Writes a file beside its place and renames it.
fn place_across(store: &Store, aside: &Path, parent: &OwnedFd, name: &[u8], leaf: Leaf) -> Result<(), Trouble> {
    let content = store.read(leaf.id, Kind::Blob).map_err(Trouble::Store)?;
    let temporary = format!(".checkpoint-{}.tmp", leaf.id);
    let temporary = temporary.as_bytes();
    // One that a restore has left which was broken off.
    match rustix::fs::unlinkat(parent, temporary, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let write = || {
        if leaf.mode == Mode::Link {
            rustix::fs::symlinkat(content.as_slice(), parent, temporary)?;
        } else {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(parent, temporary, flags, Permissions::RUSR | Permissions::WUSR)?;
            let mut file = File::from(file);
            let permissions = fs::metadata(aside).map(|stat| stat.permissions());
            let written = file.write_all(&content).and_then(|()| file.set_permissions(permissions?));
            written.and_then(|()| file.sync_all()).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
        }
        rustix::fs::renameat(parent, temporary, parent, name)
    };
    write().inspect_err(|_| {
        let _ = rustix::fs::unlinkat(parent, temporary, AtFlags::empty());
    })?;
    Ok(())
}

/// Files that are written in the state folder, whole, before they are moved: a restore that is broken off leaves nothing
/// in the project that is none of its files.
struct Staging<'p> {
    folder: PathBuf,
    files: Vec<(&'p [u8], Leaf)>,
    bytes: usize,
}

impl<'p> Staging<'p> {
    fn new(store: &Store) -> Result<Self, CheckpointError> {
        let folder = store.staging();
        let made = match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => fs::create_dir_all(&folder),
        };
        made.map_err(CheckpointError::while_doing("preparing to restore"))?;
        Ok(Self { folder, files: Vec::new(), bytes: 0 })
    }

    fn has_room(&self) -> bool {
        self.files.len() < BATCH_FILES && self.bytes < BATCH_BYTES
    }

    fn path(&self, number: usize) -> PathBuf {
        self.folder.join(number.to_string())
    }

    fn add(&mut self, store: &Store, path: &'p [u8], leaf: Leaf) -> Result<(), CheckpointError> {
        let content = store.read(leaf.id, Kind::Blob)?;
        let aside = self.path(self.files.len());
        let written = match leaf.mode {
            Mode::Link => symlink(bytes_path(&content), aside),
            Mode::File => write_new(&aside, &content, 0o666),
            Mode::Executable => write_new(&aside, &content, 0o777),
        };
        written.map_err(CheckpointError::while_doing("writing a file"))?;
        self.files.push((path, leaf));
        self.bytes += content.len();
        Ok(())
    }

    /// Brings the contents onto the disk, before any file takes its place.
    fn sync(&self) -> Result<(), CheckpointError> {
        let sync = || {
            if self.files.len() > MOST_SINGLE_SYNCS {
                return Ok(rustix::fs::syncfs(File::open(&self.folder)?)?);
            }
            for (number, (_, leaf)) in self.files.iter().enumerate() {
                if leaf.mode != Mode::Link {
                    // For writing: files may be made unreadable by the user's mask.
                    fs::OpenOptions::new().write(true).open(self.path(number))?.sync_all()?;
                }
            }
            Ok(())
        };
        sync().map_err(CheckpointError::while_doing::<io::Error>("bringing the files onto the disk"))
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        // What stays is removed by the next restore.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn write_new(path: &Path, content: &[u8], permissions: u32) -> io::Result<()> {
    fs::OpenOptions::new().write(true).create_new(true).mode(permissions).open(path)?.write_all(content)
}

fn bytes_path(bytes: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}
