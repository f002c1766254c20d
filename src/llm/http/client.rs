//! Who carries a request to a vendor: one client for TLS and plain connections, over HTTP/1.1.

use hyper::Response;
use hyper::header::{HeaderMap, HeaderValue};
use reqwest::{Body, Client, Url};

use super::json::JsonBody;
use super::{CONNECT_TIMEOUT, ConnectError, IDLE_CONNECTIONS, KEEP_ALIVE, UNANSWERED, UNANSWERED_TIMES};
use crate::agent::ports::llm::{ProviderError, ProviderErrorKind};
use crate::bounded::address::is_loopback;
use crate::bounded::client::{Reach, builder_http1};

/// All clients, whose connections are kept and used again.
pub(super) struct Clients {
    /// For this machine's own ports, which a proxy of the environment cannot reach.
    direct: Client,
    /// Honours the usual proxy variables.
    proxied: Client,
}

impl Clients {
    pub(super) fn new() -> Result<Self, ConnectError> {
        let client = || {
            // Over HTTP/2 all turns would share one connection, and those beyond the streams that a server allows,
            // often 100, would wait for others to end.
            builder_http1(Reach::Private)
                .connect_timeout(CONNECT_TIMEOUT)
                .tcp_keepalive(KEEP_ALIVE)
                .tcp_keepalive_interval(UNANSWERED)
                .tcp_keepalive_retries(UNANSWERED_TIMES)
                .pool_max_idle_per_host(IDLE_CONNECTIONS)
        };
        Ok(Self {
            direct: client().no_proxy().build().map_err(ConnectError::Client)?,
            proxied: client().build().map_err(ConnectError::Client)?,
        })
    }

    /// `url` without the user in it, and the header that says who that is.
    pub(super) fn without_user(&self, url: Url) -> (Url, Option<HeaderValue>) {
        match self.direct.post(url.clone()).build() {
            Ok(request) => (request.url().clone(), request.headers().get(reqwest::header::AUTHORIZATION).cloned()),
            Err(_) => (url, None),
        }
    }

    /// The client for requests to `url`. A proxy of the environment cannot reach this machine's own ports.
    pub(super) fn for_url(&self, url: &Url) -> Client {
        if is_loopback(url) { self.direct.clone() } else { self.proxied.clone() }
    }
}

/// Posts `body` with `headers` to `url`, for which `client` was chosen; the answer as soon as its head is there.
///
/// # Errors
/// When there is no connection, or it ends without an answer.
pub(super) async fn post(
    client: &Client,
    url: &Url,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response<Body>, ProviderError> {
    let sent = client.post(url.clone()).headers(headers).body(body).send().await;
    let answer = sent.map_err(|error| {
        // Whoever does not even answer the call has cost the user 10 s: that is not done again.
        let kind = match error.is_connect() && error.is_timeout() {
            true => ProviderErrorKind::TimedOut,
            false => ProviderErrorKind::Unavailable { retry_after: None },
        };
        ProviderError::new(kind, error.without_url())
    })?;
    Ok(answer.into())
}
