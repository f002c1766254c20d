//! The files' ports: what users attach and tools make is kept, read and deleted. What is known of a file is a row beside its
//! owner's others; its bytes are kept apart, and their reader is [`Files`].

use std::sync::OnceLock;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

use super::store_error::StoreError;
use crate::chat::caller::Owner;
use crate::chat::file::{FileKind, FileRef, Purpose};
use crate::chat::ids::FileId;

/// Keeps files, and reads them again.
#[async_trait]
pub trait Files: Send + Sync {
    /// Keeps a file of the owner's. The same bytes are kept once for each user: they have the same id again.
    ///
    /// # Errors
    /// See [`FileError`].
    async fn keep(&self, owner: &Owner, file: Incoming<'_>) -> Result<FileRecord, FileError>;

    /// Those of the files that are the owner's, in any order.
    ///
    /// # Errors
    /// When they could not be read.
    async fn find(&self, owner: &Owner, ids: &[FileId]) -> Result<Vec<FileRecord>, FileError>;

    /// A part of the owner's files, in their order.
    ///
    /// # Errors
    /// When they could not be read.
    async fn list(&self, owner: &Owner, part: FilePart) -> Result<Vec<FileRecord>, FileError>;

    /// The bytes of a file of the owner's; `None` where there is none, or they are gone.
    ///
    /// # Errors
    /// When they could not be read.
    async fn read(&self, owner: &Owner, id: FileId) -> Result<Option<Bytes>, FileError>;

    /// Deletes a file of the owner's with its bytes; whether there was one. Messages go on naming it.
    ///
    /// # Errors
    /// When it could not be deleted.
    async fn delete(&self, owner: &Owner, id: FileId) -> Result<bool, FileError>;
}

/// A file that comes in.
pub struct Incoming<'a> {
    /// What whoever brings it calls it, if anything.
    pub name: Option<&'a str>,
    /// Its media type as they say: a hint that tells one text from another.
    pub media_type: Option<&'a str>,
    /// What is said about it besides, where anything is. It is read when all of the bytes have come: a form may say it behind them.
    pub terms: Option<&'a OnceLock<Terms>>,
    /// Its bytes, piece by piece.
    pub content: BoxStream<'a, Result<Bytes, FileError>>,
}

/// What whoever brings a file says about it besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Terms {
    /// What it is for.
    pub purpose: Option<Purpose>,
    /// How long it is kept, whether a message needs it or not, in milliseconds. `None`: a day, and then as long as one does.
    pub kept_ms: Option<i64>,
}

/// A file as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRecord {
    /// What messages know of it.
    pub file: FileRef,
    /// When it came, in milliseconds since the Unix epoch.
    pub created_ms: i64,
    /// What it is for.
    pub purpose: Purpose,
    /// When it goes, as far as that is known by now: unless a message needs it, or in any case.
    pub expires_ms: Option<i64>,
}

/// A part of the list of a user's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilePart {
    /// What it begins behind: when that one came, and which it is.
    pub after: Option<(i64, FileId)>,
    /// Whether the oldest is the first; else the newest.
    pub oldest_first: bool,
    /// Those of this purpose alone.
    pub purpose: Option<Purpose>,
    /// The most files.
    pub most: u32,
}

/// Why a file is not kept, or not read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Files are not kept here.
    #[error("files are not kept by this server")]
    Off,
    /// It is empty.
    #[error("the file is empty")]
    Empty,
    /// It is larger than may be.
    #[error("the file has more than {max_bytes} bytes")]
    TooLarge {
        /// So many may be.
        max_bytes: u64,
    },
    /// It is none of the kinds that are taken, whatever it is called.
    #[error("only PNG, JPEG, WebP and GIF images, PDF documents and texts in UTF-8 are taken")]
    Kind,
    /// An image whose head cannot be read, or that is too large on the screen.
    #[error("the image cannot be read, or has too many pixels")]
    Image,
    /// As much is kept for this user or their tenant as may be.
    #[error("as many bytes of files are kept for this {0} as may be; delete some that are not needed any more")]
    OverQuota(&'static str),
    /// Whoever sends it has stopped before its end.
    #[error("the file was not sent to its end")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Its bytes cannot be written or read now.
    #[error("files are not available now")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What is known of files cannot be read now.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl FileError {
    /// Whether the same file is refused again.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Off | Self::Empty | Self::TooLarge { .. } | Self::Kind | Self::Image | Self::OverQuota(_) => true,
            Self::Broken(_) | Self::Unavailable(_) | Self::Store(_) => false,
        }
    }
}

