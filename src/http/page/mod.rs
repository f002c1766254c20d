//! The chat page: `/` and the files below `/page/`, built into the binary from `src/page/`. `signin` tells the page how its
//! user signs in.
//!
//! What `/` leads to stands below `/page/v-HASH/`, named after all of it together, so that browsers keep it for good: its
//! modules are put together there (`bundle.rs`). The same files, one by one, are below `/page/` for others to use. One of them
//! is a document of its own, with a policy of its own (`frame.rs`).
//!
//! **Invariant:** the page may run nothing but its own scripts, and connect to its own server only
//! ([`CONTENT_SECURITY_POLICY`]): whatever a model writes, the browser itself refuses the rest.

mod brand;
mod bundle;
mod config;
mod frame;
mod signin;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Router, middleware};
use rust_embed::RustEmbed;

use super::Services;
use super::files::{self, File, Files, Keep};
use super::problem::Problem;

/// `dompurify` is the one policy that makes markup, and it makes none that it has not cleaned.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
     connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types dompurify";

/// The first line of the head, and what stands behind it where users paste their tokens.
const CHARSET: &str = "<meta charset=\"utf-8\">";
const SIGN_IN: &str = "<meta name=\"sign-in\" content=\"token\">";

/// What every answer of these routes has that says nothing else.
const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_SECURITY_POLICY)),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

pub use brand::Brand;
pub use config::PageConfig;

#[derive(RustEmbed)]
#[folder = "src/page/"]
pub(super) struct BuiltIn;

/// The parts of the page that families of tools bring: the family's name, and its files by name.
pub type Parts = Vec<(&'static str, Vec<(String, Cow<'static, [u8]>)>)>;

/// The files of the page.
#[derive(Clone)]
struct Served {
    /// As they were written, and those that are made here.
    plain: Files,
    /// Those of them that are put together, by the names of their first modules; and what `/` is.
    bundled: Files,
    /// The folder below `/page/` where these are.
    folder: Arc<str>,
}

/// `/`, how users sign in, and the files below `/page/`; those of a family stand below its name, and `/page/toolsets.js` loads
/// the `page.js` of each. Where users can only paste a token, the markup says so, and the page need not ask.
pub(super) fn routes(parts: Parts, brand: &Brand, has_tokens: bool) -> Router<Services> {
    Router::new()
        .route("/", get(index))
        .route("/page/{*path}", get(file))
        .with_state(served(parts, brand, has_tokens))
        .route("/page/session", get(signin::session))
        .route("/page/token", post(signin::token))
        .layer(middleware::map_response(async |mut response: Response| {
            for (name, value) in HEADERS {
                response.headers_mut().entry(name).or_insert(value);
            }
            response
        }))
}

/// All files of the page.
fn served(parts: Parts, brand: &Brand, has_tokens: bool) -> Served {
    let mut sources: bundle::Sources<'_> =
        BuiltIn::iter().filter_map(|path| Some((path.to_string(), BuiltIn::get(&path)?.data))).collect();
    let imports: String = parts.iter().map(|(family, _)| format!("import './{family}/page.js';\n")).collect();
    sources.insert("toolsets.js".to_owned(), imports.into_bytes().into());
    for (family, files) in parts {
        sources.extend(files.into_iter().map(|(name, content)| (format!("{family}/{name}"), content)));
    }
    let style = sources.get("style.css").map(|bytes| bytes.to_vec()).unwrap_or_default();
    sources.extend(brand.files(&style).into_iter().map(|(name, content)| (name, content.into())));
    let markup = sources.get("index.html").map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let mut markup = brand.markup(&markup.unwrap_or_default());
    if !has_tokens {
        markup = markup.replacen(CHARSET, &format!("{CHARSET}\n  {SIGN_IN}"), 1);
    }
    let mut bundles = bundle::bundle(&sources).unwrap_or_else(|error| {
        tracing::error!(%error, "the page is sent in many files");
        BTreeMap::new()
    });
    let folder = format!("v-{}", version(&sources, &bundles));
    let markup = if bundles.is_empty() { markup } else { bundle::index(&markup, &folder) };
    bundles.insert("index.html".to_owned(), markup.into_bytes());
    let file = |(name, content): (String, Cow<'static, [u8]>)| Some((name.clone(), File::named(&name, content)?));
    let bundles = bundles.into_iter().map(|(name, content)| (name, content.into()));
    Served {
        bundled: Arc::new(bundles.filter_map(file).collect()),
        plain: Arc::new(sources.into_iter().filter_map(file).collect()),
        folder: folder.into(),
    }
}

/// What all of this is called: 64 bits of its digest, in hex.
fn version(sources: &bundle::Sources<'_>, bundles: &BTreeMap<String, Vec<u8>>) -> String {
    let mut context = Context::new(&SHA256);
    let bundles = bundles.iter().map(|(name, content)| (name, content.as_slice()));
    for (name, content) in sources.iter().map(|(name, content)| (name, content.as_ref())).chain(bundles) {
        context.update(name.as_bytes());
        context.update(&content.len().to_be_bytes());
        context.update(content);
    }
    context.finish().as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

async fn index(State(served): State<Served>, headers: HeaderMap) -> Result<Response, Problem> {
    files::answer(&served.bundled, "index.html", &headers)
}

async fn file(State(served): State<Served>, Path(path): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    let (name, answer) = match path.split_once('/').filter(|(folder, _)| is_version(folder)) {
        None => {
            let files = if path == "index.html" { &served.bundled } else { &served.plain };
            (&*path, files::answer(files, &path, &headers))
        }
        Some((folder, name)) => {
            // Of another version, as while servers are replaced one after the other, a browser gets what is here, and keeps
            // nothing.
            let keep = if *folder == *served.folder { Keep::Forever } else { Keep::Asking };
            let bundled = files::answer_kept(&served.bundled, name, &headers, keep);
            (name, bundled.or_else(|_| files::answer_kept(&served.plain, name, &headers, keep)))
        }
    };
    let mut response = answer?;
    response.headers_mut().extend(frame::header(name));
    Ok(response)
}

/// Whether a folder is named as [`version`] names one.
fn is_version(folder: &str) -> bool {
    folder.strip_prefix("v-").is_some_and(|hash| hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
}
