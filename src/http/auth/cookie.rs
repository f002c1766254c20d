//! A token from a cookie, where a request has no `Authorization`: for front ends whose page is known by a cookie alone.
//!
//! **Invariant:** a cookie counts for a request that may change something only when the browser says that a page of this
//! origin, or of a listed one, has sent it (`Origin`, `Sec-Fetch-Site`).

use std::borrow::Cow;

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, Method};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::MAX_TOKEN_BYTES;
use super::origin::{Pages, Sender, is_of_site};
use crate::bounded::json;
use crate::chat::caller::Bearer;

/// 32 pieces of a cookie that was too large for a browser: more than a request's head can carry.
const MOST_PIECES: usize = 32;

/// How a session begins that is base64url.
const BASE64: &str = "base64-";

/// Reads tokens from one cookie.
#[derive(Debug)]
pub struct CookieTokens {
    name: String,
    pages: Pages,
}

/// A token, and the cookies that it came in.
#[derive(Debug)]
pub(super) struct Found {
    /// The token.
    pub token: String,
    /// The value of a `Cookie` header with exactly these cookies.
    pub cookie: Bearer,
}

impl CookieTokens {
    /// Reads the cookie `name`; `None` where it is empty. `origins` are those of `server.cors_allowed_origins`; `*` lists
    /// none.
    pub fn new(name: &str, origins: &[String]) -> Option<Self> {
        (!name.is_empty()).then(|| Self { name: name.to_owned(), pages: Pages::new(origins) })
    }

    /// What the cookies of a request hold; `None` where the cookie is not among them.
    ///
    /// # Errors
    /// Why no token can be read from it.
    pub(super) fn find(&self, headers: &HeaderMap) -> Option<Result<Found, &'static str>> {
        let cookies: Vec<(&str, &str)> =
            headers.get_all(COOKIE).iter().filter_map(|v| v.to_str().ok()).flat_map(pairs).collect();
        let named = |name: &str| cookies.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let names = (0..MOST_PIECES).map(|n| format!("{}.{n}", self.name));
        let mut pieces: Vec<(String, &str)> = names.map_while(|name| named(&name).map(|value| (name, value))).collect();
        if let Some(value) = named(&self.name) {
            // A neighbour of this host may set cookies for it, and cannot take away those that are there.
            if !pieces.is_empty() {
                return Some(Err("there is a whole cookie beside pieces of one"));
            }
            pieces.push((self.name.clone(), value));
        }
        let is_one_of_two =
            |(name, value): &(String, &str)| cookies.iter().any(|(known, other)| known == name && other != value);
        if pieces.iter().any(is_one_of_two) {
            return Some(Err("there are two cookies of one name"));
        }
        if pieces.is_empty() {
            return None;
        }
        let value: String = pieces.iter().map(|(_, value)| *value).collect();
        let cookie: Vec<String> = pieces.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let found = token(&value).map(|token| Found { token, cookie: Bearer::new(cookie.join("; ")) });
        Some(found.ok_or("the cookie holds no token"))
    }

    /// Whether a request may be believed to come from a page of ours.
    pub(super) fn lets(&self, method: &Method, headers: &HeaderMap) -> bool {
        if matches!(*method, Method::GET | Method::HEAD) {
            return true;
        }
        match self.pages.sender(headers) {
            // The host may be the same by another scheme, which anybody in between can speak for.
            Some(Sender::Own) => is_of_site(headers, &["same-origin"]) != Some(false),
            Some(sender) => sender != Sender::Foreign,
            None => is_of_site(headers, &["same-origin"]) == Some(true),
        }
    }
}

/// Whether a cookie may have this name.
pub(super) fn is_cookie_name(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// The cookies of a `Cookie` header (RFC 6265, section 5.4), without the quotes that a value may stand in.
fn pairs(header: &str) -> impl Iterator<Item = (&str, &str)> {
    header.split(';').filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        let inner = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        Some((name, inner.unwrap_or(value)))
    })
}

/// The token in a cookie's value: the value itself, or `access_token` of a session in JSON, or the first of a list. Such
/// JSON is percent-encoded, or base64url behind `base64-`.
fn token(value: &str) -> Option<String> {
    let text: Cow<'_, str> = match value.strip_prefix(BASE64) {
        Some(encoded) => {
            let bytes = URL_SAFE_NO_PAD.decode(encoded.trim_end_matches('=')).ok()?;
            Cow::Owned(String::from_utf8(bytes).ok()?)
        }
        None => percent_decode_str(value).decode_utf8().ok()?,
    };
    let token = match text.trim_start().starts_with(['{', '[']) {
        false if value.starts_with(BASE64) => return None,
        false => text.into_owned(),
        true => match json::value(&text).ok()? {
            Value::Object(session) => session.get("access_token")?.as_str()?.to_owned(),
            Value::Array(parts) => parts.first()?.as_str()?.to_owned(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        },
    };
    (!token.is_empty() && token.len() <= MAX_TOKEN_BYTES && token.bytes().all(|b| b.is_ascii_graphic()))
        .then_some(token)
}

