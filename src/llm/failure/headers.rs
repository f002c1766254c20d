//! What the headers of an answer say beside its status: whether to come back, what the request is called.

use reqwest::Url;
use reqwest::header::{HeaderMap, LOCATION};

/// Headers that name a request: Anthropic's, the usual one, Azure's, Amazon's.
const REQUEST_IDS: [&str; 4] = ["request-id", "x-request-id", "apim-request-id", "x-amzn-requestid"];

/// What the vendor calls the request: its support asks for it.
pub(super) fn request_id(headers: &HeaderMap) -> Option<&str> {
    REQUEST_IDS.iter().find_map(|name| header(headers, name))
}

/// What Amazon calls the error, without the address that may stand behind it.
pub(super) fn error_type(headers: &HeaderMap) -> Option<&str> {
    header(headers, "x-amzn-errortype")?.split(':').next()
}

/// Whether the vendor wants the request again, where it says so.
pub(super) fn should_retry(headers: &HeaderMap) -> Option<bool> {
    header(headers, "x-should-retry")?.parse().ok()
}

/// Where an answer from `url` redirects, without what may be secret: a query, a user.
pub(super) fn redirected_to(headers: &HeaderMap, url: &Url) -> Option<String> {
    let target = url.join(header(headers, LOCATION.as_str())?).ok()?;
    // A scheme without a host has no origin to name.
    target.has_host().then(|| format!("{}{}", target.origin().ascii_serialization(), target.path()))
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
