//! `/v1/files`: the user's files as clients of OpenAI's protocols know them (`docs/protocol/openai.md`), and those of Messages
//! (`docs/protocol/messages.md`), which say so by a header. They are those of `/v1/agent/files`, see [`super::uploads`].

mod form;
mod list;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::{Extension, Json};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::form::{Form, Said};
use super::Services;
use super::auth::Authenticated;
use super::body;
use super::problem::{Problem, VERSION_OF_MESSAGES};
use super::share::Slot;
use super::uploads;
use crate::agent::ports::files::{FileRecord, Incoming};
use crate::chat::ids::FileId;
use crate::dialect::{DecodeError, FieldError, file_id, messages, openai_chat};

/// These routes.
pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(list, upload)).routes(routes!(get, delete)).routes(routes!(content))
}

/// The protocol that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Face {
    OpenAi,
    Messages,
}

impl Face {
    /// That of the client that sends these headers.
    fn of(headers: &HeaderMap) -> Self {
        if headers.contains_key(VERSION_OF_MESSAGES) { Self::Messages } else { Self::OpenAi }
    }

    fn file(self, record: FileRecord) -> FileOfClient {
        match self {
            Self::OpenAi => FileOfClient::OpenAi(of_openai(record)),
            Self::Messages => FileOfClient::Messages(of_messages(record)),
        }
    }
}

fn of_openai(FileRecord { file, created_ms, purpose, expires_ms }: FileRecord) -> openai_chat::FileBody {
    openai_chat::FileBody::new(file, purpose, created_ms, expires_ms)
}

fn of_messages(FileRecord { file, created_ms, purpose: _, expires_ms }: FileRecord) -> messages::FileBody {
    messages::FileBody::new(file, created_ms, expires_ms)
}

/// A file as either protocol has it.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum FileOfClient {
    OpenAi(openai_chat::FileBody),
    Messages(messages::FileBody),
}

/// A list as either protocol has it.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum FilesOfClient {
    OpenAi(openai_chat::FileListBody),
    Messages(messages::FileListBody),
}

/// A file that is gone, as either protocol has it.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum DeletedOfClient {
    OpenAi(openai_chat::FileDeletedBody),
    Messages(messages::FileDeletedBody),
}

/// A form with a file. Its fields may come in any order.
#[derive(ToSchema)]
#[schema(as = FileForm)]
#[expect(dead_code, reason = "describes a form, which is read field by field")]
struct FormBody {
    #[schema(value_type = String, format = Binary)]
    file: String,
    /// `user_data`, `vision` or `assistants`. Messages has no such field; without `anthropic-version` it is required.
    #[schema(required = false)]
    purpose: Option<String>,
    /// `created_at`. Beside `expires_after[seconds]`.
    #[schema(required = false, rename = "expires_after[anchor]")]
    anchor: Option<String>,
    /// How long it is kept. OpenAI's.
    #[schema(required = false, rename = "expires_after[seconds]", minimum = 3600, maximum = 2592000)]
    seconds: Option<i64>,
    /// How long it is kept. That of Messages.
    #[schema(required = false, minimum = 3600, maximum = 7776000)]
    expires_in_seconds: Option<i64>,
}

/// A mistake of one field or parameter.
fn wrong(field: &'static str, reason: &str) -> Problem {
    DecodeError::Fields(vec![FieldError { field, reason: reason.to_owned() }]).into()
}

/// A path's file, as far as the path tells.
type FilePath = Result<Path<String>, PathRejection>;

fn id(path: FilePath) -> Result<FileId, Problem> {
    path.ok().and_then(|Path(id)| file_id(&id)).ok_or_else(uploads::no_such_file)
}

/// 200 with the file as it is kept.
#[utoipa::path(
    post,
    path = "/v1/files",
    operation_id = "uploadClientFile",
    tag = "OpenAI",
    summary = "Upload a file in a form",
    description = "As `POST /v1/agent/files`. With a time of its own a file stays that long, whether a message names it or not. The same bytes have the same id again, and what was said of them last. With `anthropic-version`, as clients of Messages know it.",
    params(
        ("anthropic-version" = Option<String>, Header, description = "Any: its client speaks Messages."),
    ),
    request_body(content = FormBody, content_type = "multipart/form-data", description = "The file, and what is said of it."),
    responses(
        (status = 200, description = "As it is kept.", body = inline(FileOfClient)),
        (status = 400, description = "`invalid_request`, `body_unreadable`: it is no such form, a field is wrong, the file is empty, or it did not come to its end."),
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
    headers: HeaderMap,
    body: Body,
) -> Result<Json<FileOfClient>, Problem> {
    body::plain(&headers)?;
    let face = Face::of(&headers);
    let file = Form::new(face, &headers, body)?.file().await?;
    let (name, media_type, said) = (file.name(), file.media_type(), Said::default());
    let incoming = Incoming {
        name: name.as_deref(),
        media_type: media_type.as_deref(),
        terms: Some(&said.terms),
        content: file.content(&said),
    };
    let kept = services.files.keep(&caller.owner, incoming).await;
    // What the form says is more than that its file did not come.
    let record = kept.map_err(|error| said.wrong.into_inner().unwrap_or_else(|| error.into()))?;
    Ok(Json(face.file(record)))
}

