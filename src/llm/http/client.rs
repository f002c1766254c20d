//! Who carries a request: a connection of our own that the run drives, or `reqwest`.

use std::sync::Arc;

use hyper::header::{HOST, HeaderMap, HeaderValue};
use hyper::{Response, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::{Url, redirect};
use url::Position;

use super::body::Source;
use super::head::RequestHead;
use super::pool::{Host, Pool};
use super::{CONNECT_TIMEOUT, ConnectError, IDLE_CONNECTIONS, KEEP_ALIVE, UNANSWERED, UNANSWERED_TIMES};
use crate::agent::ports::llm::{ProviderError, ProviderErrorKind};

/// All clients, whose connections are kept and used again.
pub(super) struct Clients {
    plain: Pool,
    /// For this machine's own ports, which a proxy of the environment cannot reach.
    direct: reqwest::Client,
    /// Honours the usual proxy variables.
    proxied: reqwest::Client,
    /// What they say, as `reqwest` reads them.
    proxies: Matcher,
}

impl Clients {
    pub(super) fn new() -> Result<Self, ConnectError> {
        let client = || {
            reqwest::Client::builder()
                // A redirect could carry the key to another host.
                .redirect(redirect::Policy::none())
                .connect_timeout(CONNECT_TIMEOUT)
                .tcp_keepalive(KEEP_ALIVE)
                .tcp_keepalive_interval(UNANSWERED)
                .tcp_keepalive_retries(UNANSWERED_TIMES)
                .pool_max_idle_per_host(IDLE_CONNECTIONS)
                // A connection of HTTP/2 carries many turns; one that died silently must not take them all with it.
                .http2_keep_alive_interval(KEEP_ALIVE)
                .http2_keep_alive_timeout(CONNECT_TIMEOUT)
        };
        Ok(Self {
            plain: Pool::new(),
            direct: client().no_proxy().build().map_err(ConnectError::Client)?,
            proxied: client().build().map_err(ConnectError::Client)?,
            proxies: Matcher::from_system(),
        })
    }

    /// `url` without the user in it, and the header that says who that is.
    pub(super) fn without_user(&self, url: Url) -> (Url, Option<HeaderValue>) {
        match self.direct.post(url.clone()).build() {
            Ok(request) => (request.url().clone(), request.headers().get(reqwest::header::AUTHORIZATION).cloned()),
            Err(_) => (url, None),
        }
    }

    /// Who carries what is sent to `url`.
    pub(super) fn for_url(&self, url: &Url) -> Client {
        let is_local = is_loopback(url);
        match Plain::new(&self.plain, url, |uri| is_local || self.proxies.intercept(uri).is_none()) {
            Some(plain) => Client::Plain(plain),
            None if is_local => Client::General(self.direct.clone()),
            None => Client::General(self.proxied.clone()),
        }
    }
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

/// What carries requests to one URL.
pub(super) enum Client {
    /// Connections that the run's own task drives.
    Plain(Plain),
    /// TLS, with whatever HTTP it agrees on, and proxies.
    General(reqwest::Client),
}

/// A URL of a host that speaks plain HTTP.
pub(super) struct Plain {
    host: Arc<Host>,
    /// Path and query.
    target: Uri,
    name: HeaderValue,
}

impl Plain {
    /// `None` where `url` is of another kind, or is not reached directly.
    fn new(pool: &Pool, url: &Url, is_direct: impl FnOnce(&Uri) -> bool) -> Option<Self> {
        let uri = Uri::try_from(url.as_str()).ok().filter(|_| url.scheme() == "http").filter(is_direct)?;
        let origin = &url[..Position::BeforePath];
        Some(Self {
            host: pool.host(Uri::try_from(origin).ok()?),
            target: uri.path_and_query()?.clone().into(),
            name: HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort]).ok()?,
        })
    }

    fn request(&self, mut headers: HeaderMap, body: Vec<u8>) -> RequestHead {
        headers.entry(HOST).or_insert_with(|| self.name.clone());
        RequestHead { target: self.target.clone(), headers, body: body.into() }
    }
}

impl Client {
    /// Posts `body` with `headers` to `url`, for which this client was chosen; the answer as soon as its head is there.
    ///
    /// # Errors
    /// When there is no connection, or it ends without an answer.
    pub(super) async fn post(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Response<Source>, ProviderError> {
        match self {
            Self::Plain(plain) => {
                let sent = plain.host.send(plain.request(headers, body)).await;
                let answer = sent.map_err(|error| ProviderError::new(error.kind(), error))?;
                Ok(answer.map(Source::Driven))
            }
            Self::General(client) => {
                let sent = client.post(url.clone()).headers(headers).body(body).send().await;
                let answer = sent.map_err(|error| {
                    // Whoever does not even answer the call has cost the user 10 s: that is not done again.
                    let kind = match error.is_connect() && error.is_timeout() {
                        true => ProviderErrorKind::TimedOut,
                        false => ProviderErrorKind::Unavailable { retry_after: None },
                    };
                    ProviderError::new(kind, error.without_url())
                })?;
                Ok(Response::<reqwest::Body>::from(answer).map(Source::Received))
            }
        }
    }
}
