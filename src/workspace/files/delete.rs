//! Deleting one file, or one link.

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::Root;
use super::asked::Asked;
use super::change::{FileChange, Image, MOST_IMAGE_BYTES};
use super::error::FileError;
use super::resolve::{Found, Purpose};

impl Root {
    /// Deletes a file, or a link (its target stays); `None` when there was nothing. The caller holds a lock.
    ///
    /// # Errors
    /// Among others `not_a_file` for folders, pipes, sockets and devices, which no checkpoint could bring back.
    pub fn delete(&self, path: &str) -> Result<Option<FileChange>, FileError> {
        let asked = Asked::parse(path, self)?;
        let place = match self.resolve(&asked, Purpose::Delete) {
            Err(FileError::NotFound { .. } | FileError::NotADirectory { .. }) => return Ok(None),
            place => place?,
        };
        let (name, before) = match &place.found {
            Found::Nothing(_) => return Ok(None),
            Found::Folder | Found::Special => return Err(FileError::NotAFile { path: asked.shown }),
            Found::Link(_) if asked.is_folder => return Err(FileError::NotAFile { path: asked.shown }),
            Found::Link(name) => (name, Image::Link),
            Found::File(name) => (name, Image::of(&place.read(&asked, MOST_IMAGE_BYTES + 1)?)),
        };
        match rustix::fs::unlinkat(place.folder(), name, AtFlags::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            unlinked => unlinked.map_err(|errno| FileError::of_io(errno.into(), &asked.shown))?,
        }
        place.sync();
        let relative = place.relative(name);
        Ok(Some(FileChange { path: self.absolute(&relative), relative, before, after: Image::Absent }))
    }
}
