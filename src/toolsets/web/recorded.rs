//! A page read from bytes that are already here: no connection, and otherwise the very code that reads an answer of the
//! web. Fuzzers feed it what no server would send.

use super::body::{Body, MOST_BYTES};
use super::page;

/// What `web_fetch` tells of a page with this content type and this body, of which it reads the first megabyte: its charset
/// in lower case, and its text.
pub fn page(content_type: &str, body: &[u8]) -> (Option<String>, String) {
    let (read, rest) = body.split_at(body.len().min(MOST_BYTES));
    let text = page::text_of(&Body { bytes: read.to_vec(), is_whole: rest.is_empty() }, content_type);
    (text.encoding, text.text)
}
