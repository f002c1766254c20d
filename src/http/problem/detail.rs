//! The error bodies of page assistants' routes: `{"detail": text}`, or 422 with `{"detail": [{loc, msg, type}]}`.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::Wrong;

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

/// The answer with that sentence, or with all that is wrong.
pub(super) fn response(status: StatusCode, detail: &str, wrong: Option<&Wrong>) -> Response {
    match wrong {
        None => (status, Json(DetailBody { detail })).into_response(),
        Some(Wrong::Mistakes(mistakes)) => {
            let detail =
                mistakes.iter().map(|wrong| Mistake { loc: &wrong.at, msg: &wrong.message, r#type: wrong.kind });
            (status, Json(MistakesBody { detail: detail.collect() })).into_response()
        }
        Some(Wrong::Settings(errors)) => {
            let detail = Reasons { message: "the settings were not changed", errors };
            (status, Json(ReasonsBody { detail })).into_response()
        }
    }
}
