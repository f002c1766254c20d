//! `/v1/agent/files`: what users attach to their messages. A file is its user's alone, and what is inside its bytes say.

use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Services;
use super::auth::Authenticated;
use super::body;
use super::problem::Problem;
use super::share::{self, Slot};
use crate::agent::ports::files::{FileError, FilePart, FileRecord, Incoming};
use crate::chat::caller::Owner;
use crate::chat::file::FileRef;
use crate::chat::ids::FileId;

/// The most files of one list, and its length where the request says none.
const MOST: u32 = 100;

/// These routes.
pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(list, upload)).routes(routes!(get, delete)).routes(routes!(content))
}

/// A file as it is kept.
#[derive(Serialize, ToSchema)]
#[schema(as = File)]
struct FileBody {
    id: String,
    name: String,
    /// What is inside: `image/png`, `image/jpeg`, `image/webp`, `image/gif`, `application/pdf`, `text/plain`, `text/markdown`,
    /// `text/csv` or `application/json`.
    media_type: &'static str,
    /// Its size.
    bytes: u64,
    /// When it came, in milliseconds since the Unix epoch.
    created_at: i64,
    /// Where its bytes are.
    url: String,
}

impl FileBody {
    fn of(FileRecord { file, created_ms, .. }: FileRecord) -> Self {
        let FileRef { id, kind, name, bytes, .. } = file;
        let (url, id) = (format!("/v1/agent/files/{id}/content"), id.to_string());
        Self { id, name, media_type: kind.media_type(), bytes, created_at: created_ms, url }
    }
}

/// The user's files, the newest first.
#[derive(Serialize, ToSchema)]
#[schema(as = FileList)]
struct FileListBody {
    items: Vec<FileBody>,
    /// `after` of the next part; none where this is the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Named {
    name: Option<String>,
}

#[derive(Deserialize)]
struct Listed {
    after: Option<String>,
    limit: Option<u32>,
}

/// A path's file, as far as the path tells.
type FilePath = Result<Path<String>, PathRejection>;

fn id(path: FilePath) -> Result<FileId, Problem> {
    path.ok().and_then(|Path(id)| FileId::parse(&id).ok()).ok_or_else(no_such_file)
}

pub(super) fn no_such_file() -> Problem {
    Problem::not_found("there is no such file")
}

/// 201 with the file as it is kept.
#[utoipa::path(
    post,
    path = "/v1/agent/files",
    operation_id = "uploadFile",
    tag = "Files",
    summary = "Upload a file",
    description = "The body is the file. It belongs to its user, and goes a day later unless a message names it, else with the last conversation that needs it. The same bytes have the same id again.",
    params(
        ("name" = Option<String>, Query, description = "What it is called."),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "The bytes; any `Content-Type` is taken as a hint."),
    responses(
        (status = 201, description = "As it is kept.", body = FileBody),
        (status = 400, description = "`invalid_request`, `body_unreadable`: it is empty, or did not come to its end."),
        (status = 408, description = "`body_timeout`: it did not come in its time."),
        (status = 413, description = "`field_too_large`: it has more than `files.max_bytes`."),
        (status = 415, description = "`file_unsupported`: it is no PNG, JPEG, WebP or GIF image, PDF document or text in UTF-8."),
        (status = 503, description = "`files_off`, `files_unavailable`: files are not kept here, or not now."),
        (status = 507, description = "`storage_quota_exceeded`: as much is kept for this user or their tenant as may be."),
    ),
)]
async fn upload(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    query: Result<Query<Named>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    body::plain(&headers)?;
    let Query(Named { name }) = query.map_err(|error| Problem::bad_request(error.body_text()))?;
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if media_type.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("multipart/")) {
        return Err(Problem::file_in_form());
    }
    let content = body.into_data_stream().map(|piece| piece.map_err(|error| FileError::Broken(error.into()))).boxed();
    let incoming = Incoming { name: name.as_deref(), media_type, terms: None, content };
    let kept = services.files.keep(&caller.owner, incoming).await.map_err(|error| match error {
        FileError::Broken(cause) => body::unread(&*cause),
        error => error.into(),
    });
    let record = kept?;
    Ok((StatusCode::CREATED, Json(FileBody::of(record))).into_response())
}

