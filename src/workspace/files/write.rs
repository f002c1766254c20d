//! Writing one file whole: a temporary file beside it, which then takes its name.

use std::ffi::OsString;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::os::fd::BorrowedFd;

use rustix::fs::{Access, AtFlags, Mode, OFlags, RawMode, Stat};
use rustix::io::Errno;

use super::asked::Asked;
use super::change::{FileChange, Image, MOST_IMAGE_BYTES};
use super::error::FileError;
use super::resolve::{Found, Place, Purpose};
use super::{MOST_FILE_BYTES, Root};

/// How names of temporary files begin. Only a server that was killed leaves one behind.
pub const TEMPORARY_PREFIX: &str = ".workspace-tmp-";

/// The bits that say who may read, write and run a file.
const PERMISSIONS: RawMode = 0o777;

impl Root {
    /// Writes `content` as the file `path`, of which nothing stays but its permissions; missing folders are made.
    /// The caller holds a lock.
    ///
    /// # Errors
    /// Among others `not_a_file` for a folder, and `too_large` for more than 10 MB. Then everything is as before.
    pub fn write(&self, path: &str, content: &str) -> Result<FileChange, FileError> {
        let asked = Asked::parse(path, self)?;
        if content.len() as u64 > MOST_FILE_BYTES {
            return Err(FileError::TooLarge { path: asked.shown, most: MOST_FILE_BYTES });
        }
        let mut place = self.resolve(&asked, Purpose::Write)?;
        let written = place.before(&asked).and_then(|before| place.write(&asked, before, content));
        if written.is_err() {
            place.unmake();
        }
        written
    }
}

impl Place<'_> {
    /// The image of what will be replaced.
    fn before(&self, asked: &Asked) -> Result<Image, FileError> {
        match &self.found {
            Found::Nothing(_) if asked.is_folder => Err(FileError::NotAFile { path: asked.shown.clone() }),
            Found::Nothing(_) => Ok(Image::Absent),
            _ => Ok(Image::of(&self.read(asked, MOST_IMAGE_BYTES + 1)?)),
        }
    }

    /// Puts `content` in the place of the file, or of nothing.
    ///
    /// # Errors
    /// Then everything is as before, but for folders that were made on the way.
    pub(super) fn write(&self, asked: &Asked, before: Image, content: &str) -> Result<FileChange, FileError> {
        let (Found::File(name) | Found::Nothing(name)) = &self.found else {
            return Err(FileError::NotAFile { path: asked.shown.clone() });
        };
        let failed = |error| FileError::of_io(error, &asked.shown);
        let replaced = self.replaced(name).map_err(|errno| failed(errno.into()))?;
        let (mut temporary, file) = Temporary::create(self.folder(), replaced.is_some()).map_err(failed)?;
        fill(file, content, replaced.as_ref()).map_err(failed)?;
        temporary.rename(name).map_err(|errno| failed(errno.into()))?;
        self.sync();
        let relative = self.relative(name);
        Ok(FileChange { path: self.root.absolute(&relative), relative, before, after: Image::of(content.as_bytes()) })
    }

    /// What the file that is to be replaced is like.
    ///
    /// # Errors
    /// When it may not be written to: a rename would not ask.
    fn replaced(&self, name: &OsString) -> Result<Option<Stat>, Errno> {
        if matches!(self.found, Found::Nothing(_)) {
            return Ok(None);
        }
        rustix::fs::accessat(self.folder(), name, Access::WRITE_OK, AtFlags::empty())?;
        rustix::fs::statat(self.folder(), name, AtFlags::SYMLINK_NOFOLLOW).map(Some)
    }
}

/// Writes all of it, with the owner and the permissions of the file that it replaces, down to the disk.
fn fill(mut file: File, content: &str, replaced: Option<&Stat>) -> Result<(), std::io::Error> {
    file.write_all(content.as_bytes())?;
    if let Some(replaced) = replaced {
        let owner = rustix::fs::Uid::from_raw(replaced.st_uid);
        let group = rustix::fs::Gid::from_raw(replaced.st_gid);
        // Only a privileged server may give files away; for others the file becomes theirs.
        _ = rustix::fs::fchown(&file, Some(owner), Some(group));
        rustix::fs::fchmod(&file, Mode::from_raw_mode(replaced.st_mode & PERMISSIONS))?;
    }
    file.sync_all()
}

/// A file that is gone with this value, unless it got its name.
struct Temporary<'a> {
    folder: BorrowedFd<'a>,
    name: String,
    is_renamed: bool,
}

impl<'a> Temporary<'a> {
    /// A new file. Its mode is that of any new file, but `is_private` until it gets another one.
    fn create(folder: BorrowedFd<'a>, is_private: bool) -> Result<(Self, File), std::io::Error> {
        // Keys of the system's randomness: nobody can have made the name before.
        let name = format!("{TEMPORARY_PREFIX}{:016x}", RandomState::new().hash_one(0));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(if is_private { 0o600 } else { 0o666 });
        let file = rustix::fs::openat(folder, &name, flags, mode)?;
        Ok((Self { folder, name, is_renamed: false }, File::from(file)))
    }

    fn rename(&mut self, name: &OsString) -> Result<(), Errno> {
        rustix::fs::renameat(self.folder, &self.name, self.folder, name)?;
        self.is_renamed = true;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.is_renamed {
            _ = rustix::fs::unlinkat(self.folder, &self.name, AtFlags::empty());
        }
    }
}
