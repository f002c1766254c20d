//! Reading one file: its text for a model, or its bytes for the server.

use std::fs::File;
use std::io::Read;

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::Root;
use super::asked::Asked;
use super::error::FileError;
use super::resolve::{Found, Place, Purpose};

/// 1 MB: what a model gets of a file.
const MOST_TEXT_BYTES: usize = 1_000_000;

/// A file's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// Absolute, as it was asked for: a link is not told by its target.
    pub path: String,
    /// As it is, line ends included; at most 1 MB.
    pub text: String,
    /// Whether the file goes on.
    pub cut: bool,
}

impl Root {
    /// The text of a file. What comes after 1 MB is not read.
    ///
    /// # Errors
    /// Among others `decode_error` for what is not UTF-8.
    pub fn read_text(&self, path: &str) -> Result<Text, FileError> {
        let asked = Asked::parse(path, self)?;
        let bytes = self.read(&asked, Purpose::Read, MOST_TEXT_BYTES as u64 + 1)?;
        let is_longer = bytes.len() > MOST_TEXT_BYTES;
        let kept = &bytes[..bytes.len().min(MOST_TEXT_BYTES)];
        let text = match std::str::from_utf8(kept) {
            Ok(text) => text,
            // The cut went through a character.
            Err(error) if is_longer && error.error_len().is_none() => {
                std::str::from_utf8(&kept[..error.valid_up_to()]).unwrap_or_default()
            }
            Err(_) => return Err(FileError::Decode { path: asked.shown }),
        };
        Ok(Text { path: self.absolute(&asked.relative()), text: text.to_owned(), cut: is_longer })
    }

    /// At most `most` bytes of the file that was asked for.
    fn read(&self, asked: &Asked, purpose: Purpose, most: u64) -> Result<Vec<u8>, FileError> {
        let place = self.resolve(asked, purpose).map_err(|error| match error {
            // Below a file there is nothing.
            FileError::NotADirectory { path } => FileError::NotFound { path },
            error => error,
        })?;
        place.read(asked, most)
    }
}

impl Place<'_> {
    /// At most `most` bytes of the file that is there.
    ///
    /// # Errors
    /// `not_found`, `not_a_file`, `permission_denied`, `io_error`.
    pub(super) fn read(&self, asked: &Asked, most: u64) -> Result<Vec<u8>, FileError> {
        let not_a_file = || FileError::NotAFile { path: asked.shown.clone() };
        let name = match &self.found {
            Found::File(_) if asked.is_folder => return Err(not_a_file()),
            Found::File(name) => name,
            Found::Nothing(_) => return Err(FileError::NotFound { path: asked.shown.clone() }),
            Found::Folder | Found::Link(_) | Found::Special => return Err(not_a_file()),
        };
        let failed = |error| FileError::of_io(error, &asked.shown);
        let (file, stat) =
            open_file(self.folder(), name).map_err(|errno| failed(errno.into()))?.ok_or_else(not_a_file)?;
        read_open(file, &stat, most).map_err(failed)
    }
}

/// Opens the regular file `name` in `folder`: not a link, and `None` for anything else, for which nothing waits.
pub(super) fn open_file(
    folder: impl std::os::fd::AsFd,
    name: impl rustix::path::Arg,
) -> Result<Option<(File, Stat)>, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = match rustix::fs::openat(folder, name, flags, Mode::empty()) {
        // A socket.
        Err(Errno::NXIO) => return Ok(None),
        opened => opened?,
    };
    let stat = rustix::fs::fstat(&opened)?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    Ok(is_file.then(|| (File::from(opened), stat)))
}

/// At most `most` bytes of an open file, which may grow meanwhile.
pub(super) fn read_open(file: File, stat: &Stat, most: u64) -> Result<Vec<u8>, std::io::Error> {
    let expected = u64::try_from(stat.st_size).unwrap_or_default().saturating_add(1).min(most);
    let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or_default());
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}
