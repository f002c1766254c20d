//! How an issuer is asked for a token, and what it may answer (RFC 6749, sections 4.4 and 5; RFC 8693, section 2).
//!
//! **Invariant:** of the issuer's words only names that a standard fixes are told, and those to the operator alone.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::answer::{MAX_ECHO_BYTES, read_at_most};
use super::config::{Grant, NamedBackend, TENANT};
use super::error::{BackendError, NoToken};
use crate::bounded::client::{self, Reach};
use crate::bounded::json;
use crate::chat::caller::Caller;
use crate::chat::causes::Causes;
use crate::tools::secret::Secret;

/// An issuer that does not answer in 10 seconds is away.
const PATIENCE: Duration = Duration::from_secs(10);

/// The largest answer of an issuer, in bytes.
const ANSWER_BYTES: usize = 64 << 10;

/// How many seconds a token serves whose issuer does not say so.
const UNSAID_S: f64 = 60.0;

/// A day: a token that lives longer is asked for again all the same.
const LONGEST_S: f64 = 86_400.0;

const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// The types of tokens that an exchange may give: both are sent as they are (RFC 8693, section 3).
const GOOD_TYPES: [&str; 2] = [ACCESS_TOKEN, "urn:ietf:params:oauth:token-type:jwt"];

/// The errors of RFC 6749, section 5.2, and the one of RFC 8693, section 2.2.2.
const ERRORS: [&str; 7] = [
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
    "invalid_target",
];

/// Asks one issuer for the tokens of one backend.
#[derive(Debug)]
pub(super) struct Asker {
    /// The backend's name.
    backend: String,
    http: reqwest::Client,
    url: Url,
    /// The value of `Authorization` by which the issuer knows this server.
    client: HeaderValue,
    grant: Grant,
    scope: String,
    audience: String,
    /// What the tokens are for, as an address (RFC 8707); empty where that is not said.
    resource: String,
    now_ms: fn() -> i64,
}

/// A token, and how long it lives.
pub(super) struct Given {
    pub(super) token: SecretString,
    pub(super) life: Duration,
}

/// The good answer of an issuer (RFC 6749, section 5.1; RFC 8693, section 2.2.1).
#[derive(Deserialize)]
struct Answer {
    access_token: Secret,
    token_type: Option<String>,
    issued_token_type: Option<String>,
    #[serde(default)]
    expires_in: Option<Seconds>,
}

/// A number, which some issuers write as a text (Entra's older addresses).
#[derive(Deserialize)]
#[serde(untagged)]
enum Seconds {
    Number(f64),
    Text(String),
}

/// Its answer that is an error.
#[derive(Deserialize)]
struct Refusal {
    error: String,
}

