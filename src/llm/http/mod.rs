//! One POST to a vendor and the bytes that come back. Connecting, the first byte and every further byte each have their
//! own limit; the whole answer has none, since a good answer may be long.
//!
//! - `client`: who carries a request
//! - `json`: its body
//! - `body`: the bytes of an answer, and how long they may take

mod body;
mod client;
mod json;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Url;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use tokio::time::{Instant, timeout_at};

pub(crate) use self::body::Body;
use self::client::Clients;
use self::json::JsonBody;
pub(crate) use self::json::embed;
use super::failure;
use crate::agent::ports::llm::{ProviderError, ProviderErrorKind};

/// 10 s to connect: a vendor that needs longer is down.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// 30 s between two signs of life on a connection: less than what routers and proxies keep a silent one for.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// 10 s between keep-alive probes: after three of them without an answer, a minute in all, the other end is gone.
const UNANSWERED: Duration = Duration::from_secs(10);

/// See [`UNANSWERED`].
const UNANSWERED_TIMES: u32 = 3;

/// Connections to one vendor that are kept for the next turns after a rush; each is a file descriptor.
const IDLE_CONNECTIONS: usize = 32;

/// 8 bytes: a shorter key (`ollama`, `EMPTY`) or value of a header is no secret, and would be found in any sentence.
const MIN_SECRET_BYTES: usize = 8;

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

impl Patience {
    /// The same for a server that is silent while its model works: between two pieces no less than until the first. Where either
    /// limit is off there is none.
    pub(crate) fn with_silence(self) -> Self {
        let idle = self.idle.zip(self.first_byte).map(|(idle, first_byte)| idle.max(first_byte));
        Self { idle, ..self }
    }
}

/// What all providers share: the HTTP clients, whose connections are kept and used again, the limits of time, and what signs
/// requests.
pub(crate) struct Net {
    clients: Clients,
    pub(crate) patience: Patience,
    /// By their regions: who this server is to AWS is one for the whole configuration.
    signers: Mutex<BTreeMap<String, Arc<dyn Sign>>>,
}

/// A vendor's address, headers and client. Has no `Debug`: it holds secrets.
#[derive(Clone)]
pub(crate) struct Endpoint {
    client: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    secrets: Secrets,
    patience: Patience,
    signer: Option<Arc<dyn Sign>>,
}

/// Signs requests, where no key in a header says who asks.
#[async_trait]
pub(crate) trait Sign: Send + Sync {
    /// `headers`, with those that sign a POST to `url` of a body with the SHA-256 `digest`.
    ///
    /// # Errors
    /// When there is nothing to sign with.
    async fn sign(&self, url: &Url, headers: HeaderMap, digest: &[u8]) -> Result<HeaderMap, ProviderError>;
}

/// What must not appear in any error: the key, and the values of other headers that are marked as secret.
pub(crate) type Secrets = Arc<[SecretString]>;

/// An answer that has begun.
pub(crate) struct Opened {
    /// Its bytes.
    pub(crate) body: Body,
    /// Their media type, where it differs from `Accept`.
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
        /// Its section of the configuration.
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
        /// Its section of the configuration.
        section: String,
        /// Which key of the section.
        key: &'static str,
    },
    /// A setting that only the vendor knows cannot be used, such as a header that the operator has added.
    #[error("{section}.{key} {reason}")]
    Extra {
        /// Its section of the configuration.
        section: String,
        /// Which key of the section.
        key: String,
        /// The mistake in it.
        reason: Cow<'static, str>,
    },
    /// The HTTP client could not be made.
    #[error("the http client could not be set up")]
    Client(#[source] reqwest::Error),
}

impl Net {
    /// Clients whose answers may be silent as long as `patience` says.
    pub(crate) fn new(patience: Patience) -> Result<Self, ConnectError> {
        Ok(Self { clients: Clients::new()?, patience, signers: Mutex::default() })
    }