/// 200 with a part of the caller's files.
#[utoipa::path(
    get,
    path = "/v1/files",
    operation_id = "listClientFiles",
    tag = "OpenAI",
    summary = "List files as clients know them",
    description = "The newest first; at most 1000 at once. With `anthropic-version`, as clients of Messages know them.",
    params(
        ("anthropic-version" = Option<String>, Header, description = "Any: its client speaks Messages."),
        ("limit" = Option<String>, Query, description = "The most files: up to 10000, and in Messages up to 1000, else 20.", pattern = "^([1-9][0-9]{0,3}|10000)?$"),
        ("order" = Option<String>, Query, description = "OpenAI: `asc`, or `desc`, which is usual.", pattern = "^(asc|desc)?$"),
        ("purpose" = Option<String>, Query, description = "OpenAI: files of this purpose alone."),
        ("after" = Option<String>, Query, description = "OpenAI: the file behind which the list begins."),
        ("page" = Option<String>, Query, description = "Messages: `next_page` of the part before."),
        ("after_id" = Option<String>, Query, description = "Messages: the file behind which the list begins."),
        ("before_id" = Option<String>, Query, description = "Messages: the file before which it ends."),
        ("ids[]" = Option<Vec<String>>, Query, description = "Messages: these files, as far as they are there; at most 100."),
        ("scope_id" = Option<String>, Query, description = "Messages: the files of a session; there are none."),
    ),
    responses(
        (status = 200, description = "The files.", body = inline(FilesOfClient)),
        (status = 400, description = "`invalid_request`, `cursor_invalid`: a parameter that is none."),
    ),
)]
async fn list(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Json<FilesOfClient>, Problem> {
    let (face, query) = (Face::of(&headers), query.unwrap_or_default());
    Ok(Json(match face {
        Face::OpenAi => {
            let listed = list::of_openai(&services, &caller.owner, &query).await?;
            let data = listed.records.into_iter().map(of_openai).collect();
            FilesOfClient::OpenAi(openai_chat::FileListBody::new(data, listed.has_more))
        }
        Face::Messages => {
            let listed = list::of_messages(&services, &caller.owner, &query).await?;
            let data = listed.records.into_iter().map(of_messages).collect();
            FilesOfClient::Messages(messages::FileListBody::new(data, listed.has_more, listed.next_page))
        }
    }))
}

/// 200 with the file; 404 for another's.
#[utoipa::path(
    get,
    path = "/v1/files/{file_id}",
    operation_id = "getClientFile",
    tag = "OpenAI",
    summary = "Look at a file as clients know it",
    description = "What is known of it, without its bytes. With `anthropic-version`, as clients of Messages know it.",
    params(
        ("anthropic-version" = Option<String>, Header, description = "Any: its client speaks Messages."),
        ("file_id" = String, Path, description = "The file, with `file-` or `file_` in front or without."),
    ),
    responses(
        (status = 200, description = "The file.", body = inline(FileOfClient)),
        (status = 404, description = "`not_found`: there is no such file, or it is another's."),
    ),
)]
async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    file: FilePath,
) -> Result<Json<FileOfClient>, Problem> {
    let found = services.files.find(&caller.owner, &[id(file)?]).await?.pop();
    Ok(Json(Face::of(&headers).file(found.ok_or_else(uploads::no_such_file)?)))
}

/// 200 with the bytes; 404 for another's.
#[utoipa::path(
    get,
    path = "/v1/files/{file_id}/content",
    operation_id = "getClientFileContent",
    tag = "OpenAI",
    summary = "Read a file as clients do",
    description = "Its bytes, as `GET /v1/agent/files/{file_id}/content` has them.",
    params(
        ("anthropic-version" = Option<String>, Header, description = "Any: its client speaks Messages."),
        ("file_id" = String, Path, description = "The file, with `file-` or `file_` in front or without."),
    ),
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
    uploads::sent(&services, &caller.owner, &slot, id(file)?).await
}

/// 200 when there is none any more.
#[utoipa::path(
    delete,
    path = "/v1/files/{file_id}",
    operation_id = "deleteClientFile",
    tag = "OpenAI",
    summary = "Delete a file as clients do",
    description = "As `DELETE /v1/agent/files/{file_id}`. With `anthropic-version`, as clients of Messages know it.",
    params(
        ("anthropic-version" = Option<String>, Header, description = "Any: its client speaks Messages."),
        ("file_id" = String, Path, description = "The file, with `file-` or `file_` in front or without."),
    ),
    responses(
        (status = 200, description = "It is gone.", body = inline(DeletedOfClient)),
        (status = 404, description = "`not_found`: there is no such file, or it is another's."),
    ),
)]
async fn delete(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    file: FilePath,
) -> Result<Json<DeletedOfClient>, Problem> {
    let id = id(file)?;
    if !services.files.delete(&caller.owner, id).await? {
        return Err(uploads::no_such_file());
    }
    Ok(Json(match Face::of(&headers) {
        Face::OpenAi => DeletedOfClient::OpenAi(openai_chat::FileDeletedBody::new(id)),
        Face::Messages => DeletedOfClient::Messages(messages::FileDeletedBody::new(id)),
    }))
}
