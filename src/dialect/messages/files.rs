//! Uploads as files of this protocol.

use serde::Serialize;
use utoipa::ToSchema;

use crate::chat::day::rfc3339;
use crate::chat::file::FileRef;
use crate::chat::ids::FileId;

/// A user's file.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessagesFile)]
pub struct FileBody {
    r#type: &'static str,
    /// `file_` and the id of the upload.
    id: String,
    filename: String,
    /// What is inside, by its bytes.
    mime_type: &'static str,
    size_bytes: u64,
    /// When it came.
    created_at: String,
    /// Always: its user may read it again.
    downloadable: bool,
    /// When it goes; null where it stays as long as a conversation needs it.
    expires_at: Option<String>,
}

impl FileBody {
    /// The file, which came and goes at these times, in milliseconds.
    pub fn new(file: FileRef, created_ms: i64, expires_ms: Option<i64>) -> Self {
        Self {
            r#type: "file",
            id: file_id(file.id),
            filename: file.name,
            mime_type: file.kind.media_type(),
            size_bytes: file.bytes,
            created_at: rfc3339(created_ms),
            downloadable: true,
            expires_at: expires_ms.map(rfc3339),
        }
    }
}

/// A part of a user's files.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessagesFileList)]
pub struct FileListBody {
    data: Vec<FileBody>,
    has_more: bool,
    #[schema(required = true)]
    first_id: Option<String>,
    #[schema(required = true)]
    last_id: Option<String>,
    /// `page` of the next part; null where this is the last one.
    #[schema(required = true)]
    next_page: Option<String>,
}

impl FileListBody {
    /// These.
    pub fn new(data: Vec<FileBody>, has_more: bool, next_page: Option<String>) -> Self {
        let id = |file: Option<&FileBody>| file.map(|file| file.id.clone());
        Self { first_id: id(data.first()), last_id: id(data.last()), data, has_more, next_page }
    }
}

/// A file that is gone.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessagesFileDeleted)]
pub struct FileDeletedBody {
    r#type: &'static str,
    id: String,
}

impl FileDeletedBody {
    /// The one of that id.
    pub fn new(id: FileId) -> Self {
        Self { r#type: "file_deleted", id: file_id(id) }
    }
}

fn file_id(id: FileId) -> String {
    format!("file_{id}")
}
