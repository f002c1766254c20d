//! A session's cookie in exchange for a token, where a request has no `Authorization`: for front ends whose pages are known
//! to their application by a cookie and a CSRF token alone.
//!
//! **Invariant:** a cookie counts for a request that may change something only with a CSRF token, and only when the browser
//! does not say that a page of another site has sent it; whether that token is good, the application decides. **Invariant:**
//! cookie and CSRF token are sent to its one address alone, and the token that comes back goes nowhere else than one that
//! came in `Authorization`; the page never gets it.

mod config;
mod exchange;

use std::sync::Arc;
use std::time::Duration;

use axum::http::header::COOKIE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::exchange::{Exchange, KnownSessions};
use super::AuthSetupError;
use super::address::source;
use super::fetch;
use super::origin::{Pages, Sender, is_of_site};
use crate::agent::ports::clock::Clock;
use crate::agent::ports::identity::{AuthError, Authenticator};
use crate::chat::caller::Caller;
use crate::http::code::Code;
use crate::http::problem::Problem;

pub use config::SessionConfig;

/// 8 KiB of a cookie's value, and of a CSRF token; browsers keep cookies of 4 KiB.
const MAX_BYTES: usize = 8 * 1024;

/// Knows callers by the sessions of their application.
pub struct SessionTokens {
    cookie: String,
    csrf_header: HeaderName,
    pages: Pages,
    exchange: Arc<Exchange>,
}

/// What a request shows of its session.
struct Session {
    /// The `Cookie` header with that cookie alone, as it came.
    cookie: HeaderValue,
    /// The CSRF token, as it came.
    csrf: Option<HeaderValue>,
    /// Whether the request may change something: then the application has to look at the CSRF token.
    is_write: bool,
    method: Method,
    /// Path and query.
    uri: Option<HeaderValue>,
}

/// Why a session says nothing.
#[derive(Debug, Clone)]
pub(super) enum Refused {
    /// It is none, or over.
    NoSession(&'static str),
    /// Another site may have sent the request.
    Csrf(&'static str),
    /// What was given for it is no good token.
    Token(AuthError),
    /// Nothing that could be understood was said of it.
    Unavailable(&'static str),
}

impl SessionTokens {
    /// What `config` asks for; `None` where it names no cookie. `origins` are those of `server.cors_allowed_origins`.
    ///
    /// # Errors
    /// When the TLS setup fails.
    pub fn from_config(
        config: &SessionConfig,
        origins: &[String],
        authenticator: Arc<dyn Authenticator>,
        clock: Arc<dyn Clock>,
    ) -> Result<Option<Self>, AuthSetupError> {
        let csrf_header = HeaderName::from_bytes(config.csrf_header.as_bytes()).ok();
        let (false, Ok(url), Some(csrf_header)) = (config.cookie.is_empty(), source(&config.exchange_url), csrf_header)
        else {
            return Ok(None);
        };
        let client = fetch::client(&url).map_err(|error| AuthSetupError::Client(Box::new(error)))?;
        let exchange = Exchange {
            client,
            url,
            csrf_header: csrf_header.clone(),
            serves: Duration::from_secs(config.cache_s),
            patience: Duration::from_secs(config.timeout_s),
            clock,
            authenticator,
            known: KnownSessions::none(),
            asking: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        let (cookie, pages) = (config.cookie.clone(), Pages::new(origins));
        Ok(Some(Self { cookie, csrf_header, pages, exchange: Arc::new(exchange) }))
    }

    /// The caller of a request without `Authorization`; `None` where it has no session either.
    ///
    /// # Errors
    /// See [`Refused`].
    pub(super) async fn caller(&self, parts: &Parts) -> Result<Option<Caller>, Refused> {
        match self.find(parts)? {
            Some(session) => self.exchange.caller(session).await.map(Some),
            None => Ok(None),
        }
    }

    /// Ends what is being asked, and waits for that.
    pub async fn close(&self) {
        self.exchange.close().await;
    }

    fn find(&self, parts: &Parts) -> Result<Option<Session>, Refused> {
        let headers = &parts.headers;
        let Some(value) = self.value(headers)? else { return Ok(None) };
        let csrf = self.csrf(headers)?;
        let is_write = !matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS);
        if is_write {
            if csrf.is_none() {
                return Err(Refused::Csrf("a request with a session's cookie needs its CSRF token"));
            }
            if !self.lets(headers) {
                return Err(Refused::Csrf("a session's cookie counts only for requests of this site's own pages"));
            }
        }
        let header = [self.cookie.as_bytes(), b"=", value].concat();
        let mut cookie =
            HeaderValue::from_bytes(&header).map_err(|_| Refused::NoSession("the cookie cannot be read"))?;
        cookie.set_sensitive(true);
        let uri = parts.uri.path_and_query().and_then(|uri| HeaderValue::from_bytes(uri.as_str().as_bytes()).ok());
        Ok(Some(Session { cookie, csrf, is_write, method: parts.method.clone(), uri }))
    }

    /// The cookie's value as it stands, with its quotes if it has any. Two that differ say nothing: whoever can set cookies for
    /// a whole domain could have put one of them there.
    fn value<'a>(&self, headers: &'a HeaderMap) -> Result<Option<&'a [u8]>, Refused> {
        let pairs = headers.get_all(COOKIE).iter().flat_map(|header| header.as_bytes().split(|byte| *byte == b';'));
        let mut values = pairs.filter_map(|pair| {
            let value = pair.trim_ascii().strip_prefix(self.cookie.as_bytes())?.strip_prefix(b"=")?;
            Some(value).filter(|value| !value.is_empty())
        });
        let Some(value) = values.next() else { return Ok(None) };
        if values.any(|other| other != value) {
            return Err(Refused::NoSession("there are two cookies of the session's name"));
        }
        if value.len() > MAX_BYTES {
            return Err(Refused::NoSession("the session's cookie is too long"));
        }
        Ok(Some(value))
    }

    /// The CSRF token; an empty one is none.
    fn csrf(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, Refused> {
        let mut values = headers.get_all(&self.csrf_header).iter();
        let first = values.next();
        if values.next().is_some() {
            return Err(Refused::Csrf("there are two CSRF tokens"));
        }
        let Some(token) = first.filter(|token| !token.is_empty()) else { return Ok(None) };
        if token.len() > MAX_BYTES {
            return Err(Refused::Csrf("the CSRF token is too long"));
        }
        let mut token = token.clone();
        token.set_sensitive(true);
        Ok(Some(token))
    }

    /// Whether nothing that the browser says speaks against a page of ours.
    fn lets(&self, headers: &HeaderMap) -> bool {
        match self.pages.sender(headers) {
            Some(Sender::Listed) => true,
            Some(Sender::Foreign) => false,
            Some(Sender::Own) | None => is_of_site(headers, &["same-origin", "none"]) != Some(false),
        }
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::NoSession(detail) => Self::no_token(detail),
            Refused::Csrf(detail) => Self::csrf_failed(detail),
            Refused::Token(error) => error.into(),
            Refused::Unavailable(detail) => Self::unavailable(Code::SessionUnavailable, detail),
        }
    }
}
