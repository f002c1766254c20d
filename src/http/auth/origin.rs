//! The page that has sent a request, as the browser says: no page can choose these headers.

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Whose pages may send requests that change something.
#[derive(Debug)]
pub(in crate::http) struct Pages {
    /// The origins whose pages may do so, beside our own.
    listed: Vec<String>,
}

/// The page, by `Origin`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Sender {
    /// Of this host, by whatever scheme.
    Own,
    /// Of a listed origin.
    Listed,
    /// Of neither.
    Foreign,
}

impl Pages {
    /// Those of `listed`, which is `server.cors_allowed_origins`; `*` lists none.
    pub(in crate::http) fn new(listed: &[String]) -> Self {
        Self { listed: listed.to_vec() }
    }

    /// Who has sent a request; `None` where there is no `Origin`.
    pub(in crate::http) fn sender(&self, headers: &HeaderMap) -> Option<Sender> {
        let mut origins = headers.get_all(ORIGIN).iter();
        let origin = origins.next()?;
        let Some(origin) = origin.to_str().ok().filter(|_| origins.next().is_none()) else {
            return Some(Sender::Foreign);
        };
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        if authority.zip(host).is_some_and(|(origin, host)| origin.eq_ignore_ascii_case(host)) {
            return Some(Sender::Own);
        }
        Some(if self.listed.iter().any(|listed| listed == origin) { Sender::Listed } else { Sender::Foreign })
    }
}

/// Whether a request is of a site in `sites`, by each `Sec-Fetch-Site` that it has; `None` where there is none.
pub(super) fn is_of_site(headers: &HeaderMap, sites: &[&str]) -> Option<bool> {
    let mut said = headers.get_all(FETCH_SITE).iter().peekable();
    said.peek()?;
    Some(said.all(|site| sites.iter().any(|known| site == *known)))
}
