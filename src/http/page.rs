//! The chat page: `/` and the files below `/page/`, built into the binary from `src/page/`, and `/page/session`, where the
//! page learns how its user signs in.
//!
//! **Invariant:** the page may run nothing but its own scripts, and speak to nobody but its own server
//! ([`CONTENT_SECURITY_POLICY`]): whatever a model writes, the browser itself refuses the rest.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, OnceLock};

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use rust_embed::RustEmbed;
use serde::Serialize;

use super::Services;
use super::auth::DevToken;
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
struct BuiltIn;

/// A file of the page as it is sent.
struct File {
    content_type: HeaderValue,
    etag: HeaderValue,
    plain: Bytes,
    /// Made when somebody first asks for it.
    gzip: OnceLock<Option<Bytes>>,
}

/// All files by their path below `src/page/`.
type Files = Arc<BTreeMap<String, File>>;

/// `/`, `/page/session` and the files below `/page/`.
pub(super) fn routes() -> Router<Services> {
    let files: Files =
        Arc::new(BuiltIn::iter().filter_map(|path| Some((path.to_string(), File::built_in(&path)?))).collect());
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
    answer(&files, "index.html", &headers)
}

async fn file(State(files): State<Files>, Path(path): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    answer(&files, &path, &headers)
}

/// 200 with the file, compressed where the client takes that; 304 where the client has it.
fn answer(files: &Files, path: &str, headers: &HeaderMap) -> Result<Response, Problem> {
    let file = files.get(path).ok_or_else(|| Problem::not_found("the page has no such file"))?;
    let always = [
        (header::ETAG, file.etag.clone()),
        // Asked for each time, since a new version of the server has new files at the same addresses.
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::VARY, HeaderValue::from_static("accept-encoding")),
    ];
    if is_current(headers, &file.etag) {
        return Ok((StatusCode::NOT_MODIFIED, always).into_response());
    }
    let content_type = [(header::CONTENT_TYPE, file.content_type.clone())];
    Ok(match file.compressed().filter(|_| takes_gzip(headers)) {
        Some(body) => {
            let encoding = [(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
            (always, content_type, encoding, body).into_response()
        }
        None => (always, content_type, file.plain.clone()).into_response(),
    })
}

impl File {
    fn built_in(path: &str) -> Option<Self> {
        let file = BuiltIn::get(path)?;
        let digest = file.metadata.sha256_hash();
        let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Some(Self {
            content_type: HeaderValue::from_static(content_type(path)),
            // Weak: the same for the file and its compressed form.
            etag: HeaderValue::from_str(&format!("W/\"{hex}\"")).ok()?,
            plain: match file.data {
                Cow::Borrowed(bytes) => Bytes::from_static(bytes),
                Cow::Owned(bytes) => Bytes::from(bytes),
            },
            gzip: OnceLock::new(),
        })
    }

    /// The compressed form, where that is smaller.
    fn compressed(&self) -> Option<Bytes> {
        let compress = || {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(&self.plain).ok()?;
            let bytes = encoder.finish().ok()?;
            (bytes.len() < self.plain.len()).then(|| Bytes::from(bytes))
        };
        self.gzip.get_or_init(compress).clone()
    }
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("json" | "map") => "application/json",
        // Licences and notes.
        Some(_) | None => "text/plain; charset=utf-8",
    }
}

/// Whether the client has the file with this tag already (RFC 9110, section 13.1.2).
fn is_current(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let Ok(etag) = etag.to_str().map(opaque) else { return false };
    listed(headers, &header::IF_NONE_MATCH).any(|tag| tag.trim() == "*" || opaque(tag) == etag)
}

/// Whether the client takes gzip; `*` alone is not taken for it.
fn takes_gzip(headers: &HeaderMap) -> bool {
    listed(headers, &header::ACCEPT_ENCODING).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let weight = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok());
        is_gzip && weight.unwrap_or(1.0) > 0.0
    })
}

fn listed<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','))
}

/// How the page's user signs in.
#[derive(Serialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
enum SessionBody {
    /// They are signed in already.
    Dev { token: String, expires_in_s: u64, user: &'static str },
    /// They paste a token.
    Token,
}

/// 200: a token of the development user in `dev` mode, for a page that this server itself has sent to a browser on this
/// machine. Everybody else pastes one.
async fn session(
    State(services): State<Services>,
    headers: HeaderMap,
) -> Result<([(HeaderName, HeaderValue); 1], Json<SessionBody>), Problem> {
    let body = match services.dev_tokens.filter(|_| is_from_this_machine(&headers)) {
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

/// Whether a browser on this machine asks for itself. A page of elsewhere may have its name resolve to this machine, and
/// then its requests count as its own: but they carry its name. So does what a proxy lets in from outside.
fn is_from_this_machine(headers: &HeaderMap) -> bool {
    let one = |name: &HeaderName| {
        let mut values = headers.get_all(name).iter();
        let first = values.next().map(|value| value.to_str().unwrap_or_default());
        (first, values.next().is_some())
    };
    let (Some(host), false) = one(&header::HOST) else { return false };
    let site = match one(&HeaderName::from_static("sec-fetch-site")) {
        (None | Some("same-origin" | "none"), false) => true,
        (Some(_) | None, _) => false,
    };
    let origin = match one(&header::ORIGIN) {
        (None, _) => true,
        (Some(origin), repeated) => !repeated && origin.eq_ignore_ascii_case(&format!("http://{host}")),
    };
    let is_forwarded = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via"];
    is_loopback(host) && site && origin && !is_forwarded.iter().any(|name| headers.contains_key(*name))
}

/// Whether a `Host` names this machine, whatever the port.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    ["localhost", "127.0.0.1", "[::1]"].iter().any(|own| name.eq_ignore_ascii_case(own))
}
