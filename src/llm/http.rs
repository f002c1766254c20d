//! One POST to a vendor and the bytes that come back. Connecting, the first byte and every further byte each have their
//! own limit; the whole answer has none, since a good answer may be long.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use jiff::Timestamp;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
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

/// 30 s between two signs of life on a connection: less than what routers and proxies keep a silent one for.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// 10 s between signs of life that nobody answers: after three of them, a minute in all, the other end is gone. Bytes that
/// nobody acknowledges are given 30 s, as `reqwest` has it.
const UNANSWERED: Duration = Duration::from_secs(10);

/// 8 bytes: a shorter key (`ollama`, `EMPTY`) or value of a header is no secret, and would be found in any sentence.
const MIN_SECRET_BYTES: usize = 8;

/// A body while it comes; dropping it closes the connection.
pub(crate) type Body = BoxStream<'static, Result<Bytes, ProviderError>>;

/// How long a vendor may be silent; `None` is for ever.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Until the first byte of the answer: a local server may load its model first.
    pub(crate) first_byte: Option<Duration>,
    /// Between two pieces of the body, pings included.
    pub(crate) idle: Option<Duration>,
    /// Between two pieces of the answer, however many pings come.
    pub(crate) progress: Option<Duration>,
}

/// What all providers share: the HTTP clients, whose connections are kept and used again, and the limits of time.
pub(crate) struct Net {
    /// For this machine's own ports, which a proxy of the environment cannot reach.
    direct: Client,
    /// Honours the usual proxy variables.
    proxied: Client,
    pub(crate) patience: Patience,
}

/// Where a vendor is reached, and how. Has no `Debug`: it holds secrets.
pub(crate) struct Endpoint {
    client: Client,
    url: Url,
    headers: HeaderMap,
    secrets: Secrets,
    patience: Patience,
}

/// What must not appear in any error: the key, and the values of other headers that are marked as secret.
pub(crate) type Secrets = Arc<[SecretString]>;

/// An answer that has begun.
pub(crate) struct Opened {
    /// Its bytes.
    pub(crate) body: Body,
    /// What they are, where that is not the media type that was asked for.
    pub(crate) media_type: Option<String>,
    /// What the vendor calls the request.
    pub(crate) request_id: Option<String>,
    /// What must not appear in its errors either.
    pub(crate) secrets: Secrets,
}

/// Why a provider cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is not an absolute HTTP URL.
    #[error("{section}.base_url is not an http or https address")]
    BaseUrl {
        /// Where in the configuration.
        section: String,
    },
    /// There is no provider of that name.
    #[error("{name:?} is not a provider")]
    Provider {
        /// The name.
        name: String,
    },
    /// A value cannot travel in a header.
    #[error("{section}.{key} has characters that no http header can carry")]
    Header {
        /// Where in the configuration.
        section: String,
        /// Which key of the section.
        key: &'static str,
    },
    /// A header or a field that the operator has added cannot be sent.
    #[error("{section}.{key} {reason}")]
    Extra {
        /// Where in the configuration.
        section: String,
        /// Which key of the section.
        key: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The HTTP client could not be made.
    #[error("the http client could not be set up")]
    Client(#[source] reqwest::Error),
}

/// Connections to one vendor that are kept for the next turns after a rush; each is a file descriptor.
const IDLE_CONNECTIONS: usize = 32;

impl Net {
    /// Clients whose answers may be silent as long as `patience` says.
    pub(crate) fn new(patience: Patience) -> Result<Self, ConnectError> {
        let client = || {
            Client::builder()
                // A redirect could carry the key to another host.
                .redirect(redirect::Policy::none())
                .connect_timeout(CONNECT_TIMEOUT)
                .tcp_keepalive(KEEP_ALIVE)
                .tcp_keepalive_interval(UNANSWERED)
                .tcp_keepalive_retries(3)
                .pool_max_idle_per_host(IDLE_CONNECTIONS)
                // A connection of HTTP/2 carries many turns; one that died silently must not take them all with it.
                .http2_keep_alive_interval(KEEP_ALIVE)
                .http2_keep_alive_timeout(CONNECT_TIMEOUT)
        };
        let direct = client().no_proxy().build().map_err(ConnectError::Client)?;
        Ok(Self { direct, proxied: client().build().map_err(ConnectError::Client)?, patience })
    }
}

impl Endpoint {
    /// Where `url` is asked, with `headers` and whatever [`Endpoint::with_key`] adds.
    pub(crate) fn new(net: &Net, url: Url, accept: &'static str, mut headers: HeaderMap) -> Self {
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        // A compressed stream may sit in a proxy's buffer until a block is full.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let client = if is_loopback(&url) { net.direct.clone() } else { net.proxied.clone() };
        let values = headers.values().filter(|value| value.is_sensitive());
        // Behind a scheme (`Bearer …`) stands what a vendor would repeat alone.
        let texts = values.filter_map(|value| value.to_str().ok());
        let texts = texts.flat_map(|text| [text, text.rsplit(' ').next().unwrap_or(text)]);
        let secrets = texts.filter(|text| text.len() >= MIN_SECRET_BYTES).map(SecretString::from).collect();
        Self { client, url, headers, secrets, patience: net.patience }
    }

    /// Adds the header `name` with `prefix` and the key, marked as secret; nothing when the key is empty.
    pub(crate) fn with_key(
        mut self,
        section: &str,
        name: HeaderName,
        prefix: &str,
        key: &SecretString,
    ) -> Result<Self, ConnectError> {
        let text = key.expose_secret().trim();
        if text.is_empty() {
            return Ok(self);
        }
        let value = HeaderValue::from_str(&format!("{prefix}{text}"));
        let mut value = value.map_err(|_| ConnectError::Header { section: section.to_owned(), key: "api_key" })?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        let secret = (text.len() >= MIN_SECRET_BYTES).then(|| SecretString::from(text));
        self.secrets = self.secrets.iter().cloned().chain(secret).collect();
        Ok(self)
    }

    /// With another patience than all others have.
    pub(crate) fn with_patience(self, patience: Patience) -> Self {
        Self { patience, ..self }
    }

    /// Sends `body` as JSON; the answer's bytes once its status is known to be a success.
    ///
    /// # Errors
    /// When there is no connection, no answer in time, or another status.
    pub(crate) async fn post(&self, body: &(impl Serialize + Sync)) -> Result<Opened, ProviderError> {
        self.try_post(body).await.map_err(|error| failure::cleaned(error, &self.secrets))
    }

    async fn try_post(&self, body: &(impl Serialize + Sync)) -> Result<Opened, ProviderError> {
        let json = serde_json::to_vec(body).map_err(|error| ProviderError::new(ProviderErrorKind::Rejected, error))?;
        // A time that no clock reaches is no limit.
        let deadline = self.patience.first_byte.and_then(|wait| Instant::now().checked_add(wait));
        let request = self.client.post(self.url.clone()).headers(self.headers.clone()).body(json);
        let sent = match deadline {
            Some(deadline) => timeout_at(deadline, request.send()).await.map_err(|_| timed_out("first byte"))?,
            None => request.send().await,
        };
        let response = sent.map_err(|error| {
            // Whoever does not even answer the call has cost the user 10 s: that is not done again.
            let kind = match error.is_connect() && error.is_timeout() {
                true => ProviderErrorKind::TimedOut,
                false => ProviderErrorKind::Unavailable { retry_after: None },
            };
            ProviderError::new(kind, error.without_url())
        })?;
        if !response.status().is_success() {
            return Err(refusal(response).await);
        }
        let media_type = self.other_type(response.headers())?;
        let request_id = failure::request_id(response.headers(), &self.secrets);
        Ok(Opened {
            body: body_of(response, deadline, self.patience.idle),
            media_type,
            request_id,
            secrets: Arc::clone(&self.secrets),
        })
    }

    /// The media type of a success with `headers`, where it is not the one that was asked for. Servers say anything of
    /// a good stream, so only what cannot be one is refused: a page, and what this client cannot unpack.
    fn other_type(&self, headers: &HeaderMap) -> Result<Option<String>, ProviderError> {
        let value = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().trim();
        let encoding = value(CONTENT_ENCODING);
        if !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity") {
            let detail = format!("the answer is encoded as {encoding}, which was not asked for");
            return Err(ProviderError::new(ProviderErrorKind::Malformed, detail));
        }
        let media_type = value(CONTENT_TYPE).split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if media_type == "text/html" {
            return Err(not_a_stream(&media_type));
        }
        let is_other = !media_type.is_empty() && self.headers.get(ACCEPT).is_none_or(|asked| *asked != *media_type);
        Ok(is_other.then_some(media_type))
    }
}

