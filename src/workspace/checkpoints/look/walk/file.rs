//! One file: as it was if its stamp is, else it is read.

use rustix::fd::BorrowedFd;
use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::Walk;
use crate::workspace::checkpoints::CheckpointError;
use crate::workspace::checkpoints::look::memory::Seen;
use crate::workspace::checkpoints::look::read::{Found, MOST_FILE_BYTES, mode_of, read};
use crate::workspace::checkpoints::look::stamp::Stamp;
use crate::workspace::checkpoints::store::{Kind, Leaf, Mode};

impl Walk<'_, '_> {
    pub(super) fn file(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &[u8],
        old: Option<Seen>,
    ) -> Result<Option<Seen>, CheckpointError> {
        let stamp = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Stamp::of(&stat),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return self.refused(error, old),
        };
        if old.is_some_and(|old| old.stamp == Some(stamp)) {
            return Ok(old);
        }
        let found = if mode_of(&stamp) != Some(Mode::Link) && stamp.size > MOST_FILE_BYTES {
            Ok(Found::TooLarge)
        } else {
            read(folder, name, stamp)
        };
        let (mode, content, stamp) = match found {
            Ok(Found::Content { mode, content, stamp }) => (mode, content, stamp),
            Ok(Found::Nothing) => return Ok(None),
            Ok(Found::TooLarge) => {
                self.told.too_large.push(self.path.clone());
                return Ok(None);
            }
            Err(error) => return self.refused(error, old),
        };
        self.told.read += 1;
        self.told.is_new = true;
        match self.shared.intake.write(self.shared.store, Kind::Blob, &content)? {
            Some(id) => Ok(Some(Seen { leaf: Leaf { mode, id }, stamp })),
            // Forged content is not kept.
            None => self.refused(Errno::BADMSG, old),
        }
    }

    /// What cannot be read stays as it was and is told; but what cannot be had at all ends the look.
    pub(super) fn refused<T>(&mut self, error: Errno, last: T) -> Result<T, CheckpointError> {
        if matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOMEM) {
            return Err(CheckpointError::while_doing("looking at the project")(error));
        }
        self.told.unreadable.push(self.path.clone());
        Ok(last)
    }
}