    /// What signs requests to `region`: the one that is there already, or the one that `make` makes. It has credentials, which are
    /// fetched once for all who share it.
    ///
    /// # Errors
    /// As `make`.
    pub(crate) fn signer(
        &self,
        region: &str,
        make: impl FnOnce() -> Result<Arc<dyn Sign>, ConnectError>,
    ) -> Result<Arc<dyn Sign>, ConnectError> {
        let mut signers = self.signers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(signer) = signers.get(region) {
            return Ok(Arc::clone(signer));
        }
        let signer = make()?;
        signers.insert(region.to_owned(), Arc::clone(&signer));
        Ok(signer)
    }
}

impl Endpoint {
    /// Requests to `url`, with `headers` and whatever [`Endpoint::with_key`] adds.
    pub(crate) fn new(net: &Net, url: Url, accept: &'static str, mut headers: HeaderMap) -> Self {
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        // A compressed stream may sit in a proxy's buffer until a block is full.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let (url, user) = net.clients.without_user(url);
        if let Some(user) = user {
            headers.entry(AUTHORIZATION).or_insert(user);
        }
        let secrets = secrets_in(&headers).collect();
        Self { client: net.clients.for_url(&url), url, headers, secrets, patience: net.patience, signer: None }
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

    /// With each request signed.
    pub(crate) fn with_signer(self, signer: Arc<dyn Sign>) -> Self {
        Self { signer: Some(signer), ..self }
    }

    /// With `more` headers, such as those that credentials give for a while. Those that are marked as secret appear in no
    /// error.
    pub(crate) fn with_headers(mut self, more: HeaderMap) -> Self {
        self.secrets = self.secrets.iter().cloned().chain(secrets_in(&more)).collect();
        self.headers.extend(more);
        self
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
        let json = JsonBody::new(body).map_err(|error| ProviderError::new(ProviderErrorKind::Rejected, error))?;
        // A time that no clock reaches is no limit.
        let deadline = self.patience.first_byte.and_then(|wait| Instant::now().checked_add(wait));
        // What signs a request is as secret as a key.
        let signed = match &self.signer {
            Some(signer) => {
                let headers = signer.sign(&self.url, self.headers.clone(), &json.digest()).await;
                let headers = headers.map_err(|error| failure::cleaned(error, &self.secrets))?;
                Some(self.clone().with_headers(headers))
            }
            None => None,
        };
        let endpoint = signed.as_ref().unwrap_or(self);
        endpoint.try_post(json, deadline).await.map_err(|error| failure::cleaned(error, &endpoint.secrets))
    }

    async fn try_post(&self, json: JsonBody, deadline: Option<Instant>) -> Result<Opened, ProviderError> {
        // On the heap, which is freed when the head is there.
        let posted = Box::pin(client::post(&self.client, &self.url, self.headers.clone(), json));
        let answer = match deadline {
            Some(deadline) => timeout_at(deadline, posted).await.map_err(|_| body::timed_out("first byte"))?,
            None => posted.await,
        }?;
        if !answer.status().is_success() {
            return Err(body::refusal(answer, &self.url).await);
        }
        let media_type = self.other_type(answer.headers())?;
        let request_id = failure::request_id(answer.headers(), &self.secrets);
        Ok(Opened {
            // Of the answer only its bytes are kept: its headers have been read.
            body: body::timed(answer.into_body(), deadline, self.patience.idle),
            media_type,
            request_id,
            secrets: Arc::clone(&self.secrets),
        })
    }

    /// The media type of a success with `headers`, where it differs from `Accept`. Servers send any media type with
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
        let is_other =
            !media_type.is_empty() && self.headers.get(ACCEPT).is_none_or(|accepted| *accepted != *media_type);
        Ok(is_other.then_some(media_type))
    }
}

/// What is secret in `headers`: the values that are marked so.
fn secrets_in(headers: &HeaderMap) -> impl Iterator<Item = SecretString> {
    let values = headers.values().filter(|value| value.is_sensitive());
    let texts = values.filter_map(|value| value.to_str().ok());
    // Behind a scheme (`Bearer …`) stands what a vendor would repeat alone.
    let texts = texts.flat_map(|text| [text, text.rsplit(' ').next().unwrap_or(text)]);
    texts.filter(|text| text.len() >= MIN_SECRET_BYTES).map(SecretString::from)
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
