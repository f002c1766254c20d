//! The error bodies of these routes: `{"detail": text}`, or 422 with `{"detail": [{loc, msg, type}]}`.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::dialect::chat_stream::{Refused, Wrong};

/// The paths where errors have these bodies, whatever is there.
pub(in crate::http) fn speaks_at(path: &str) -> bool {
    let mut segments = path.trim_start_matches('/').split('/');
    segments.next() == Some("api") && matches!(segments.next(), Some("chat" | "chats"))
}

#[derive(Serialize, ToSchema)]
#[schema(as = ChatStreamError)]
pub(in crate::http) struct Told<'a> {
    detail: &'a str,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ChatStreamMistakes)]
pub(in crate::http) struct Listed<'a> {
    detail: Vec<Mistake<'a>>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ChatStreamMistake)]
struct Mistake<'a> {
    #[schema(value_type = Vec<String>)]
    loc: &'a [&'static str],
    msg: &'a str,
    r#type: &'static str,
}

/// The answer with that sentence.
pub(in crate::http) fn told(status: StatusCode, detail: &str) -> Response {
    (status, Json(Told { detail })).into_response()
}

/// 422 with all that is wrong.
pub(super) fn invalid(wrong: Vec<Wrong>) -> Response {
    let mistakes = wrong.iter().map(|wrong| Mistake { loc: &wrong.at, msg: &wrong.message, r#type: wrong.kind });
    (StatusCode::UNPROCESSABLE_ENTITY, Json(Listed { detail: mistakes.collect() })).into_response()
}

/// 422 or 413 for a body that cannot be run.
pub(super) fn refused(refused: Refused) -> Response {
    let detail = refused.to_string();
    match refused {
        Refused::Mistakes(wrong) => invalid(wrong),
        Refused::TooLarge { .. } => told(StatusCode::PAYLOAD_TOO_LARGE, &detail),
    }
}

#[cfg(test)]
mod tests {
    use super::speaks_at;

    #[test]
    fn errors_have_these_bodies_below_the_two_paths_alone() {
        let rows = [
            ("/api/chat/stream", true),
            ("/api/chats", true),
            ("/api/chats/7", true),
            ("/api/chat", true),
            ("/api/chatter", false),
            ("/v1/api/chats", false),
            ("/", false),
        ];
        for (path, expected) in rows {
            assert_eq!(speaks_at(path), expected, "{path}");
        }
    }
}
