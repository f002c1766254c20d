//! The library's requests over this server's own clients, so that they too are vetted, and follow no redirect.

use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions, Error, Result};
use reqwest::Client;

use crate::bounded::address::is_metadata;
use crate::bounded::client::{Reach, builder_http1};

/// 5 s to connect to a service that others run.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// 1 s to connect on this machine and on its link: who does not answer there is not there.
const NEAR_CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// 16 KiB of a refusal are read.
const REFUSAL_BYTES: usize = 16 << 10;

/// 200 characters of each of its texts are told.
const TOLD_CHARS: usize = 200;

/// Makes clients whose requests take no longer than `timeout`.
#[derive(Debug)]
pub(super) struct Connector {
    pub(super) timeout: Duration,
    /// Whether credentials are asked for, or else objects.
    pub(super) is_for_credentials: bool,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        let plain = options.get_config_value(&ClientConfigKey::AllowHttp).is_some_and(|allowed| allowed == "true");
        let client = |connect_timeout| {
            // Over HTTP/2 all files would share one connection.
            let client = builder_http1(Reach::Private).https_only(!plain);
            client.connect_timeout(connect_timeout).timeout(self.timeout)
        };
        let failed = |error: reqwest::Error| Error::Generic { store: "AWS", source: error.into() };
        Ok(HttpClient::new(Clients {
            near: client(NEAR_CONNECT_TIMEOUT).no_proxy().build().map_err(failed)?,
            far: client(CONNECT_TIMEOUT).build().map_err(failed)?,
            is_for_credentials: self.is_for_credentials,
        }))
    }
}

#[derive(Debug)]
struct Clients {
    /// For this machine, and for where it is told its credentials, which no proxy of the environment reaches.
    near: Client,
    far: Client,
    is_for_credentials: bool,
}

#[async_trait]
impl HttpService for Clients {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let client = if request.uri().host().is_some_and(is_near) { &self.near } else { &self.far };
        let answer = HttpService::call(client, request).await?;
        let status = answer.status();
        if !status.is_client_error() && !status.is_server_error() {
            return Ok(answer);
        }
        let (head, body) = answer.into_parts();
        let told = told(body).await;
        // All requests for credentials may be repeated; the library tells trouble that passes by this kind alone.
        let may_pass = status.is_server_error() || matches!(status.as_u16(), 408 | 429);
        if self.is_for_credentials && may_pass {
            return Err(HttpError::new_boxed(HttpErrorKind::Interrupted, format!("{status} {told}").trim_end().into()));
        }
        Ok(HttpResponse::from_parts(head, told.into()))
    }
}

/// What a refusal says: its code and its message. The rest of it, which may repeat a session token, would be in errors.
async fn told(body: HttpResponseBody) -> String {
    let (mut pieces, mut read) = (body.bytes_stream(), Vec::new());
    while read.len() < REFUSAL_BYTES
        && let Some(Ok(piece)) = pieces.next().await
    {
        read.extend_from_slice(&piece);
    }
    read.truncate(REFUSAL_BYTES);
    let xml = String::from_utf8_lossy(&read);
    let text = |name: &str| {
        let (text, _) = xml.split_once(name)?.1.split_once('<')?;
        Some(text.chars().filter(|c| !c.is_control()).take(TOLD_CHARS).collect::<String>())
    };
    [text("<Code>"), text("<Message>")].into_iter().flatten().collect::<Vec<_>>().join(": ")
}

fn is_near(host: &str) -> bool {
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => address.is_loopback() || is_metadata(address),
        Err(_) => host == "localhost",
    }
}
