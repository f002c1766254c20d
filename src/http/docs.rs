//! The docs page: `/docs` and the files below it, built into the binary from `src/api_page/`. It shows `/openapi.json` with Swagger
//! UI, works without any other server, and has a token only when its user pastes one.
//!
//! **Invariant:** like the chat page, it may run nothing but its own scripts, and connect to its own server only.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use axum::routing::get;
use axum::{Router, middleware};
use rust_embed::RustEmbed;

use super::files::{self, File, Files};
use super::problem::Problem;
use super::{Services, page};

/// `default` has DOMPurify clean all markup that Swagger UI makes; the other two are DOMPurify's own, ours and Swagger UI's.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types dompurify dompurify#docs default";

/// What every answer of these routes has.
const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_SECURITY_POLICY)),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

#[derive(RustEmbed)]
#[folder = "src/api_page/"]
struct BuiltIn;

/// `/docs` and the files below it.
pub(super) fn routes() -> Router<Services> {
    let mut files = files::embedded::<BuiltIn>();
    // The chat page's own copy.
    let purify = File::embedded::<page::BuiltIn>("vendor/dompurify/purify.min.js");
    files.extend(purify.map(|file| ("vendor/purify.min.js".to_owned(), file)));
    Router::new().route("/docs", get(index)).route("/docs/{*path}", get(file)).with_state(Arc::new(files)).layer(
        middleware::map_response(async |mut response: Response| {
            response.headers_mut().extend(HEADERS);
            response
        }),
    )
}

async fn index(State(files): State<Files>, headers: HeaderMap) -> Result<Response, Problem> {
    files::answer(&files, "index.html", &headers)
}

async fn file(State(files): State<Files>, Path(path): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    files::answer(&files, &path, &headers)
}
