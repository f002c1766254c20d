//! Files of users, kept: their bytes in a folder or a bucket, what is known of each in the database.
//!
//! ```text
//! keep:  announce in the database ─▶ bytes, counted and looked at as they come ─▶ row, which takes the announcement back
//! end:   the row goes, with its last conversation, by itself or when its time is over ─▶ a note in the same transaction ─▶ bytes removed, note taken back
//! heal:  announce ─▶ bytes of a row that had lost them ─▶ is the row there? then the announcement waits with it; else bytes removed
//! ```
//!
//! **Invariant:** bytes without a row are always noted in the database, so that they are removed whoever dies in between.
//! **Invariant:** what a file is, its bytes say (`sniff`). Its name and its sender's media type tell texts apart alone.

mod config;
mod jpeg;
mod s3;
mod sniff;
mod upload;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use aws_lc_rs::digest::{Context as Digest, SHA256};
use bytes::Bytes;
use futures::StreamExt;
use object_store::path::Path;
use object_store::{Error as ObjectError, ObjectStore, ObjectStoreExt};
use tokio::time::sleep;
use tokio_util::task::TaskTracker;

use self::sniff::Look;
use self::upload::Upload;
use crate::agent::ports::files::{
    FileError, FilePart, FileRecord, FileRows, Files, Incoming, KeptFile, NewFileRow, Which,
};
use crate::bounded::memory::{Kind, Memory, Reservation};
use crate::chat::caller::Owner;
use crate::chat::causes::Causes;
use crate::chat::file::{FileKind, FileRef, file_name};
use crate::chat::ids::FileId;

use self::config::Place;
pub use self::config::{FilesConfig, OpenError};
pub use self::s3::S3Config;

/// Between two looks at what is to be removed.
const SWEEP: Duration = Duration::from_secs(60);

/// So many are removed in one look.
const SWEPT_AT_ONCE: u32 = 100;

/// 512 KiB of each file that comes are in memory beside the part that is written: what has come last, and what a client reads
/// ahead.
const COMING: usize = 512 << 10;

/// The store of files.
pub struct FileStore {
    rows: Arc<dyn FileRows>,
    objects: Arc<dyn ObjectStore>,
    /// So many bytes are written at once.
    part: usize,
    /// The folder, where it is one of this machine: a write that was broken off leaves something there.
    folder: Option<PathBuf>,
    memory: Memory,
    max_bytes: u64,
    most: (u64, u64),
    tasks: TaskTracker,
}

impl FileStore {
    /// The store that `config` describes; `None` where files are not kept. `database` is the address of the database.
    ///
    /// # Errors
    /// When its folder cannot be made, or its address or the credentials of its bucket not be used.
    pub fn open(
        config: &FilesConfig,
        database: &str,
        rows: Arc<dyn FileRows>,
        memory: Memory,
    ) -> Result<Option<Arc<Self>>, OpenError> {
        let Some(Place { objects, part, folder }) = config.place(database)? else { return Ok(None) };
        Ok(Some(Arc::new(Self {
            rows,
            objects,
            part,
            folder,
            memory,
            max_bytes: config.max_bytes,
            most: (config.user_bytes, config.tenant_bytes),
            tasks: TaskTracker::new(),
        })))
    }

    /// Removes what nobody needs any more, now and again, as long as it is used.
    pub fn start(self: &Arc<Self>) {
        let store = Arc::downgrade(self);
        self.tasks.spawn(async move {
            let mut removed = Vec::new();
            while let Some(store) = store.upgrade() {
                removed = store.sweep(&removed).await;
                drop(store);
                if removed.is_empty() {
                    sleep(SWEEP).await;
                }
            }
        });
    }

