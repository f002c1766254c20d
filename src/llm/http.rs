//! One POST to a vendor and the bytes that come back. Connecting, the first byte and every further byte each have their
//! own limit; the whole answer has none, since a good answer may be long.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use jiff::Timestamp;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url, redirect};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use tokio::time::{Instant, Sleep, sleep_until, timeout, timeout_at};

use super::failure;
use crate::agent::ports::llm::{ProviderError, ProviderErrorKind};

/// 10 s to connect: a vendor that needs longer is down.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// 10 s for the body of an error, which is small.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// 64 KiB of an error's body are read; only its message is kept.
const MAX_ERROR_BODY_BYTES: usize = 64 << 10;

/// A body while it comes; dropping it closes the connection.
pub(crate) type Body = BoxStream<'static, Result<Bytes, ProviderError>>;

/// How long a vendor may be silent; `None` is for ever.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Until the first byte of the answer: a local server may load its model first.
    pub(crate) first_byte: Option<Duration>,
    /// Between two pieces of the answer.
    pub(crate) idle: Option<Duration>,
}

/// Where a vendor is reached, and how. Has no `Debug`: its headers hold the key.
pub(crate) struct Endpoint {
    client: Client,
    url: Url,
    headers: HeaderMap,
    patience: Patience,
}

/// Why a provider cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is not an absolute HTTP URL.
    #[error("llm.{provider}.base_url is not an http or https address")]
    BaseUrl {
        /// Whose.
        provider: &'static str,
    },
    /// No model is named.
    #[error("llm.{provider}.model is empty")]
    Model {
        /// Whose.
        provider: &'static str,
    },
    /// A value cannot travel in a header.
    #[error("llm.{provider}.{key} has characters that no http header can carry")]
    Header {
        /// Whose.
        provider: &'static str,
        /// Which key of the configuration.
        key: &'static str,
    },
    /// The HTTP client could not be made.
    #[error("the http client could not be set up")]
    Client(#[source] reqwest::Error),
}

impl Endpoint {
    /// A client for `url`, which gets `headers` with every request.
    pub(crate) fn new(
        url: Url,
        accept: &'static str,
        mut headers: HeaderMap,
        patience: Patience,
    ) -> Result<Self, ConnectError> {
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        // A compressed stream may sit in a proxy's buffer until a block is full.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // A redirect could carry the key to another host.
        let client = Client::builder().redirect(redirect::Policy::none()).connect_timeout(CONNECT_TIMEOUT);
        let client = if is_loopback(&url) { client.no_proxy() } else { client };
        let client = client.build().map_err(ConnectError::Client)?;
        Ok(Self { client, url, headers, patience })
    }

    /// Sends `body` as JSON; the answer's bytes once its status is known to be a success.
    ///
    /// # Errors
    /// When there is no connection, no answer in time, or another status.
    pub(crate) async fn post(&self, body: &(impl Serialize + Sync)) -> Result<Body, ProviderError> {
        let json = serde_json::to_vec(body).map_err(|error| ProviderError::new(ProviderErrorKind::Rejected, error))?;
        // A time that no clock reaches is no limit.
        let deadline = self.patience.first_byte.and_then(|wait| Instant::now().checked_add(wait));
        let request = self.client.post(self.url.clone()).headers(self.headers.clone()).body(json);
        let sent = match deadline {
            Some(deadline) => timeout_at(deadline, request.send()).await.map_err(|_| timed_out("first byte"))?,
            None => request.send().await,
        };
        let response = sent.map_err(|error| {
            let retry_after = None;
            ProviderError::new(ProviderErrorKind::Unavailable { retry_after }, error.without_url())
        })?;
        if !response.status().is_success() {
            return Err(refusal(response).await);
        }
        Ok(body_of(response, deadline, self.patience.idle))
    }
}

/// `base` with `segments` behind its path; a trailing slash, a path prefix and a query of `base` stay right.
pub(crate) fn join(provider: &'static str, base: &str, segments: &[&str]) -> Result<Url, ConnectError> {
    let mut url = Url::parse(base.trim()).map_err(|_| ConnectError::BaseUrl { provider })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(ConnectError::BaseUrl { provider });
    }
    match url.path_segments_mut() {
        Ok(mut path) => path.pop_if_empty().extend(segments),
        Err(()) => return Err(ConnectError::BaseUrl { provider }),
    };
    Ok(url)
}

/// Adds the header `name` with `prefix` and the key, marked as secret; nothing when the key is empty.
pub(crate) fn add_key(
    headers: &mut HeaderMap,
    provider: &'static str,
    name: HeaderName,
    prefix: &str,
    key: &SecretString,
) -> Result<(), ConnectError> {
    let key = key.expose_secret().trim();
    if key.is_empty() {
        return Ok(());
    }
    let value = HeaderValue::from_str(&format!("{prefix}{key}"));
    let mut value = value.map_err(|_| ConnectError::Header { provider, key: "api_key" })?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(())
}

/// A proxy of the environment cannot reach this machine's own ports.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

fn timed_out(what: &'static str) -> ProviderError {
    ProviderError::new(ProviderErrorKind::TimedOut, format!("the {what} did not come in time"))
}

fn body_of(response: Response, first_byte: Option<Instant>, idle: Option<Duration>) -> Body {
    let alarm = Box::pin(sleep_until(first_byte.unwrap_or_else(Instant::now)));
    let incoming = Incoming { response, idle, deadline: first_byte, what: "first byte", alarm };
    stream::unfold(Some(incoming), async |incoming| {
        let mut incoming = incoming?;
        match incoming.chunk().await {
            Ok(Some(bytes)) => Some((Ok(bytes), Some(incoming))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    })
    .boxed()
}

/// A body while it comes. Its one timer is not set anew for every piece: when it rings, it looks whether the time is really up.
struct Incoming {
    response: Response,
    idle: Option<Duration>,
    /// When the next piece must be there.
    deadline: Option<Instant>,
    /// What it is, in words.
    what: &'static str,
    alarm: Pin<Box<Sleep>>,
}

impl Incoming {
    async fn chunk(&mut self) -> Result<Option<Bytes>, ProviderError> {
        let Self { response, idle, deadline, what, alarm } = self;
        loop {
            let chunk = tokio::select! {
                biased;
                chunk = response.chunk() => chunk,
                () = alarm.as_mut(), if deadline.is_some() => match *deadline {
                    Some(deadline) if Instant::now() < deadline => {
                        alarm.as_mut().reset(deadline);
                        continue;
                    }
                    Some(_) | None => return Err(timed_out(what)),
                },
            };
            *what = "next byte";
            *deadline = idle.and_then(|idle| Instant::now().checked_add(idle));
            // The first byte may have had longer than any later one has.
            if let Some(deadline) = deadline.filter(|deadline| *deadline < alarm.deadline()) {
                alarm.as_mut().reset(deadline);
            }
            return chunk.map_err(|error| ProviderError::new(ProviderErrorKind::Truncated, error.without_url()));
        }
    }
}

async fn refusal(mut response: Response) -> ProviderError {
    let mut body = Vec::new();
    // A body that does not come, or breaks off, leaves the status to speak for itself.
    let _ = timeout(ERROR_BODY_TIMEOUT, async {
        while let Ok(Some(chunk)) = response.chunk().await {
            let room = MAX_ERROR_BODY_BYTES - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if body.len() == MAX_ERROR_BODY_BYTES {
                break;
            }
        }
    })
    .await;
    failure::of_status(response.status(), response.headers(), &body, Timestamp::now())
}
