//! The error bodies of page assistants' routes: `{"detail": text}`, or 422 with `{"detail": [{loc, msg, type}]}`.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::dialect;

#[derive(Serialize, ToSchema)]
#[schema(as = ChatStreamError)]
pub(in crate::http) struct DetailBody<'a> {
    detail: &'a str,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ChatStreamMistakes)]
pub(in crate::http) struct MistakesBody<'a> {
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

#[derive(Serialize, ToSchema)]
#[schema(as = SmithyRefusal)]
pub(in crate::http) struct ReasonsBody<'a> {
    detail: Reasons<'a>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SmithyReasons)]
struct Reasons<'a> {
    message: &'static str,
    /// Each begins with its place.
    #[schema(value_type = Vec<String>)]
    errors: &'a [String],
}

/// The answer with what is wrong with settings.
pub(super) fn reasons(status: StatusCode, errors: &[String]) -> Response {
    let detail = Reasons { message: "the settings were not changed", errors };
    (status, Json(ReasonsBody { detail })).into_response()
}

/// The answer with that sentence, or with all that is wrong.
pub(super) fn response(status: StatusCode, detail: &str, mistakes: &[dialect::Mistake]) -> Response {
    if mistakes.is_empty() {
        return (status, Json(DetailBody { detail })).into_response();
    }
    let mistakes = mistakes.iter().map(|wrong| Mistake { loc: &wrong.at, msg: &wrong.message, r#type: wrong.kind });
    (status, Json(MistakesBody { detail: mistakes.collect() })).into_response()
}
