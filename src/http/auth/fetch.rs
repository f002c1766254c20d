//! Getting an issuer's keys: from its address, or from the one that its discovery document names. Bounded in bytes and
//! time, and never redirected. Nothing of ours is sent: keys are public, and no token goes there.

use std::time::Duration;

use futures::StreamExt;
use reqwest::header::ACCEPT;
use reqwest::{Client, RequestBuilder, Response};
use serde::Deserialize;
use url::Url;

use super::address::source;
use super::keys::KeySet;
use crate::bounded::address::is_loopback;
use crate::bounded::client::{self, Reach};
use crate::bounded::json;

/// 10 s for a whole answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// 5 s to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// 1 MiB of an answer; real ones have a few KiB.
const MAX_BYTES: usize = 1 << 20;

/// The path of the document below the issuer (OpenID Connect Discovery 1.0, section 4).
const DISCOVERY: &str = "/.well-known/openid-configuration";

/// The source of an issuer's keys.
pub(super) struct Source {
    /// Its `iss`.
    issuer: String,
    /// The address of its keys; `None`: from its discovery document.
    keys_at: Option<Url>,
}

/// Why there are no keys. The text names no address, which an operator knows and a log reader need not.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("the issuer cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    #[error("the issuer answered with http {0}")]
    Status(u16),
    #[error("the answer has more than {0} bytes")]
    TooLarge(usize),
    #[error("the discovery document cannot be read")]
    Discovery,
    #[error("the discovery document is of another issuer")]
    OtherIssuer,
    #[error("the discovery document's {0} {1}")]
    Address(&'static str, &'static str),
    #[error("the answer is no set of keys")]
    NoSet,
    #[error("none of the {} keys can be used: {}", .0.len(), .0.join("; "))]
    NoKeys(Vec<String>),
}

impl Source {
    /// The keys of `issuer`; with an empty `jwks_url` its discovery document says where they are.
    pub(super) fn new(issuer: &str, jwks_url: &str) -> Self {
        Self { issuer: issuer.to_owned(), keys_at: Url::parse(jwks_url).ok() }
    }

    /// The keys that can be used, at least one, and why others cannot. Where they are is asked each time: an issuer that moves them
    /// may leave the old ones where they were.
    ///
    /// # Errors
    /// See [`FetchError`].
    pub(super) async fn fetch(&self) -> Result<(KeySet, Vec<String>), FetchError> {
        let text = match &self.keys_at {
            Some(url) => get(url).await?,
            None => get(&Discovery::of(&self.issuer).await?.jwks_uri()?).await?,
        };
        let (keys, left_out) = KeySet::read(&text).ok_or(FetchError::NoSet)?;
        if keys.len() == 0 {
            return Err(FetchError::NoKeys(left_out));
        }
        Ok((keys, left_out))
    }
}

/// What an issuer says of itself (OpenID Connect Discovery 1.0, section 3), as far as it is used here.
#[derive(Deserialize)]
pub(super) struct Discovery {
    issuer: String,
    jwks_uri: Option<String>,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
    end_session_endpoint: Option<String>,
    /// Whether it was found on this machine.
    #[serde(skip)]
    is_near: bool,
}

impl Discovery {
    /// That of `issuer`.
    ///
    /// # Errors
    /// See [`FetchError`].
    pub(super) async fn of(issuer: &str) -> Result<Self, FetchError> {
        let url = format!("{}{DISCOVERY}", issuer.trim_end_matches('/'));
        let url = source(&url).map_err(|reason| FetchError::Address("place", reason))?;
        let document: Self = json::parse_bytes(&get(&url).await?).map_err(|_| FetchError::Discovery)?;
        // Section 4.3: it must be the very same text.
        match document.issuer == issuer {
            true => Ok(Self { is_near: is_loopback(&url), ..document }),
            false => Err(FetchError::OtherIssuer),
        }
    }

    fn jwks_uri(&self) -> Result<Url, FetchError> {
        self.address("jwks_uri", self.jwks_uri.as_deref())
    }

    /// Where users sign in.
    pub(super) fn authorization(&self) -> Result<Url, FetchError> {
        self.address("authorization_endpoint", self.authorization_endpoint.as_deref())
    }

    /// Where codes become tokens.
    pub(super) fn token(&self) -> Result<Url, FetchError> {
        self.address("token_endpoint", self.token_endpoint.as_deref())
    }

    /// Where users sign out, if they can (OpenID Connect RP-Initiated Logout 1.0).
    pub(super) fn end_session(&self) -> Result<Option<Url>, FetchError> {
        let address = self.end_session_endpoint.as_deref();
        address.map(|text| self.address("end_session_endpoint", Some(text))).transpose()
    }

    fn address(&self, key: &'static str, text: Option<&str>) -> Result<Url, FetchError> {
        let url = text.ok_or("is missing").and_then(source).map_err(|reason| FetchError::Address(key, reason))?;
        // A document of another machine must not lead to this one's own ports.
        match is_loopback(&url) && !self.is_near {
            true => Err(FetchError::Address(key, "leads to this machine")),
            false => Ok(url),
        }
    }
}

/// A client for `url` alone, which is never redirected. It keeps no connection: one fetch in five minutes is no reason to, and
/// one that is kept may be closed by the other side just as a `POST` goes out.
pub(super) fn client(url: &Url) -> Result<Client, FetchError> {
    let mut builder = client::builder(Reach::Private)
        .retry(reqwest::retry::never())
        .pool_max_idle_per_host(0)
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(TIMEOUT);
    if is_loopback(url) {
        // A proxy of the environment cannot reach this machine's own ports.
        builder = builder.no_proxy();
    }
    builder.build().map_err(unreachable)
}

pub(super) fn unreachable(error: reqwest::Error) -> FetchError {
    FetchError::Unreachable(error.without_url())
}

async fn get(url: &Url) -> Result<Vec<u8>, FetchError> {
    answer(client(url)?.get(url.clone()).header(ACCEPT, "application/json"), MAX_BYTES).await
}

/// The body of a good answer, of at most `max_bytes`.
///
/// # Errors
/// See [`FetchError`].
pub(super) async fn answer(request: RequestBuilder, max_bytes: usize) -> Result<Vec<u8>, FetchError> {
    let response = request.send().await.map_err(unreachable)?;
    match response.status().as_u16() {
        200 => read(response, max_bytes).await,
        status => Err(FetchError::Status(status)),
    }
}

/// The body of `response`, of at most `max_bytes`.
///
/// # Errors
/// See [`FetchError`].
pub(super) async fn read(response: Response, max_bytes: usize) -> Result<Vec<u8>, FetchError> {
    let (mut body, mut chunks) = (Vec::new(), response.bytes_stream());
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(unreachable)?;
        if body.len() + chunk.len() > max_bytes {
            return Err(FetchError::TooLarge(max_bytes));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
