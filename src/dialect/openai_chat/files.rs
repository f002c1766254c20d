//! Uploads as files of this protocol.

use serde::Serialize;
use utoipa::ToSchema;

use crate::chat::file::{FileRef, Purpose};
use crate::chat::ids::FileId;

/// A user's file.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiFile)]
pub struct FileBody {
    /// `file-` and the id of the upload.
    id: String,
    object: &'static str,
    /// Its size.
    bytes: u64,
    /// When it came, in seconds since the Unix epoch.
    created_at: i64,
    filename: String,
    /// `user_data`, `vision` or `assistants`.
    purpose: &'static str,
    /// When it goes, in seconds since the Unix epoch; left out where it stays as long as a conversation needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    expires_at: Option<i64>,
    /// `processed`: there is nothing to wait for.
    status: &'static str,
}

impl FileBody {
    /// The file, which came and goes at these times, in milliseconds.
    pub fn new(file: FileRef, purpose: Purpose, created_ms: i64, expires_ms: Option<i64>) -> Self {
        Self {
            id: file_id(file.id),
            object: "file",
            bytes: file.bytes,
            created_at: created_ms.div_euclid(1000),
            filename: file.name,
            purpose: purpose.name(),
            expires_at: expires_ms.map(|ms| ms.div_euclid(1000)),
            status: "processed",
        }
    }
}

/// A part of a user's files.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiFileList)]
pub struct FileListBody {
    object: &'static str,
    data: Vec<FileBody>,
    /// Empty where there is none.
    first_id: String,
    /// Empty where there is none; else `after` of the next part.
    last_id: String,
    has_more: bool,
}

impl FileListBody {
    /// These.
    pub fn new(data: Vec<FileBody>, has_more: bool) -> Self {
        let id = |file: Option<&FileBody>| file.map(|file| file.id.clone()).unwrap_or_default();
        Self { object: "list", first_id: id(data.first()), last_id: id(data.last()), data, has_more }
    }
}

/// A file that is gone.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiFileDeleted)]
pub struct FileDeletedBody {
    id: String,
    object: &'static str,
    deleted: bool,
}

impl FileDeletedBody {
    /// The one of that id.
    pub fn new(id: FileId) -> Self {
        Self { id: file_id(id), object: "file", deleted: true }
    }
}

fn file_id(id: FileId) -> String {
    format!("file-{id}")
}
