//! New objects: written aside, brought onto the disk together, then moved to their places.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::{Id, Kind, Store, sync_folder};
use crate::workspace::checkpoints::CheckpointError;

/// The folder beside `objects` where objects wait until they are on the disk.
pub(super) const ASIDE: &str = "incoming";

/// Up to so many objects each is brought onto the disk by itself; for more, the whole file system at once is quicker.
const MOST_SINGLE_SYNCS: usize = 24;

/// Objects that are on their way into the store, which can read them meanwhile. Dropped before [`Intake::finish`], none of them
/// arrives.
#[derive(Debug)]
pub(crate) struct Intake {
    aside: PathBuf,
    /// Two threads may write.
    ids: Mutex<Ids>,
}

#[derive(Debug, Default)]
struct Ids {
    waiting: Vec<Id>,
    seen: HashSet<Id>,
}

impl Intake {
    /// Nothing is on its way yet.
    pub(crate) fn new(store: &Store) -> Self {
        Self { aside: store.root.join(ASIDE), ids: Mutex::default() }
    }

    /// The id of the object, which is written unless the store has it. `None`: the content was forged to have the id
    /// of another one, and is not kept.
    ///
    /// # Errors
    /// The object cannot be written.
    pub(crate) fn write(&self, store: &Store, kind: Kind, content: &[u8]) -> Result<Option<Id>, CheckpointError> {
        let Some(id) = Id::of(kind, content) else {
            return Ok(None);
        };
        let is_first = self.ids().seen.insert(id);
        if is_first && !store.contains(id) {
            self.ids().waiting.push(id);
            self.put_aside(id, kind, content).map_err(CheckpointError::while_doing("writing an object"))?;
        }
        Ok(Some(id))
    }

    /// Whether the store has had everything already.
    pub(crate) fn is_empty(&self) -> bool {
        self.ids().waiting.is_empty()
    }

    fn ids(&self) -> std::sync::MutexGuard<'_, Ids> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put_aside(&self, id: Id, kind: Kind, content: &[u8]) -> io::Result<()> {
        let path = self.aside.join(id.to_string());
        let file = match File::create(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs::create_dir_all(&self.aside)?;
                File::create(&path)?
            }
            other => other?,
        };
        let mut encoder = ZlibEncoder::new(io::BufWriter::with_capacity(64 * 1024, file), Compression::fast());
        encoder.write_all(kind.header(content.len()).as_bytes())?;
        encoder.write_all(content)?;
        encoder.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(())
    }

    /// Brings everything onto the disk and to its place.
    ///
    /// # Errors
    /// The system refused; what was moved until then stays, it harms nobody.
    pub(crate) fn finish(self, store: &Store) -> Result<(), CheckpointError> {
        let waiting = std::mem::take(&mut self.ids().waiting);
        if waiting.is_empty() {
            return Ok(());
        }
        self.settle(store, &waiting).map_err(CheckpointError::while_doing("storing the objects"))
    }

    fn settle(&self, store: &Store, waiting: &[Id]) -> io::Result<()> {
        let is_few = waiting.len() <= MOST_SINGLE_SYNCS;
        if is_few {
            for id in waiting {
                File::open(self.aside.join(id.to_string()))?.sync_data()?;
            }
        } else {
            rustix::fs::syncfs(File::open(&self.aside)?)?;
        }
        let mut shards = HashSet::new();
        let mut has_new_shard = false;
        for &id in waiting {
            let place = store.loose(id);
            let from = self.aside.join(id.to_string());
            if let Err(error) = fs::rename(&from, &place) {
                let Some(shard) = place.parent().filter(|_| error.kind() == ErrorKind::NotFound) else {
                    return Err(error);
                };
                fs::create_dir_all(shard)?;
                has_new_shard = true;
                fs::rename(&from, &place)?;
            }
            shards.extend(place.parent().map(PathBuf::from));
        }
        if is_few {
            shards.iter().try_for_each(|shard| sync_folder(shard))?;
            if has_new_shard {
                sync_folder(&store.root.join("objects"))?;
            }
        } else {
            rustix::fs::syncfs(File::open(&self.aside)?)?;
        }
        Ok(())
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        for id in &self.ids().waiting {
            // What cannot be removed now is removed when the store is opened the next time.
            let _ = fs::remove_file(self.aside.join(id.to_string()));
        }
    }
}