/// A file that is about to be kept, as its row has it.
#[derive(Debug, Clone)]
pub struct NewFileRow<'a> {
    /// What messages know of it.
    pub file: &'a FileRef,
    /// The SHA-256 of its bytes.
    pub sha256: [u8; 32],
    /// What is said about it besides.
    pub terms: Terms,
    /// The most bytes of a user's files together, and of a tenant's; 0 means no limit.
    pub most: (u64, u64),
}

/// The rows of files. A file's row stands in the database only while its bytes are kept, and bytes without a row are noted
/// there until they are removed.
#[async_trait]
pub trait FileRows: Send + Sync {
    /// Notes that the bytes of `id` are about to be written: unless a row follows, or is there, they are removed a day later.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn announce_file(&self, id: FileId) -> Result<(), StoreError>;

    /// Keeps a row, unless the owner has a file with the same bytes already, which then has these terms. `None` where a quota is used
    /// up; then, and where it is another file, the bytes are removed.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn keep_file(&self, owner: &Owner, row: NewFileRow<'_>) -> Result<KeptFile, StoreError>;

    /// The owner's files of these ids, or a part of all of them. Those whose time is over are not there any more.
    ///
    /// # Errors
    /// When they could not be read.
    async fn files(&self, owner: &Owner, which: Which<'_>) -> Result<Vec<FileRecord>, StoreError>;

    /// Deletes the row of a file of the owner's and notes that its bytes are to be removed; whether there was one.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn delete_file(&self, owner: &Owner, id: FileId) -> Result<bool, StoreError>;

    /// Takes away rows that no conversation needs any more and those whose time is over, forgets what `removed` names, and tells whose bytes are to be removed
    /// now, at most `most`.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn sweep_files(&self, removed: &[FileId], most: u32) -> Result<Vec<FileId>, StoreError>;
}

/// Which files are read.
#[derive(Debug, Clone, Copy)]
pub enum Which<'a> {
    /// These.
    These(&'a [FileId]),
    /// Those of this part.
    Part(FilePart),
}

/// What became of a row that was to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptFile {
    /// It is kept.
    New(FileRecord),
    /// The owner has these bytes already.
    Same(FileRecord),
    /// As much is kept as may be, for this `user` or `tenant`.
    OverQuota(&'static str),
}

/// The kinds that say nothing by their first bytes: texts, by what their sender calls them.
pub fn text_kind(name: Option<&str>, media_type: Option<&str>) -> FileKind {
    let by_name =
        name.and_then(|name| name.rsplit_once('.')).and_then(|(_, end)| match end.to_ascii_lowercase().as_str() {
            "md" | "markdown" => Some(FileKind::Markdown),
            "csv" => Some(FileKind::Csv),
            "json" => Some(FileKind::Json),
            "txt" => Some(FileKind::Text),
            _ => None,
        });
    let by_type = media_type.and_then(FileKind::of_media_type).filter(|kind| kind.is_text());
    by_type.filter(|kind| *kind != FileKind::Text).or(by_name).or(by_type).unwrap_or(FileKind::Text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_what_its_sender_calls_it() {
        let rows = [
            (Some("a.md"), None, FileKind::Markdown),
            (Some("a.md"), Some("text/plain"), FileKind::Markdown),
            (Some("a"), Some("text/csv; header=present"), FileKind::Csv),
            (Some("a.json"), Some("image/png"), FileKind::Json),
            (Some("a.exe"), None, FileKind::Text),
            (None, None, FileKind::Text),
        ];
        for (name, media_type, expected) in rows {
            assert_eq!(text_kind(name, media_type), expected, "{name:?} {media_type:?}");
        }
    }
}