    /// One look at what is to be removed: what was. `removed` is what the look before has removed.
    pub async fn sweep(&self, removed: &[FileId]) -> Vec<FileId> {
        let due = match self.rows.sweep_files(removed, SWEPT_AT_ONCE).await {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(error = %Causes(&error), "files were not looked through");
                return Vec::new();
            }
        };
        let mut removed = Vec::with_capacity(due.len());
        for id in due {
            match self.remove(id).await {
                Ok(()) => removed.push(id),
                Err(error) => tracing::warn!(error = %Causes(&error), file.id = %id, "a file was not removed"),
            }
        }
        removed
    }

    async fn remove(&self, id: FileId) -> Result<(), ObjectError> {
        if let Some(folder) = &self.folder {
            // What the store writes to before it is whole. There may be none.
            let _ = tokio::fs::remove_file(folder.join(format!("{}#1", path(id)))).await;
        }
        match self.objects.delete(&path(id)).await {
            Ok(()) | Err(ObjectError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Writes what comes; what it is, its size and its digest.
    async fn write(
        &self,
        id: FileId,
        incoming: &mut Incoming<'_>,
        held: &mut Reservation,
    ) -> Result<(Look, u64, [u8; 32]), FileError> {
        let mut upload = Upload::new(Arc::clone(&self.objects), path(id), self.part, self.tasks.clone());
        let read = async {
            let (mut look, mut digest, mut bytes) = (Look::default(), Digest::new(&SHA256), 0_u64);
            while let Some(piece) = incoming.content.next().await {
                let piece = piece?;
                bytes = bytes.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
                if self.max_bytes != 0 && bytes > self.max_bytes {
                    return Err(FileError::TooLarge { max_bytes: self.max_bytes });
                }
                look.take(&piece)?;
                digest.update(&piece);
                // A small file holds no more than it has.
                let most = COMING + usize::try_from(bytes).map_or(self.part, |bytes| bytes.min(self.part));
                held.grow(most.saturating_sub(held.bytes())).map_err(|error| FileError::Unavailable(error.into()))?;
                upload.write(&piece).await.map_err(unavailable)?;
            }
            if bytes == 0 {
                return Err(FileError::Empty);
            }
            Ok((look, bytes, digest.finish().as_ref().try_into().unwrap_or_default()))
        };
        match read.await {
            Ok(read) => {
                upload.finish().await.map_err(unavailable)?;
                Ok(read)
            }
            Err(error) => {
                upload.abort().await;
                Err(error)
            }
        }
    }

    async fn kept(
        &self,
        owner: &Owner,
        id: FileId,
        mut incoming: Incoming<'_>,
        held: &mut Reservation,
    ) -> Result<FileRecord, FileError> {
        let (look, bytes, sha256) = self.write(id, &mut incoming, held).await?;
        let (kind, side) = look.kind(incoming.name, incoming.media_type)?;
        let name = file_name(incoming.name.unwrap_or_default(), usual_name(kind));
        let file = FileRef { id, kind, name, bytes, side };
        let terms = incoming.terms.and_then(OnceLock::get).copied().unwrap_or_default();
        match self.rows.keep_file(owner, NewFileRow { file: &file, sha256, terms, most: self.most }).await? {
            KeptFile::New(record) => Ok(record),
            KeptFile::Same(record) => {
                self.heal(owner, &record.file, id).await?;
                self.remove_quietly(id).await;
                Ok(record)
            }
            KeptFile::OverQuota(whose) => Err(FileError::OverQuota(whose)),
        }
    }

    fn hold(&self, bytes: usize) -> Result<Reservation, FileError> {
        self.memory.reserve(Kind::File, bytes).map_err(|error| FileError::Unavailable(error.into()))
    }

    /// Puts the bytes of `id` where those of `kept` should be, which are the same, if they are gone.
    async fn heal(&self, owner: &Owner, kept: &FileRef, id: FileId) -> Result<(), FileError> {
        match self.objects.head(&path(kept.id)).await {
            Ok(found) if found.size == kept.bytes => return Ok(()),
            Ok(_) | Err(ObjectError::NotFound { .. }) => {}
            Err(error) => return Err(unavailable(error)),
        }
        // Whoever deletes the row meanwhile may have removed bytes that are not there yet, and forgotten their note.
        self.rows.announce_file(kept.id).await?;
        self.objects.copy(&path(id), &path(kept.id)).await.map_err(unavailable)?;
        if self.rows.files(owner, Which::These(&[kept.id])).await?.is_empty() {
            self.rows.announce_file(kept.id).await?;
            self.remove_quietly(kept.id).await;
        }
        Ok(())
    }

    async fn remove_quietly(&self, id: FileId) {
        if let Err(error) = self.remove(id).await {
            tracing::warn!(error = %Causes(&error), file.id = %id, "a file was not removed; it is tried again");
        }
    }
}

#[async_trait]
impl Files for FileStore {
    async fn keep(&self, owner: &Owner, incoming: Incoming<'_>) -> Result<FileRecord, FileError> {
        let mut held = self.hold(COMING)?;
        let id = FileId::fresh();
        self.rows.announce_file(id).await?;
        let kept = self.kept(owner, id, incoming, &mut held).await;
        if kept.is_err() {
            self.remove_quietly(id).await;
        }
        kept
    }

    async fn find(&self, owner: &Owner, ids: &[FileId]) -> Result<Vec<FileRecord>, FileError> {
        Ok(self.rows.files(owner, Which::These(ids)).await?)
    }

    async fn list(&self, owner: &Owner, part: FilePart) -> Result<Vec<FileRecord>, FileError> {
        Ok(self.rows.files(owner, Which::Part(part)).await?)
    }

    async fn read(&self, owner: &Owner, id: FileId) -> Result<Option<Bytes>, FileError> {
        let Some(record) = self.rows.files(owner, Which::These(&[id])).await?.pop() else { return Ok(None) };
        let bytes = usize::try_from(record.file.bytes).unwrap_or(usize::MAX);
        let held = self.hold(bytes)?;
        let found = match self.objects.get(&path(id)).await {
            Ok(found) => found,
            Err(ObjectError::NotFound { .. }) => {
                tracing::warn!(file.id = %id, "the bytes of a file are gone");
                return Ok(None);
            }
            Err(error) => return Err(unavailable(error)),
        };
        if found.meta.size != record.file.bytes {
            tracing::warn!(file.id = %id, "the bytes of a file are not those that were kept");
            return Ok(None);
        }
        let data = found.bytes().await.map_err(unavailable)?;
        Ok(Some(Bytes::from_owner(Read { data, _held: held })))
    }

    async fn delete(&self, owner: &Owner, id: FileId) -> Result<bool, FileError> {
        let was_there = self.rows.delete_file(owner, id).await?;
        if was_there {
            self.remove_quietly(id).await;
        }
        Ok(was_there)
    }
}

/// The bytes of a file, with their memory.
struct Read {
    data: Bytes,
    _held: Reservation,
}

impl AsRef<[u8]> for Read {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

/// Where the bytes of a file are: folders do not get large by it.
fn path(id: FileId) -> Path {
    let id = id.to_string();
    Path::from(format!("{}/{id}", id.get(..2).unwrap_or_default()))
}

fn unavailable(error: ObjectError) -> FileError {
    FileError::Unavailable(error.into())
}

/// What a file without a name is called.
fn usual_name(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Png => "image.png",
        FileKind::Jpeg => "image.jpg",
        FileKind::Webp => "image.webp",
        FileKind::Gif => "image.gif",
        FileKind::Pdf => "document.pdf",
        FileKind::Text => "text.txt",
        FileKind::Markdown => "text.md",
        FileKind::Csv => "table.csv",
        FileKind::Json => "data.json",
    }
}

/// Stands where files are not kept.
pub struct NoFiles;

#[async_trait]
impl Files for NoFiles {
    async fn keep(&self, _: &Owner, _: Incoming<'_>) -> Result<FileRecord, FileError> {
        Err(FileError::Off)
    }

    async fn find(&self, _: &Owner, _: &[FileId]) -> Result<Vec<FileRecord>, FileError> {
        Ok(Vec::new())
    }

    async fn list(&self, _: &Owner, _: FilePart) -> Result<Vec<FileRecord>, FileError> {
        Ok(Vec::new())
    }

    async fn read(&self, _: &Owner, _: FileId) -> Result<Option<Bytes>, FileError> {
        Ok(None)
    }

    async fn delete(&self, _: &Owner, _: FileId) -> Result<bool, FileError> {
        Ok(false)
    }
}
