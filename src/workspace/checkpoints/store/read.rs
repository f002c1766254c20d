//! Reads objects: whole ones, or how long they are and how they begin.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use flate2::bufread::ZlibDecoder;

use super::{Id, Kind, Store};
use crate::workspace::checkpoints::CheckpointError;

/// The longest header is `commit`, a blank, twenty digits and a NUL.
const LONGEST_HEADER: u64 = 32;

impl Store {
    /// The object's content, also of one that waits in an intake. Objects of another kind are unknown.
    ///
    /// # Errors
    /// It is not there, it is damaged, or the system refused.
    pub(crate) fn read(&self, id: Id, kind: Kind) -> Result<Vec<u8>, CheckpointError> {
        let (found, content) = match self.open_loose(id)? {
            None => self.packs.read(id)?.ok_or(CheckpointError::Unknown)?,
            Some((found, len, mut rest)) => {
                let mut content = Vec::with_capacity(len.min(1 << 20));
                // One more, so that an object that is longer than it says is found out, and its checksum is read.
                match rest.by_ref().take(len as u64 + 1).read_to_end(&mut content) {
                    Ok(read) if read == len => {}
                    Ok(_) => return Err(corrupt(id)),
                    Err(error) => return Err(unreadable(id, error)),
                }
                (found, content)
            }
        };
        if found == kind { Ok(content) } else { Err(CheckpointError::Unknown) }
    }

    /// The length of a blob, and up to `most` bytes of its beginning.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub(crate) fn begin(&self, id: Id, most: usize) -> Result<(usize, Vec<u8>), CheckpointError> {
        let Some((_, len, rest)) = self.open_loose(id)? else {
            let (_, mut content) = self.packs.read(id)?.ok_or(CheckpointError::Unknown)?;
            let len = content.len();
            content.truncate(most);
            return Ok((len, content));
        };
        let mut start = Vec::new();
        rest.take(most as u64).read_to_end(&mut start).map_err(|error| unreadable(id, error))?;
        Ok((len, start))
    }

    /// The kind and the length of an object that lies by itself or waits, and what gives its content.
    fn open_loose(&self, id: Id) -> Result<Option<(Kind, usize, impl Read)>, CheckpointError> {
        let opened = match File::open(self.loose(id)) {
            Err(error) if error.kind() == ErrorKind::NotFound => File::open(self.waiting(id)),
            opened => opened,
        };
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(CheckpointError::while_doing("opening an object")(error)),
        };
        let mut content = BufReader::with_capacity(16 * 1024, ZlibDecoder::new(BufReader::new(file)));
        let mut header = Vec::new();
        content.by_ref().take(LONGEST_HEADER).read_until(0, &mut header).map_err(|error| unreadable(id, error))?;
        let told = header.strip_suffix(b"\0").and_then(Kind::of_header);
        let (kind, len) = told.ok_or_else(|| corrupt(id))?;
        Ok(Some((kind, len, content)))
    }
}

/// The object is not what it should be.
pub(super) fn corrupt(id: Id) -> CheckpointError {
    CheckpointError::Corrupt { object: id.to_string() }
}

fn unreadable(id: Id, error: io::Error) -> CheckpointError {
    match error.kind() {
        ErrorKind::InvalidInput | ErrorKind::InvalidData | ErrorKind::UnexpectedEof => corrupt(id),
        _ => CheckpointError::while_doing("reading an object")(error),
    }
}
