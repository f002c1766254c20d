//! Addresses of the settings that say who a user is, or that get what only their user may have.

use url::Url;

use crate::bounded::address::{is_loopback, is_metadata_host};

/// An address that keys or tokens may come from. Whoever can change the answer can be any user.
pub(super) fn source(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).map_err(|_| "is not a URL")?;
    match url.scheme() {
        "https" => {}
        "http" if is_loopback(&url) => {}
        "http" => return Err("must begin with https://, but on this machine"),
        _ => return Err("must begin with https://"),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold a user or password");
    }
    if url.fragment().is_some() {
        return Err("must not have a fragment");
    }
    match is_metadata_host(&url) {
        true => Err("is a link-local address, where there is no such server"),
        false => Ok(url),
    }
}
