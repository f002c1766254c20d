//! Files that are built into the binary, and documents that are made once, as they are sent: compressed where the client takes
//! that, not at all where it has them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::{Arc, OnceLock};

use aws_lc_rs::digest::{SHA256, digest};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use rust_embed::RustEmbed;

use super::problem::Problem;

/// A file as it is sent.
pub(super) struct File {
    content_type: HeaderValue,
    etag: HeaderValue,
    stored: Bytes,
    /// Whether `stored` is compressed.
    is_gzip: bool,
    /// The compressed bytes, made at the first request for them; `None` where they are not smaller.
    other: OnceLock<Option<Bytes>>,
}

/// Files by their paths.
pub(super) type Files = Arc<BTreeMap<String, File>>;

/// All files of `E`. One that is kept compressed, as `NAME.gz`, is sent as `NAME`.
pub(super) fn embedded<E: RustEmbed>() -> BTreeMap<String, File> {
    let named = |path: Cow<'static, str>| {
        let name = path.strip_suffix(".gz").unwrap_or(&path).to_owned();
        Some((name, File::embedded::<E>(&path)?))
    };
    E::iter().filter_map(named).collect()
}

/// How long a browser may keep a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// It asks each time, since a new version of the server has another file at the same address.
    Asking,
    /// For good: another file has another address.
    Forever,
}

/// 200 with the file; 304 where the client has it; 404 where there is none. The client asks each time.
pub(super) fn answer(files: &Files, path: &str, headers: &HeaderMap) -> Result<Response, Problem> {
    answer_kept(files, path, headers, Keep::Asking)
}

/// The same, of a file that may be kept so long.
pub(super) fn answer_kept(files: &Files, path: &str, headers: &HeaderMap, keep: Keep) -> Result<Response, Problem> {
    let file = files.get(path).ok_or_else(|| Problem::not_found("the page has no such file"))?;
    let always = [
        (header::ETAG, file.etag.clone()),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static(match keep {
                Keep::Asking => "no-cache",
                Keep::Forever => "public, max-age=31536000, immutable",
            }),
        ),
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
        None => (always, content_type, file.plain().ok_or_else(Problem::internal)?).into_response(),
    })
}

impl File {
    /// The file of `E` at that path.
    pub(super) fn embedded<E: RustEmbed>(path: &str) -> Option<Self> {
        let file = E::get(path)?;
        let name = path.strip_suffix(".gz");
        let kind = content_type(name.unwrap_or(path));
        Self::new(kind, &file.metadata.sha256_hash(), stored(file.data), name.is_some())
    }

    /// The file called `name` with this content.
    pub(super) fn named(name: &str, content: Cow<'static, [u8]>) -> Option<Self> {
        Self::new(content_type(name), digest(&SHA256, &content).as_ref(), stored(content), false)
    }

    /// A document that was made here.
    pub(super) fn made(content_type: &'static str, text: Vec<u8>) -> Option<Self> {
        Self::new(content_type, digest(&SHA256, &text).as_ref(), Bytes::from(text), false)
    }

    fn new(content_type: &'static str, digest: &[u8], stored: Bytes, is_gzip: bool) -> Option<Self> {
        let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Some(Self {
            content_type: HeaderValue::from_static(content_type),
            // Weak: the same for the plain and the compressed file.
            etag: HeaderValue::from_str(&format!("W/\"{hex}\"")).ok()?,
            stored,
            is_gzip,
            other: OnceLock::new(),
        })
    }

    /// The compressed bytes, where they are smaller.
    fn compressed(&self) -> Option<Bytes> {
        if self.is_gzip {
            return Some(self.stored.clone());
        }
        let compress = || {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(&self.stored).ok()?;
            let bytes = encoder.finish().ok()?;
            (bytes.len() < self.stored.len()).then(|| Bytes::from(bytes))
        };
        self.other.get_or_init(compress).clone()
    }

    /// The file itself.
    fn plain(&self) -> Option<Bytes> {
        if !self.is_gzip {
            return Some(self.stored.clone());
        }
        let inflate = || {
            let mut plain = Vec::new();
            // Our own file: its size is known.
            GzDecoder::new(&*self.stored).read_to_end(&mut plain).ok()?;
            Some(Bytes::from(plain))
        };
        self.other.get_or_init(inflate).clone()
    }
}

fn stored(content: Cow<'static, [u8]>) -> Bytes {
    match content {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => Bytes::from(bytes),
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
