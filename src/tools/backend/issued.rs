//! Tokens that an issuer gives this server for one backend: one for each tenant (RFC 6749, section 4.4), or one in exchange for
//! each token of a caller (RFC 8693). They are kept in memory, and nowhere else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::BytesMut;
use futures::StreamExt;
use moka::Expiry;
use moka::future::Cache;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::config::{Grant, NamedBackend};
use super::error::NoToken;
use crate::bounded::json;
use crate::chat::caller::{Caller, Owner};
use crate::chat::day::now_ms;
use crate::tools::secret::Secret;

/// An issuer that does not answer in 10 seconds is away.
const PATIENCE: Duration = Duration::from_secs(10);

/// The largest answer of an issuer, in bytes.
const ANSWER_BYTES: usize = 64 << 10;

/// How long a token serves whose issuer does not say so.
const UNSAID: Duration = Duration::from_secs(60);

/// So long before its end a token is replaced, or a fifth of its life where that is shorter.
const EARLY: Duration = Duration::from_secs(30);

/// Tokens that are kept at most, of each backend.
const MOST: u64 = 10_000;

/// What stands for the tenant in `scope` and `audience`.
const TENANT: &str = "{tenant}";

/// Who gives the tokens for one backend.
#[derive(Debug)]
pub(super) struct Issuer {
    http: reqwest::Client,
    url: Url,
    /// The value of `Authorization` by which it knows this server.
    client: HeaderValue,
    grant: Grant,
    scope: String,
    audience: String,
    kept: Cache<Key, Arc<Issued>>,
}

/// For whom a token was given.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Tenant(String),
    /// A caller, and the digest of the token that was exchanged.
    Caller(Owner, Vec<u8>),
}

/// A token.
#[derive(Debug)]
pub(super) struct Issued {
    pub(super) token: SecretString,
    serves: Duration,
}

/// The good answer of an issuer (RFC 6749, section 5.1).
#[derive(Deserialize)]
struct Answer {
    access_token: Secret,
    token_type: Option<String>,
    expires_in: Option<f64>,
}

/// Tokens go when their time is over.
struct ByLife;

impl Expiry<Key, Arc<Issued>> for ByLife {
    fn expire_after_create(&self, _: &Key, issued: &Arc<Issued>, _: Instant) -> Option<Duration> {
        Some(issued.serves)
    }
}

impl Issuer {
    /// The issuer that the settings of a backend name.
    ///
    /// # Errors
    /// When the TLS setup fails.
    pub(super) fn new(config: &NamedBackend, url: Url, grant: Grant) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .timeout(PATIENCE)
            .build()?;
        let pair = format!("{}:{}", encoded(&config.client_id), encoded(config.client_secret.expose()));
        let client = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair)));
        // Base64 is always a header's value.
        let mut client = client.unwrap_or_else(|_| HeaderValue::from_static(""));
        client.set_sensitive(true);
        let (scope, audience) = (config.scope.clone(), config.audience.clone());
        let kept = Cache::builder().max_capacity(MOST).expire_after(ByLife).build();
        Ok(Self { http, url, client, grant, scope, audience, kept })
    }

    /// The token with which a request of `caller` goes out. Those who ask at once wait for one.
    ///
    /// # Errors
    /// When there is none to be had now.
    pub(super) async fn token(&self, caller: &Caller) -> Result<Arc<Issued>, NoToken> {
        let given = self.kept.try_get_with(self.key(caller), self.ask(caller)).await;
        given.map_err(|error| NoToken::clone(&error))
    }

    /// The token in the place of `refused`, which the backend takes no more.
    ///
    /// # Errors
    /// When there is none to be had now.
    pub(super) async fn fresh(&self, caller: &Caller, refused: &Arc<Issued>) -> Result<Arc<Issued>, NoToken> {
        let key = self.key(caller);
        // Somebody else may have got one meanwhile.
        if self.kept.get(&key).await.is_some_and(|kept| Arc::ptr_eq(&kept, refused)) {
            self.kept.invalidate(&key).await;
        }
        self.token(caller).await
    }

    fn key(&self, caller: &Caller) -> Key {
        match self.grant {
            Grant::ClientCredentials => Key::Tenant(caller.owner.tenant.clone()),
            Grant::TokenExchange => {
                let token = digest(&SHA256, caller.bearer.expose().as_bytes());
                Key::Caller(caller.owner.clone(), token.as_ref().to_vec())
            }
        }
    }

    async fn ask(&self, caller: &Caller) -> Result<Arc<Issued>, NoToken> {
        let tenant = caller.owner.tenant_name().unwrap_or_default();
        let (scope, audience) = (self.scope.replace(TENANT, tenant), self.audience.replace(TENANT, tenant));
        let mut form = match self.grant {
            Grant::ClientCredentials => vec![("grant_type", "client_credentials")],
            Grant::TokenExchange => vec![
                ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
                ("subject_token", caller.bearer.expose()),
                ("subject_token_type", "urn:ietf:params:oauth:token-type:access_token"),
                ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token"),
            ],
        };
        form.extend(
            [("scope", scope.as_str()), ("audience", audience.as_str())]
                .into_iter()
                .filter(|(_, text)| !text.is_empty()),
        );
        let form = serde_urlencoded::to_string(form).map_err(|_| NoToken::Unusable)?;
        let request = self.http.post(self.url.clone()).header(AUTHORIZATION, self.client.clone());
        let request =
            request.header(ACCEPT, "application/json").header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let response = request.body(form).send().await.map_err(|_| NoToken::Away)?;
        let status = response.status();
        match status {
            StatusCode::OK => {}
            _ if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS => {
                return Err(NoToken::Refused(status.as_u16()));
            }
            _ => return Err(NoToken::Away),
        }
        let mut body = BytesMut::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk.map_err(|_| NoToken::Away)?);
            if body.len() > ANSWER_BYTES {
                return Err(NoToken::Unusable);
            }
        }
        self.read(&body, caller).ok_or(NoToken::Unusable)
    }

    /// The token in an answer, as long as it serves.
    fn read(&self, body: &[u8], caller: &Caller) -> Option<Arc<Issued>> {
        let Answer { access_token: Secret(token), token_type, expires_in } =
            json::parse(json::utf8(body).ok()?).ok()?;
        let is_bearer = token_type.is_none_or(|kind| kind.eq_ignore_ascii_case("bearer") || kind == "N_A");
        let is_token =
            !token.expose_secret().is_empty() && token.expose_secret().bytes().all(|byte| byte.is_ascii_graphic());
        if !is_bearer || !is_token {
            return None;
        }
        let life = expires_in.map_or(UNSAID, |seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default());
        let life = match (self.grant, caller.expires_at_ms) {
            // Never longer than the token that it stands for.
            (Grant::TokenExchange, Some(ends)) => {
                life.min(Duration::from_millis(u64::try_from(ends.saturating_sub(now_ms())).unwrap_or_default()))
            }
            (Grant::TokenExchange | Grant::ClientCredentials, _) => life,
        };
        Some(Arc::new(Issued { token, serves: life.saturating_sub(EARLY.min(life / 5)) }))
    }
}

/// A part of the client's name as a form has it (RFC 6749, section 2.3.1).
fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
