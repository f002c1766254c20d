//! Reads files as they are at one moment, links as links, and never what is no file.

use std::fs::File;
use std::io::Read;
use std::time::SystemTime;

use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, FileType, Mode as Permissions, OFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use super::stamp::Stamp;
use crate::workspace::checkpoints::store::Mode;

/// 64 MiB. What is larger is no source text, and it would be copied at each change.
pub(crate) const MOST_FILE_BYTES: u64 = 64 << 20;

/// A file that changes while it is read is read so often; then it is taken as it was found, and read at the next look.
const MOST_TRIES: usize = 3;

/// What was found under a name.
#[derive(Debug)]
pub(super) enum Found {
    /// A file or a link. Without a stamp it may have changed while it was read.
    Content { mode: Mode, content: Vec<u8>, stamp: Option<Stamp> },
    /// A file that is over [`MOST_FILE_BYTES`].
    TooLarge,
    /// Nothing, or nothing that counts: a folder, a pipe, a socket, a device.
    Nothing,
}

/// How the file counts, by its mode; `None` for what is no file.
pub(super) fn mode_of(stamp: &Stamp) -> Option<Mode> {
    match FileType::from_raw_mode(stamp.mode) {
        FileType::Symlink => Some(Mode::Link),
        FileType::RegularFile if stamp.mode & 0o100 != 0 => Some(Mode::Executable),
        FileType::RegularFile => Some(Mode::File),
        _ => None,
    }
}

/// Reads what has the name in the folder, which was just seen with this stamp.
///
/// # Errors
/// What the system says, except that the name is gone or names something else by now.
pub(super) fn read(folder: BorrowedFd<'_>, name: &[u8], seen: Stamp) -> Result<Found, Errno> {
    match mode_of(&seen) {
        None => Ok(Found::Nothing),
        Some(Mode::Link) => read_link(folder, name, seen),
        Some(Mode::File | Mode::Executable) => read_file(folder, name),
    }
    .or_else(|error| match error {
        // Removed, or replaced by a link, a folder or a socket since it was listed.
        Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::ISDIR | Errno::NOTDIR | Errno::INVAL => Ok(Found::Nothing),
        error => Err(error),
    })
}

fn read_link(folder: BorrowedFd<'_>, name: &[u8], seen: Stamp) -> Result<Found, Errno> {
    let looked = SystemTime::now();
    let content = rustix::fs::readlinkat(folder, name, Vec::new())?.into_bytes();
    let after = Stamp::of(&rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?);
    let stamp = (after == seen && seen.is_settled(looked)).then_some(seen);
    Ok(Found::Content { mode: Mode::Link, content, stamp })
}

fn read_file(folder: BorrowedFd<'_>, name: &[u8]) -> Result<Found, Errno> {
    // Not blocking: it may be a pipe by now.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut tries = 1;
    loop {
        let looked = SystemTime::now();
        let file = File::from(rustix::fs::openat(folder, name, flags, Permissions::empty())?);
        let before = Stamp::of(&rustix::fs::fstat(&file)?);
        let Some(mode @ (Mode::File | Mode::Executable)) = mode_of(&before) else {
            return Ok(Found::Nothing);
        };
        if before.size > MOST_FILE_BYTES {
            return Ok(Found::TooLarge);
        }
        let mut content = Vec::with_capacity(usize::try_from(before.size).unwrap_or(0) + 1);
        let read = (&file).take(MOST_FILE_BYTES + 1).read_to_end(&mut content);
        read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        if content.len() as u64 > MOST_FILE_BYTES {
            return Ok(Found::TooLarge);
        }
        let is_whole = Stamp::of(&rustix::fs::fstat(&file)?) == before && content.len() as u64 == before.size;
        if is_whole || tries == MOST_TRIES {
            let stamp = (is_whole && before.is_settled(looked)).then_some(before);
            return Ok(Found::Content { mode, content, stamp });
        }
        tries += 1;
    }
}

/// A regular file that is at most so long, and its stamp.
///
/// # Errors
/// What the system says; `INVAL` for what is no regular file, `FBIG` for one that is longer.
pub(super) fn small_file(
    folder: BorrowedFd<'_>,
    path: impl Arg,
    flags: OFlags,
    most: usize,
) -> Result<(Stamp, Vec<u8>), Errno> {
    let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(folder, path, flags, Permissions::empty())?);
    let stamp = Stamp::of(&rustix::fs::fstat(&file)?);
    if !matches!(mode_of(&stamp), Some(Mode::File | Mode::Executable)) {
        return Err(Errno::INVAL);
    }
    let mut content = Vec::new();
    let read = (&file).take(most as u64 + 1).read_to_end(&mut content);
    read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    if content.len() > most { Err(Errno::FBIG) } else { Ok((stamp, content)) }
}
