//! What a request to a backend presents, and that nothing of it comes back.

use std::borrow::Cow;

use reqwest::RequestBuilder;
use reqwest::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use super::config::{Credentials, NamedBackend};
use crate::chat::caller::{Bearer, Caller};
use crate::tools::secret::{Secret, header};

/// What stands in the place of a secret that a backend repeats.
const REDACTED: &str = "[redacted]";

/// The shortest secret of the settings that is looked for in answers, in bytes: a shorter one may be any word.
const LEAST_SECRET_BYTES: usize = 8;

/// Whose credentials the requests to one backend have, and its fixed headers.
#[derive(Debug, Clone)]
pub struct Access {
    credentials: Credentials,
    /// Whether the caller's cookie is sent beside the token.
    cookie: bool,
    headers: HeaderMap,
    /// The secrets of the settings.
    own: Vec<SecretString>,
}

impl Access {
    /// Presents the caller's token, and with `cookie` also the cookie that it came in.
    pub fn of_caller(cookie: bool) -> Self {
        Self { credentials: Credentials::Caller, cookie, headers: HeaderMap::new(), own: Vec::new() }
    }

    /// Presents what the settings of a named backend say. `cookie` is as for [`Self::of_caller`].
    pub fn named(config: &NamedBackend, cookie: bool) -> Self {
        let NamedBackend { credentials, api_key, headers, base_url: _, timeout_s: _ } = config;
        let mut access = Self { credentials: *credentials, ..Self::of_caller(cookie) };
        access.headers.extend(headers.iter().filter_map(|(name, value)| header(name, value).ok()));
        access.own.extend(headers.values().map(|value| value.0.clone()));
        if let Some(value) = bearer(api_key.expose()).filter(|_| !api_key.expose().is_empty()) {
            let Secret(key) = api_key;
            access.headers.insert(AUTHORIZATION, value);
            access.own.push(key.clone());
        }
        access
    }

    /// The headers of every request.
    pub(super) fn headers(&self) -> HeaderMap {
        self.headers.clone()
    }

    /// `builder` with what `caller` presents here.
    pub(super) fn present(&self, caller: &Caller, mut builder: RequestBuilder) -> RequestBuilder {
        let Presented { token, cookie } = self.presented(caller);
        if let Some(value) = token.and_then(|token| bearer(token.expose())) {
            builder = builder.header(AUTHORIZATION, value);
        }
        if let Some(mut value) = cookie.and_then(|cookie| HeaderValue::from_str(cookie.expose()).ok()) {
            value.set_sensitive(true);
            builder = builder.header(COOKIE, value);
        }
        builder
    }

    /// What the backend may repeat of a request of `caller`.
    pub(super) fn secrets(&self, caller: &Caller) -> Secrets {
        let Presented { token, cookie } = self.presented(caller);
        let callers = token.into_iter().chain(cookie).map(|secret| SecretString::from(secret.expose()));
        let is_long = |secret: &&SecretString| secret.expose_secret().len() >= LEAST_SECRET_BYTES;
        Secrets(callers.chain(self.own.iter().filter(is_long).cloned()).collect())
    }

    fn presented<'c>(&self, caller: &'c Caller) -> Presented<'c> {
        match self.credentials {
            Credentials::Caller => {
                Presented { token: Some(&caller.bearer), cookie: caller.cookie.as_ref().filter(|_| self.cookie) }
            }
            Credentials::None => Presented { token: None, cookie: None },
        }
    }
}

/// What of a caller is sent.
struct Presented<'c> {
    token: Option<&'c Bearer>,
    cookie: Option<&'c Bearer>,
}

/// The secrets of a request, none of which may reach a model or a transcript by a backend that repeats it.
#[derive(Clone)]
pub(super) struct Secrets(Vec<SecretString>);

impl Secrets {
    /// `text` without them.
    pub(super) fn removed<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.0.iter().map(ExposeSecret::expose_secret).fold(Cow::Borrowed(text), |text, secret| {
            match text.contains(secret) {
                true => Cow::Owned(text.replace(secret, REDACTED)),
                false => text,
            }
        })
    }
}

/// The value of `Authorization` for `token`; `None` where no header can carry it.
fn bearer(token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}