#[cfg(test)]
mod tests {
    use axum::http::header::{HOST, ORIGIN};
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

    fn headers(rows: &[(HeaderName, &str)]) -> HeaderMap {
        rows.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn a_token_is_read_from_all_usual_sessions() {
        let tokens = CookieTokens::new("sb", &[]).unwrap();
        let encoded = URL_SAFE_NO_PAD.encode(r#"{"access_token":"a.b.c","user":{"id":1}}"#);
        let (first, rest) = encoded.split_at(20);
        let rows = [
            ("sb=a.b.c".to_owned(), Some("a.b.c"), "the token itself"),
            ("x=1; sb=\"a.b.c\"; y=2".to_owned(), Some("a.b.c"), "in quotes, among others"),
            (format!("sb=base64-{encoded}"), Some("a.b.c"), "a session in base64url"),
            (format!("sb=base64-{encoded}=="), Some("a.b.c"), "with padding"),
            (format!("sb.1={rest}; sb.0=base64-{first}"), Some("a.b.c"), "in pieces, in any order"),
            ("sb=%7B%22access_token%22%3A%22a.b.c%22%7D".to_owned(), Some("a.b.c"), "percent-encoded"),
            ("sb=%5B%22a.b.c%22%2Cnull%5D".to_owned(), Some("a.b.c"), "the first of a list"),
            ("sb=".to_owned(), None, "empty"),
            ("sb=base64-a.b.c".to_owned(), None, "no base64"),
            ("sb=%7B%22access_token%22%3A7%7D".to_owned(), None, "no text"),
            ("sb=a b".to_owned(), None, "a blank"),
            ("sb=%FF".to_owned(), None, "no UTF-8"),
            ("sb=a.b.c; sb=a.b.c".to_owned(), Some("a.b.c"), "twice the same"),
            ("sb=a.b.c; sb=e.v.e".to_owned(), None, "two of one name"),
            ("sb=e.v.e; sb.0=a.b; sb.1=.c".to_owned(), None, "one beside pieces"),
            ("sb.0=a.b; sb.1=.c; sb.1=.e".to_owned(), None, "two pieces of one name"),
        ];
        for (cookie, expected, reason) in rows {
            let found = tokens.find(&headers(&[(COOKIE, &cookie)])).unwrap().ok();
            assert_eq!(found.map(|found| found.token).as_deref(), expected, "{reason}");
        }
        for cookie in ["sc=a.b.c", "sb.1=a.b.c", ""] {
            assert!(tokens.find(&headers(&[(COOKIE, cookie)])).is_none(), "{cookie:?} is not the cookie");
        }
    }

    #[test]
    fn exactly_the_cookies_of_the_token_are_passed_on() {
        let tokens = CookieTokens::new("sb", &[]).unwrap();
        let found = tokens.find(&headers(&[(COOKIE, "other=1; sb.0=a.b; sb.1=.c; sb.3=x")])).unwrap().unwrap();
        assert_eq!((found.token.as_str(), found.cookie.expose()), ("a.b.c", "sb.0=a.b; sb.1=.c"));
    }

    #[test]
    fn a_write_needs_a_page_of_ours() {
        let listed = ["https://app.example".to_owned(), "*".to_owned()];
        let tokens = CookieTokens::new("sb", &listed).unwrap();
        let host = (HOST, "chat.example:8443");
        type Row<'a> = (&'a [(HeaderName, &'static str)], bool, &'static str);
        let rows: [Row<'_>; 10] = [
            (&[(ORIGIN, "https://chat.example:8443")], true, "its own origin"),
            (&[(ORIGIN, "http://CHAT.example:8443")], true, "by whatever scheme and case"),
            (
                &[(ORIGIN, "https://chat.example:8443"), (FETCH_SITE, "same-origin")],
                true,
                "and the browser says so too",
            ),
            (
                &[(ORIGIN, "http://chat.example:8443"), (FETCH_SITE, "cross-site")],
                false,
                "unless the browser says it is not",
            ),
            (&[(ORIGIN, "https://chat.example")], false, "another port"),
            (&[(ORIGIN, "https://app.example")], true, "a listed one"),
            (&[(ORIGIN, "https://evil.example")], false, "another site"),
            (&[(ORIGIN, "null")], false, "an opaque one"),
            (&[(FETCH_SITE, "same-origin")], true, "what the browser says without one"),
            (&[(FETCH_SITE, "same-site")], false, "a sibling"),
        ];
        for (rows, expected, reason) in rows {
            let headers = headers(&[rows, std::slice::from_ref(&host)].concat());
            assert_eq!(tokens.lets(&Method::POST, &headers), expected, "{reason}");
            assert!(tokens.lets(&Method::GET, &headers), "{reason}");
        }
        assert!(!tokens.lets(&Method::DELETE, &headers(&[host])), "nothing is said");
    }
}