/// 200 with the newest files behind one.
#[utoipa::path(
    get,
    path = "/v1/agent/files",
    operation_id = "listFiles",
    tag = "Files",
    summary = "List files",
    description = "The newest first.",
    params(
        ("after" = Option<String>, Query, description = "`next_cursor` of the part before."),
        ("limit" = Option<u32>, Query, description = "The most files.", minimum = 1, maximum = 100),
    ),
    responses(
        (status = 200, description = "The files.", body = FileListBody),
        (status = 400, description = "`invalid_request`, `cursor_invalid`: a parameter that is none."),
    ),
)]
async fn list(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    query: Result<Query<Listed>, QueryRejection>,
) -> Result<Json<FileListBody>, Problem> {
    let Query(Listed { after, limit }) = query.map_err(|error| Problem::bad_request(error.body_text()))?;
    let after = after.filter(|after| !after.is_empty());
    let none = || Problem::cursor_invalid("the cursor is not one that this list gave");
    let after = after.map(|after| place(&after).ok_or_else(none)).transpose()?;
    let limit = limit.unwrap_or(MOST);
    if !(1..=MOST).contains(&limit) {
        return Err(Problem::bad_request(format!("limit must be 1 to {MOST}")));
    }
    let part = FilePart { after, oldest_first: false, purpose: None, most: limit + 1 };
    let mut files = services.files.list(&caller.owner, part).await?;
    let has_more = files.len() > limit as usize;
    files.truncate(limit as usize);
    let next_cursor =
        files.last().filter(|_| has_more).map(|record| format!("{}.{}", record.created_ms, record.file.id));
    Ok(Json(FileListBody { items: files.into_iter().map(FileBody::of).collect(), next_cursor }))
}

/// When a file came, and which one, in a cursor.
pub(super) fn place(cursor: &str) -> Option<(i64, FileId)> {
    let (at, id) = cursor.split_once('.')?;
    Some((at.parse().ok()?, FileId::parse(id).ok()?))
}

/// 200 with the file; 404 for another's.
#[utoipa::path(
    get,
    path = "/v1/agent/files/{file_id}",
    operation_id = "getFile",
    tag = "Files",
    summary = "Look at a file",
    description = "What is known of it, without its bytes.",
    params(("file_id" = String, Path, description = "The file.")),
    responses(
        (status = 200, description = "The file.", body = FileBody),
        (status = 404, description = "`not_found`: there is no such file, or it is another's."),
    ),
)]
async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    file: FilePath,
) -> Result<Json<FileBody>, Problem> {
    let found = services.files.find(&caller.owner, &[id(file)?]).await?.pop();
    Ok(Json(FileBody::of(found.ok_or_else(no_such_file)?)))
}

/// 200 with the bytes; 404 for another's.
#[utoipa::path(
    get,
    path = "/v1/agent/files/{file_id}/content",
    operation_id = "getFileContent",
    tag = "Files",
    summary = "Read a file",
    description = "Its bytes, to be saved: no browser shows them as a page.",
    params(("file_id" = String, Path, description = "The file.")),
    responses(
        (status = 200, description = "The bytes.", content((Vec<u8> = "image/png"), (Vec<u8> = "image/jpeg"), (Vec<u8> = "image/webp"), (Vec<u8> = "image/gif"), (Vec<u8> = "application/pdf"), (Vec<u8> = "text/plain"), (Vec<u8> = "text/markdown"), (Vec<u8> = "text/csv"), (Vec<u8> = "application/json"))),
        (status = 404, description = "`not_found`: there is no such file, it is another's, or its bytes are gone."),
        (status = 429, description = "`too_many_requests`: too much is sent to this user now (`server.bytes_per_user`)."),
        (status = 503, description = "`files_unavailable`, `memory_exhausted`: not now."),
    ),
)]
async fn content(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    Extension(slot): Extension<Slot>,
    file: FilePath,
) -> Result<Response, Problem> {
    sent(&services, &caller.owner, &slot, id(file)?).await
}

/// 200 with the bytes of a file of the owner's.
///
/// # Errors
/// When there is no such file, or too much is sent to its owner now.
pub(super) async fn sent(services: &Services, owner: &Owner, slot: &Slot, id: FileId) -> Result<Response, Problem> {
    let record = services.files.find(owner, &[id]).await?.pop().ok_or_else(no_such_file)?;
    let share = slot.bytes_or_all(usize::try_from(record.file.bytes).unwrap_or(usize::MAX))?;
    let bytes = services.files.read(owner, id).await?.ok_or_else(no_such_file)?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(record.file.kind.media_type())),
        (header::CONTENT_DISPOSITION, disposition(&record.file.name)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'")),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=3600")),
    ];
    Ok((headers, Bytes::from_owner(Download { bytes, _share: share })).into_response())
}

/// The bytes of a file, counted for whoever reads them until all are sent.
struct Download {
    bytes: Bytes,
    _share: share::Bytes,
}

impl AsRef<[u8]> for Download {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// To be saved under this name (RFC 6266), whatever is in it.
fn disposition(name: &str) -> HeaderValue {
    let name = percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC);
    let text = format!("attachment; filename*=UTF-8''{name}");
    // Percent signs, letters and digits are always a header.
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("attachment"))
}

/// 204 when there is none any more.
#[utoipa::path(
    delete,
    path = "/v1/agent/files/{file_id}",
    operation_id = "deleteFile",
    tag = "Files",
    summary = "Delete a file",
    description = "With its bytes. Messages go on naming it, and models read that it is not there any more.",
    params(("file_id" = String, Path, description = "The file.")),
    responses(
        (status = 204, description = "It is deleted."),
        (status = 404, description = "`not_found`: there is no such file, or it is another's."),
    ),
)]
async fn delete(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    file: FilePath,
) -> Result<StatusCode, Problem> {
    match services.files.delete(&caller.owner, id(file)?).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_such_file()),
    }
}
