//! The chat page: `/` and the files below `/page/`, built into the binary from `src/page/`, and `/page/session`, where the
//! page learns how its user signs in.
//!
//! **Invariant:** the page may run nothing but its own scripts, and connect to its own server only
//! ([`CONTENT_SECURITY_POLICY`]): whatever a model writes, the browser itself refuses the rest.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router, middleware};
use rust_embed::RustEmbed;
use serde::Serialize;

use super::Services;
use super::auth::{DevToken, is_from_this_machine};
use super::files::{self, File, Files};
use super::problem::Problem;
use crate::chat::causes::Causes;

/// `dompurify` is the one policy that makes markup, and it makes none that it has not cleaned.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types dompurify";

/// What every answer of these routes has.
const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_SECURITY_POLICY)),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

#[derive(RustEmbed)]
#[folder = "src/page/"]
pub(super) struct BuiltIn;

/// The parts of the page that families of tools bring: the family's name, and its files by name.
pub type Parts = Vec<(&'static str, Vec<(String, Cow<'static, [u8]>)>)>;

/// `/`, `/page/session` and the files below `/page/`; those of a family stand below its name, and `/page/toolsets.js` loads
/// the `page.js` of each.
pub(super) fn routes(parts: Parts) -> Router<Services> {
    let mut all = files::embedded::<BuiltIn>();
    let imports: String = parts.iter().map(|(family, _)| format!("import './{family}/page.js';\n")).collect();
    all.extend(File::named("toolsets.js", imports.into_bytes().into()).map(|file| ("toolsets.js".to_owned(), file)));
    for (family, files) in parts {
        let named = |(name, content): (String, _)| Some((format!("{family}/{name}"), File::named(&name, content)?));
        all.extend(files.into_iter().filter_map(named));
    }
    let files: Files = Arc::new(all);
    Router::new()
        .route("/", get(index))
        .route("/page/{*path}", get(file))
        .with_state(files)
        .route("/page/session", get(session))
        .layer(middleware::map_response(async |mut response: Response| {
            response.headers_mut().extend(HEADERS);
            response
        }))
}

async fn index(State(files): State<Files>, headers: HeaderMap) -> Result<Response, Problem> {
    files::answer(&files, "index.html", &headers)
}

async fn file(State(files): State<Files>, Path(path): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    files::answer(&files, &path, &headers)
}

/// How the page's user signs in.
#[derive(Serialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
enum SessionBody {
    /// They are signed in already.
    Dev { token: String, expires_in_s: u64, user: String },
    /// They paste a token.
    Token,
}

/// 200: a token of the development user in `dev` mode, for a page that this server itself has sent to a browser on this
/// machine. All others paste one.
async fn session(
    State(services): State<Services>,
    headers: HeaderMap,
    extensions: Extensions,
) -> Result<([(HeaderName, HeaderValue); 1], Json<SessionBody>), Problem> {
    let body = match services.dev_tokens.filter(|_| is_from_this_machine(&headers, &extensions)) {
        None => SessionBody::Token,
        Some(tokens) => {
            let DevToken { token, user, ttl } = tokens.token().map_err(|error| {
                tracing::error!(error = %Causes(&error), "no development token made");
                Problem::internal()
            })?;
            SessionBody::Dev { token, expires_in_s: ttl.as_secs(), user }
        }
    };
    Ok(([(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))], Json(body)))
}