/// The error of a success whose body is something else, as `what` says.
pub(crate) fn not_a_stream(what: &str) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Malformed, format!("the answer is {what}, not an event stream"))
}

/// `base` with `segments` behind its path; a trailing slash, a path prefix and a query of `base` stay right.
pub(crate) fn join(section: &str, base: &str, segments: &[&str]) -> Result<Url, ConnectError> {
    let unusable = || ConnectError::BaseUrl { section: section.to_owned() };
    let mut url = Url::parse(base.trim()).map_err(|_| unusable())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(unusable());
    }
    match url.path_segments_mut() {
        Ok(mut path) => path.pop_if_empty().extend(segments),
        Err(()) => return Err(unusable()),
    };
    Ok(url)
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
    // Of the response only its bytes are kept: its headers have been read.
    let bytes = Some(response.bytes_stream());
    Incoming { bytes, idle, deadline: first_byte, what: "first byte", alarm }.boxed()
}

/// A body while it comes. Its one timer is not set anew for every piece: when it rings, it looks whether the time is
/// really up.
struct Incoming<S> {
    /// `None` once it has failed.
    bytes: Option<S>,
    idle: Option<Duration>,
    /// When the next piece must be there.
    deadline: Option<Instant>,
    /// What it is, in words.
    what: &'static str,
    alarm: Pin<Box<Sleep>>,
}

impl<S: Stream<Item = reqwest::Result<Bytes>> + Unpin> Stream for Incoming<S> {
    type Item = Result<Bytes, ProviderError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { bytes, idle, deadline, what, alarm } = self.get_mut();
        let Some(coming) = bytes else { return Poll::Ready(None) };
        if let Poll::Ready(next) = coming.poll_next_unpin(cx) {
            *what = "next byte";
            *deadline = idle.and_then(|idle| Instant::now().checked_add(idle));
            // The first byte may have had longer than any later one has.
            if let Some(deadline) = deadline.filter(|deadline| *deadline < alarm.deadline()) {
                alarm.as_mut().reset(deadline);
            }
            let Some(Err(error)) = next else { return Poll::Ready(next.map(|next| next.map_err(broken))) };
            *bytes = None;
            return Poll::Ready(Some(Err(broken(error))));
        }
        while let Some(deadline) = *deadline {
            ready!(alarm.as_mut().poll(cx));
            if Instant::now() >= deadline {
                *bytes = None;
                return Poll::Ready(Some(Err(timed_out(what))));
            }
            alarm.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

/// The error of a body that broke off.
fn broken(error: reqwest::Error) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Truncated, error.without_url())
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
    failure::of_status(response.status(), response.headers(), &body, response.url(), Timestamp::now())
}
