//! Objects that `git gc` has put together into packs. We write none; what somebody else packed must be read.

mod delta;
mod index;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use flate2::bufread::ZlibDecoder;

use super::read::corrupt;
use super::{Id, Kind};
use crate::workspace::checkpoints::CheckpointError;
use index::Index;

/// 256 MiB: no object of ours is as long, trees of very many files included.
const LONGEST: u64 = 256 << 20;

/// Git makes chains of up to 50 differences, 4,095 if somebody wants it.
const LONGEST_CHAIN: usize = 4096;

/// The packs of the repository.
#[derive(Debug)]
pub(super) struct Packs {
    folder: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// When the folder was changed that the indexes are of.
    modified: Option<SystemTime>,
    indexes: HashMap<PathBuf, Arc<Index>>,
}

impl Packs {
    /// The packs in this folder, which is looked at when an object is asked for.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, known: Mutex::default() }
    }

    /// Whether a pack has the object.
    pub(super) fn contains(&self, id: Id) -> bool {
        self.indexes().is_ok_and(|indexes| indexes.iter().any(|(_, index)| index.offset(id).is_some()))
    }

    /// The object, if a pack has it.
    ///
    /// # Errors
    /// The pack is damaged, or cannot be read.
    pub(super) fn read(&self, id: Id) -> Result<Option<(Kind, Vec<u8>)>, CheckpointError> {
        let indexes = self.indexes().map_err(CheckpointError::while_doing("reading the packs"))?;
        for (path, index) in &indexes {
            if let Some(offset) = index.offset(id) {
                let object =
                    object(&path.with_extension("pack"), index, offset).map_err(|error| match error.kind() {
                        ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::UnexpectedEof => corrupt(id),
                        _ => CheckpointError::while_doing("reading a pack")(error),
                    })?;
                return Ok(Some(object));
            }
        }
        Ok(None)
    }

    /// The indexes there are now; those that are known are not read again.
    fn indexes(&self) -> io::Result<Vec<(PathBuf, Arc<Index>)>> {
        let modified = match fs::metadata(&self.folder) {
            Ok(folder) => folder.modified()?,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.modified != Some(modified) {
            let mut indexes = HashMap::new();
            for entry in fs::read_dir(&self.folder)? {
                let path = entry?.path();
                if path.extension().is_none_or(|extension| extension != "idx") {
                    continue;
                }
                if let Some(index) = known.indexes.get(&path) {
                    indexes.insert(path, Arc::clone(index));
                } else if let Some(index) = Index::parse(fs::read(&path)?) {
                    indexes.insert(path, Arc::new(index));
                }
            }
            *known = Known { modified: Some(modified), indexes };
        }
        Ok(known.indexes.iter().map(|(path, index)| (path.clone(), Arc::clone(index))).collect())
    }
}

/// The object at an offset of a pack, put together from its differences.
fn object(path: &Path, index: &Index, offset: u64) -> io::Result<(Kind, Vec<u8>)> {
    let mut pack = BufReader::new(File::open(path)?);
    let mut at = offset;
    let mut deltas = Vec::new();
    let (kind, mut content) = loop {
        pack.seek(SeekFrom::Start(at))?;
        let (kind, len) = head(&mut pack)?;
        match kind {
            1 => break (Kind::Commit, inflate(&mut pack, len)?),
            2 => break (Kind::Tree, inflate(&mut pack, len)?),
            3 => break (Kind::Blob, inflate(&mut pack, len)?),
            6 => at = at.checked_sub(distance(&mut pack)?).ok_or_else(damaged)?,
            7 => {
                let mut base = [0; 20];
                pack.read_exact(&mut base)?;
                at = index.offset(Id::of_bytes(base)).ok_or_else(damaged)?;
            }
            _ => return Err(damaged()),
        }
        deltas.push(inflate(&mut pack, len)?);
        if deltas.len() > LONGEST_CHAIN {
            return Err(damaged());
        }
    };
    for delta in deltas.iter().rev() {
        content = delta::apply(&content, delta).ok_or_else(damaged)?;
    }
    Ok((kind, content))
}

/// The kind and the length at the beginning of an entry: three bits and four, then groups of seven, the lowest first.
fn head(pack: &mut impl BufRead) -> io::Result<(u8, u64)> {
    let mut byte = next(pack)?;
    let kind = byte >> 4 & 7;
    let mut len = u64::from(byte & 15);
    let mut shift = 4;
    while byte & 0x80 != 0 {
        byte = next(pack)?;
        len |= u64::from(byte & 0x7f).checked_shl(shift).ok_or_else(damaged)?;
        shift += 7;
    }
    Ok((kind, len))
}

/// How far before an entry its base is: groups of seven, the highest first, every further one counts from one.
fn distance(pack: &mut impl BufRead) -> io::Result<u64> {
    let mut byte = next(pack)?;
    let mut value = u64::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = next(pack)?;
        let more = value.checked_add(1).and_then(|value| value.checked_mul(128)).ok_or_else(damaged)?;
        value = more | u64::from(byte & 0x7f);
    }
    Ok(value)
}

fn next(pack: &mut impl BufRead) -> io::Result<u8> {
    let mut byte = [0];
    pack.read_exact(&mut byte)?;
    Ok(byte[0])
}

fn inflate(pack: &mut impl BufRead, len: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    ZlibDecoder::new(pack).take(len.min(LONGEST) + 1).read_to_end(&mut content)?;
    if content.len() as u64 == len { Ok(content) } else { Err(damaged()) }
}

fn damaged() -> io::Error {
    ErrorKind::InvalidData.into()
}
