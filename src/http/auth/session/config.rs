//! `[auth.session]`: the application that gives tokens in exchange for its sessions.

use reqwest::header::HeaderName;
use serde::Deserialize;

use crate::http::auth::address::source;
use crate::http::auth::cookie::is_cookie_name;

/// 5 minutes: so long a session that was ended there may serve here.
const MAX_CACHE_S: u64 = 300;

/// A minute that a request waits at most.
const MAX_TIMEOUT_S: u64 = 60;

/// Headers that a page of another site can have sent with its visitor's cookie, that browsers or proxies set by themselves, or
/// that mean something else to the application: none of them shows which page has sent a request.
const TAKEN: [&str; 20] = [
    "authorization",
    "cache-control",
    "connection",
    "cookie",
    "date",
    "dnt",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "origin",
    "pragma",
    "range",
    "referer",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
];

/// The same, by how they begin.
const TAKEN_PREFIXES: [&str; 7] = ["accept", "access-control-", "content-", "if-", "proxy-", "sec-", "x-forwarded-"];

/// `[auth.session]`: front ends whose page is known by a session of their own application.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionConfig {
    /// The cookie with the session; empty is off.
    pub cookie: String,
    /// The application's route that gives a token for it.
    pub exchange_url: String,
    /// The header with the page's CSRF token.
    pub csrf_header: String,
    /// Seconds for which a token serves other requests of the same session; 0 is none.
    pub cache_s: u64,
    /// Seconds for an exchange.
    pub timeout_s: u64,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            cookie: String::new(),
            exchange_url: String::new(),
            csrf_header: "x-csrf-token".to_owned(),
            cache_s: 30,
            timeout_s: 5,
        }
    }
}

impl SessionConfig {
    /// The mistakes in it: key and reason.
    pub(in crate::http::auth) fn mistakes(&self) -> Vec<(&'static str, String)> {
        let mut mistakes = Vec::new();
        let mut wrong = |key, reason: &str| mistakes.push((key, reason.to_owned()));
        if !is_cookie_name(&self.cookie) {
            wrong("cookie", "has characters that no name of a cookie has");
        }
        match (self.cookie.as_str(), self.exchange_url.as_str()) {
            ("", "") => {}
            ("", _) => wrong("cookie", "is required with auth.session.exchange_url"),
            (_, "") => wrong("exchange_url", "is required with auth.session.cookie"),
            (_, url) => {
                if let Err(reason) = source(url) {
                    wrong("exchange_url", reason);
                }
            }
        }
        match HeaderName::from_bytes(self.csrf_header.as_bytes()) {
            Err(_) => wrong("csrf_header", "is no name of an http header"),
            Ok(name) => {
                let name = name.as_str();
                if TAKEN.contains(&name) || TAKEN_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
                    wrong("csrf_header", "must be a header of the pages' own: this one proves nothing");
                }
            }
        }
        if self.cache_s > MAX_CACHE_S {
            wrong("cache_s", &format!("must be at most {MAX_CACHE_S}"));
        }
        if !(1..=MAX_TIMEOUT_S).contains(&self.timeout_s) {
            wrong("timeout_s", &format!("must be 1 to {MAX_TIMEOUT_S}"));
        }
        mistakes
    }
}
