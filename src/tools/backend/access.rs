//! What a request to a backend presents.

use std::sync::Arc;

use reqwest::RequestBuilder;
use reqwest::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use super::asking::Asker;
use super::config::{Credentials, NamedBackend, token_url};
use super::error::NoToken;
use super::issued::{Issued, Issuer};
use super::secrets::{LEAST_SECRET_BYTES, Secrets};
use crate::chat::caller::{Bearer, Caller};
use crate::tools::secret::{Secret, header};

/// Whose credentials the requests to one backend have, and its fixed headers.
#[derive(Debug, Clone)]
pub struct Access {
    credentials: Credentials,
    /// Whether the caller's cookie is sent beside the token.
    cookie: bool,
    headers: HeaderMap,
    /// The secrets of the settings.
    own: Vec<SecretString>,
    /// Who gives the tokens of requests, where they are neither the caller's nor of the settings.
    issuer: Option<Arc<Issuer>>,
}

impl Access {
    /// Presents the caller's token, and with `cookie` also the cookie that it came in.
    pub fn of_caller(cookie: bool) -> Self {
        Self { credentials: Credentials::Caller, cookie, headers: HeaderMap::new(), own: Vec::new(), issuer: None }
    }

    /// Presents what the settings of the backend `name` say. `cookie` is as for [`Self::of_caller`], and `now_ms` tells the
    /// time in milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// When the TLS setup fails.
    pub fn named(
        (name, config): (&str, &NamedBackend),
        cookie: bool,
        now_ms: fn() -> i64,
    ) -> Result<Self, reqwest::Error> {
        let NamedBackend { credentials, api_key, headers, token_url: at, .. } = config;
        let mut access = Self { credentials: *credentials, ..Self::of_caller(cookie) };
        access.headers.extend(headers.iter().filter_map(|(name, value)| header(name, value).ok()));
        // Also without the scheme that stands before a key: a backend may repeat the key alone.
        access.own.extend(headers.values().flat_map(|value| {
            let bare = value.expose().rsplit_once(' ').map(|(_, bare)| SecretString::from(bare));
            bare.into_iter().chain([value.0.clone()])
        }));
        if let Some(value) = bearer(api_key.expose()).filter(|_| !api_key.expose().is_empty()) {
            let Secret(key) = api_key;
            access.headers.insert(AUTHORIZATION, value);
            access.own.push(key.clone());
        }
        if let Some(at) = token_url(at).zip(credentials.grant()) {
            access.issuer = Some(Arc::new(Issuer::new(Asker::new((name, config), at, now_ms)?)));
            access.own.push(config.client_secret.0.clone());
        }
        Ok(access)
    }

    /// Whose credentials a request has.
    pub(super) fn credentials(&self) -> Credentials {
        self.credentials
    }

    /// Whether a request has its caller's own token.
    pub(super) fn is_of_caller(&self) -> bool {
        self.credentials == Credentials::Caller
    }

    /// The headers of every request.
    pub(super) fn headers(&self) -> HeaderMap {
        self.headers.clone()
    }

    /// What the requests of `caller` have here.
    ///
    /// # Errors
    /// When there is no token to be had for them now.
    pub(super) async fn presented<'c>(&self, caller: &'c Caller) -> Result<Presented<'c>, NoToken> {
        let is_callers = self.is_of_caller();
        let issued = match &self.issuer {
            None => None,
            Some(issuer) => Some(issuer.token(caller).await?),
        };
        Ok(Presented {
            token: Some(&caller.bearer).filter(|_| is_callers),
            cookie: caller.cookie.as_ref().filter(|_| is_callers && self.cookie),
            issued,
        })
    }

    /// The same with another token than the one of `refused`; `None` where there is no other, or not so soon again.
    ///
    /// # Errors
    /// When there is none to be had now.
    pub(super) async fn presented_anew<'c>(
        &self,
        caller: &'c Caller,
        refused: &Presented<'c>,
    ) -> Result<Option<Presented<'c>>, NoToken> {
        let Some((issuer, issued)) = self.issuer.as_ref().zip(refused.issued.as_ref()) else { return Ok(None) };
        let issued = issuer.fresh(caller, issued).await?;
        Ok(issued.map(|issued| Presented { token: None, cookie: None, issued: Some(issued) }))
    }

    /// `builder` with that.
    pub(super) fn present(presented: &Presented<'_>, mut builder: RequestBuilder) -> RequestBuilder {
        let Presented { token, cookie, issued } = presented;
        let issued = issued.as_ref().map(|issued| issued.token.expose_secret());
        if let Some(value) = token.map(Bearer::expose).or(issued).and_then(bearer) {
            builder = builder.header(AUTHORIZATION, value);
        }
        if let Some(mut value) = cookie.and_then(|cookie| HeaderValue::from_str(cookie.expose()).ok()) {
            value.set_sensitive(true);
            builder = builder.header(COOKIE, value);
        }
        builder
    }

    /// What the backend may repeat of a request that has this.
    pub(super) fn secrets(&self, presented: &Presented<'_>) -> Secrets {
        let Presented { token, cookie, issued } = presented;
        let callers = token.iter().chain(cookie).map(|secret| SecretString::from(secret.expose()));
        let callers = callers.chain(issued.iter().map(|issued| issued.token.clone()));
        let is_long = |secret: &&SecretString| secret.expose_secret().len() >= LEAST_SECRET_BYTES;
        callers.chain(self.own.iter().filter(is_long).cloned()).collect()
    }
}

/// What a request has: something of its caller, or a token that was given for them.
#[derive(Default)]
pub(super) struct Presented<'c> {
    token: Option<&'c Bearer>,
    cookie: Option<&'c Bearer>,
    issued: Option<Arc<Issued>>,
}

/// The value of `Authorization` for `token`; `None` where no header can carry it.
fn bearer(token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}
