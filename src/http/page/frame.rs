//! The frame in which diagrams are drawn (`src/page/diagram.html`): a library of others reads there what a model has written.
//!
//! **Invariant:** the frame's document has no origin, whoever shows it, and may ask for nothing but the page's own scripts, which
//! is what [`CONTENT_SECURITY_POLICY`] says and the browser holds.

use axum::http::{HeaderName, HeaderValue, header};

/// `sandbox` takes the origin away, also where somebody opens the frame's address by itself. Styles are what the library puts in.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts";

/// What the file of that name has in place of, or besides, the headers of the page.
pub(super) fn header(name: &str) -> Option<(HeaderName, HeaderValue)> {
    match name {
        "diagram.html" => Some((header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_SECURITY_POLICY))),
        // To a document without an origin the page's own scripts are those of a stranger. They are no secret.
        "diagram-frame.js" => Some(for_all()),
        _ if name.starts_with("vendor/mermaid/") => Some(for_all()),
        _ => None,
    }
}

fn for_all() -> (HeaderName, HeaderValue) {
    (header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"))
}
