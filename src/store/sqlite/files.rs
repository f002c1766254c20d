//! The database's files. Whoever else has an account on the machine has no business in them: they are made with that mode, so
//! that there is no moment in which they are open to others. SQLite gives its log and its shared memory the mode of the
//! database.
//!
//! Beside them is a file that each process locks as long as it has the database open. Whoever gets it alone knows that all
//! runs in the database are of processes that are gone.

use std::ffi::OsString;
use std::fs::{File, Permissions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use rustix::fs::FsWord;
use tokio::fs::{DirBuilder, OpenOptions};

use crate::store::OpenError;

/// The owner's rights on a file of ours: to read and write it.
const OURS: u32 = 0o600;

/// And with a folder.
const OUR_FOLDER: u32 = 0o700;

/// The rights of all users.
const OTHERS: u32 = 0o007;

/// How long a process waits for its lock while another one has it alone: ten seconds, in which that one ends what the dead have
/// left.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// The pause between two tries.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Makes the database's folder and its file where they are missing. A folder that is there belongs to the operator and
/// stays as it is. Files that are there and open to all users, as the usual umask made them before, are closed; a file
/// that a group may read was opened on purpose, and stays.
pub(super) async fn make(database: &Path) -> Result<(), OpenError> {
    if let Some(folder) = database.parent() {
        let made = DirBuilder::new().recursive(true).mode(OUR_FOLDER).create(folder).await;
        made.map_err(|source| OpenError::Folder { path: folder.to_owned(), source })?;
    }
    // Never opened when it is there: to close it again would take away the locks that SQLite has on it in this process.
    match OpenOptions::new().write(true).create_new(true).mode(OURS).open(database).await {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            for file in [database.to_owned(), beside(database, "-wal"), beside(database, "-shm")] {
                close_to_others(&file).await;
            }
        }
        // The open of the database reports why it could not be made.
        Ok(_) | Err(_) => {}
    }
    Ok(())
}

async fn close_to_others(file: &Path) {
    let Ok(there) = tokio::fs::metadata(file).await else { return };
    let mode = there.permissions().mode();
    if !there.is_file() || mode & OTHERS == 0 {
        return;
    }
    let (path, before) = (file.display(), format!("{:o}", mode & 0o777));
    match tokio::fs::set_permissions(file, Permissions::from_mode(OURS)).await {
        Ok(()) => tracing::warn!(%path, before, "a file of the store was open to everybody, and is no more"),
        Err(error) => tracing::warn!(%error, %path, before, "a file of the store is open to everybody"),
    }
}

/// The kinds of file systems that several machines may share, or that a program stands for (`linux/magic.h`).
#[cfg(target_os = "linux")]
const SHARED_KINDS: [(FsWord, &str); 7] = [
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFE53_4D42, "SMB"),
    (0xFF53_4D42, "SMB"),
    (0x0102_1997, "9P"),
    (0x6573_5546, "FUSE"),
    (0x00C3_6400, "Ceph"),
];

/// Warns of a database whose file system other machines may have too: the log in front of it is shared by the memory of one.
pub(super) fn tell_shared(database: &Path) {
    #[cfg(target_os = "linux")]
    if let Ok(found) = rustix::fs::statfs(database)
        && let Some((_, kind)) = SHARED_KINDS.iter().find(|(magic, _)| found.f_type & 0xFFFF_FFFF == *magic)
    {
        tracing::warn!(
            kind,
            path = %database.display(),
            "the store's file is on a file system that other machines may have too; two that open it destroy it: one process, on a \
             disk of its own, or PostgreSQL"
        );
    }
}

/// The file of this ending beside the database.
fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(database);
    name.push(ending);
    name.into()
}

/// The lock of a process on the database that it has open. The operating system takes it away from a process that ends, however
/// it ends.
pub(super) struct Lock {
    file: File,
    is_alone: bool,
}

impl Lock {
    /// Alone where no other process has it, else together with the others. `None` where there are no such locks, as in
    /// some network file systems: then only leases tell which process is alive.
    pub(super) async fn take(database: &Path) -> Option<Self> {
        let path = beside(database, "-lock");
        let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(OURS).open(&path).await;
        let file = match opened {
            Ok(file) => file.into_std().await,
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "the store's lock cannot be opened");
                return None;
            }
        };
        match file.try_lock() {
            Ok(()) => return Some(Self { file, is_alone: true }),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => {
                tracing::warn!(%error, path = %path.display(), "the store's file cannot be locked");
                return None;
            }
        }
        let mut lock = Self { file, is_alone: false };
        lock.share().await.then_some(lock)
    }

    /// Whether no other process has the database open.
    pub(super) fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Lets others in; whether it is still held. Between the two locks another process may get it alone: it ends the runs that it
    /// finds, and this one has begun none yet.
    pub(super) async fn share(&mut self) -> bool {
        self.is_alone = false;
        let until = Instant::now() + LOCK_WAIT;
        while let Err(failed) = self.file.try_lock_shared() {
            if Instant::now() >= until {
                tracing::warn!(error = %std::io::Error::from(failed), "the store's file is locked by somebody else");
                return false;
            }
            tokio::time::sleep(LOCK_PAUSE).await;
        }
        true
    }
}
