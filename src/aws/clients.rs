//! The library's requests over this server's own clients, so that they too are vetted, and follow no redirect.

use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use object_store::client::{HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService};
use object_store::{ClientConfigKey, ClientOptions, Error, Result};
use reqwest::Client;

use crate::bounded::address::is_metadata;
use crate::bounded::client::{Reach, builder};

/// 5 s to connect to a service that others run.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// 1 s to connect on this machine and on its link: who does not answer there is not there.
const NEAR_CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Makes clients whose requests take no longer than `timeout`.
#[derive(Debug)]
pub(super) struct Connector {
    pub(super) timeout: Duration,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        let plain = options.get_config_value(&ClientConfigKey::AllowHttp).is_some_and(|allowed| allowed == "true");
        let client = |connect_timeout| {
            // Over HTTP/2 all files would share one connection.
            let client = builder(Reach::Private).http1_only().https_only(!plain);
            client.connect_timeout(connect_timeout).timeout(self.timeout)
        };
        let failed = |error: reqwest::Error| Error::Generic { store: "AWS", source: error.into() };
        Ok(HttpClient::new(Clients {
            near: client(NEAR_CONNECT_TIMEOUT).no_proxy().build().map_err(failed)?,
            far: client(CONNECT_TIMEOUT).build().map_err(failed)?,
        }))
    }
}

#[derive(Debug)]
struct Clients {
    /// For this machine, and for where it is told its credentials, which no proxy of the environment reaches.
    near: Client,
    far: Client,
}

#[async_trait]
impl HttpService for Clients {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let client = if request.uri().host().is_some_and(is_near) { &self.near } else { &self.far };
        HttpService::call(client, request).await
    }
}

fn is_near(host: &str) -> bool {
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => address.is_loopback() || is_metadata(address),
        Err(_) => host == "localhost",
    }
}