/// Why there is no token, for the operator.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Caller(#[from] NoToken),
    #[error("its issuer cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    #[error("its issuer's answer broke off")]
    BrokeOff(#[source] BackendError),
    #[error("its issuer answers HTTP {}, {}", status.as_u16(), error.unwrap_or("with no error that RFC 6749 has"))]
    Status { status: StatusCode, error: Option<&'static str> },
    #[error("its issuer's answer {0}")]
    Answer(&'static str),
}

impl Failure {
    /// What is told of it.
    fn told(&self) -> NoToken {
        match self {
            Self::Caller(reason) => *reason,
            Self::Unreachable(_) | Self::BrokeOff(_) => NoToken::Away,
            Self::Status { status, .. } if status.is_client_error() && *status != StatusCode::TOO_MANY_REQUESTS => {
                NoToken::Refused(status.as_u16())
            }
            Self::Status { .. } => NoToken::Away,
            Self::Answer(_) => NoToken::Unusable,
        }
    }
}

impl Asker {
    /// Asks at `url` as the settings of the backend of that name say.
    ///
    /// # Errors
    /// When the TLS setup fails.
    pub(super) fn new(
        (backend, config): (&str, &NamedBackend),
        (url, grant): (Url, Grant),
        now_ms: fn() -> i64,
    ) -> Result<Self, reqwest::Error> {
        let http = client::builder(Reach::Private)
            .retry(reqwest::retry::never())
            // A proxy named in the environment would see the caller's token.
            .no_proxy()
            .timeout(PATIENCE)
            .build()?;
        let pair = format!("{}:{}", encoded(&config.client_id), encoded(config.client_secret.expose()));
        let client = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair)));
        // Base64 is always a header's value.
        let mut client = client.unwrap_or_else(|_| HeaderValue::from_static(""));
        client.set_sensitive(true);
        let (scope, audience) = (config.scope.clone(), config.audience.clone());
        let resource = String::new();
        Ok(Self { backend: backend.to_owned(), http, url, client, grant, scope, audience, resource, now_ms })
    }

    /// The same for tokens that are for this address.
    pub(super) fn for_resource(self, resource: &str) -> Self {
        Self { resource: resource.to_owned(), ..self }
    }

    /// For whom its tokens are.
    pub(super) fn grant(&self) -> Grant {
        self.grant
    }

    /// A new token for requests of `caller`. Why there is none is logged here, as the only place.
    ///
    /// # Errors
    /// When there is none to be had now.
    pub(super) async fn ask(&self, caller: &Caller) -> Result<Given, NoToken> {
        self.try_ask(caller).await.map_err(|failure| {
            tracing::warn!(backend.name = self.backend, error = %Causes(&failure), "no token for a backend");
            failure.told()
        })
    }

    async fn try_ask(&self, caller: &Caller) -> Result<Given, Failure> {
        let (scope, audience) = self.wanted(caller)?;
        let mut form = match self.grant {
            Grant::ClientCredentials => vec![("grant_type", "client_credentials")],
            Grant::TokenExchange => vec![
                ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
                ("subject_token", caller.bearer.expose()),
                ("subject_token_type", ACCESS_TOKEN),
                ("requested_token_type", ACCESS_TOKEN),
            ],
        };
        let named = [("scope", scope.as_str()), ("audience", audience.as_str()), ("resource", self.resource.as_str())];
        let named = named.into_iter();
        form.extend(named.filter(|(_, text)| !text.is_empty()));
        let form = serde_urlencoded::to_string(form).map_err(|_| NoToken::Unusable)?;
        let request = self.http.post(self.url.clone()).header(AUTHORIZATION, self.client.clone());
        let request =
            request.header(ACCEPT, "application/json").header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let response = request.body(form).send().await.map_err(|error| Failure::Unreachable(error.without_url()))?;
        let status = response.status();
        let body = read_at_most(response, ANSWER_BYTES, None).await;
        if status != StatusCode::OK {
            // The status is what counts, even where its words do not arrive.
            let error = body.ok().and_then(|(body, _)| error_of(&body));
            return Err(Failure::Status { status, error });
        }
        let (body, is_whole) = body.map_err(Failure::BrokeOff)?;
        if !is_whole {
            return Err(Failure::Answer("is larger than 64 KiB"));
        }
        self.read(&body, caller)
    }

    /// The scope and the audience of tokens for `caller`.
    ///
    /// # Errors
    /// When they name the tenant, and the caller has none, or one that would be more than a word of a scope.
    fn wanted(&self, caller: &Caller) -> Result<(String, String), NoToken> {
        let (scope, audience) = (&self.scope, &self.audience);
        if !scope.contains(TENANT) && !audience.contains(TENANT) {
            return Ok((scope.clone(), audience.clone()));
        }
        let tenant = caller.owner.tenant_name().ok_or(NoToken::NoTenant)?;
        if scope.contains(TENANT) && !tenant.bytes().all(is_of_scope) {
            return Err(NoToken::UnfitTenant);
        }
        Ok((scope.replace(TENANT, tenant), audience.replace(TENANT, tenant)))
    }

    /// The token in an answer.
    fn read(&self, body: &[u8], caller: &Caller) -> Result<Given, Failure> {
        let text = json::utf8(body).map_err(|_| Failure::Answer("is not UTF-8"))?;
        let Answer { access_token: Secret(token), token_type, issued_token_type, expires_in } =
            json::parse(text).map_err(|_| Failure::Answer("is no token"))?;
        let expires_in = match expires_in {
            Some(Seconds::Number(seconds)) => Some(seconds),
            Some(Seconds::Text(text)) => {
                Some(text.parse().ok().filter(|s: &f64| s.is_finite()).ok_or(Failure::Answer("is no token"))?)
            }
            None => None,
        };
        if token_type.is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
            return Err(Failure::Answer("has another token_type than Bearer"));
        }
        let text = token.expose_secret();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Failure::Answer("has a token that no header can carry"));
        }
        // A longer one would not be seen whole where a backend repeats it.
        if text.len() > MAX_ECHO_BYTES {
            return Err(Failure::Answer("has a token of more than 8 KiB"));
        }
        let life = Duration::from_secs_f64(expires_in.unwrap_or(UNSAID_S).clamp(0.0, LONGEST_S));
        let life = match self.grant {
            Grant::ClientCredentials => life,
            Grant::TokenExchange => {
                if !issued_token_type.is_some_and(|kind| GOOD_TYPES.contains(&kind.as_str())) {
                    return Err(Failure::Answer("has no issued_token_type that can be sent"));
                }
                // Never longer than the token that it stands for.
                let left = caller.expires_at_ms.map_or(i64::MAX, |ends| ends.saturating_sub((self.now_ms)()));
                life.min(Duration::from_millis(u64::try_from(left).unwrap_or_default()))
            }
        };
        Ok(Given { token, life })
    }
}

/// The error that a refusal names, if a standard has it.
fn error_of(body: &[u8]) -> Option<&'static str> {
    let Refusal { error } = json::parse(json::utf8(body).ok()?).ok()?;
    ERRORS.into_iter().find(|known| *known == error)
}

/// Whether it may stand in a word of a scope (RFC 6749, section 3.3).
fn is_of_scope(byte: u8) -> bool {
    matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e)
}

/// A part of the client's name as a form has it (RFC 6749, section 2.3.1).
fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
