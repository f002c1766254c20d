//! Signing in at an issuer, for the page: the authorization code flow with PKCE (OpenID Connect Core 1.0, section 3.1;
//! RFC 7636). The page sends its user to the issuer and comes back with a code. This server has that made into tokens, so
//! that the page speaks to its own server only, and the issuer need not answer pages of this origin.
//!
//! **Invariant:** codes, verifiers, tokens and the client's secret go to the issuer's `token_endpoint` alone, and are not
//! kept. **Invariant:** the page gets a token only where this server accepts it.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use jsonwebtoken::dangerous::insecure_decode_claims;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::fetch::{self, Discovery, FetchError};
use super::origin::{Pages, Sender, is_of_site};
use crate::agent::ports::clock::Clock;
use crate::agent::ports::identity::{AuthError, Authenticator};
use crate::bounded::json::parse_bytes;
use crate::chat::causes::Causes;
use crate::http::code::Code;
use crate::http::problem::Problem;

/// An hour for which an issuer's addresses are good.
const ENDPOINTS_SERVE: Duration = Duration::from_secs(3600);

/// 5 s before an issuer that did not answer is asked again.
const AWAY: Duration = Duration::from_secs(5);

/// Questions to the issuer at once. Whoever asks is not known yet.
const MOST_ASKED: usize = 64;

/// 64 KiB of an answer with tokens.
const MAX_BYTES: usize = 64 * 1024;

/// 30 s that the issuer's clock may be behind.
const LEEWAY_S: f64 = 30.0;

/// 200 bytes of the issuer's reason in the log.
const REASON_BYTES: usize = 200;

/// Where the page's users sign in, and as whose.
#[derive(Debug, Clone)]
pub struct SignInConfig {
    /// The issuer, as its discovery document names it.
    pub issuer: String,
    /// The page's id there.
    pub client_id: String,
    /// Its secret there; empty for a public client.
    pub client_secret: SecretString,
    /// What is asked for, with blanks between.
    pub scope: String,
    /// For whom the access token is asked, which Auth0 wants to know; empty: nobody is named.
    pub audience: String,
    /// The token that the page sends.
    pub token: TokenKind,
}

/// Which token of an issuer the page sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenKind {
    /// The access token. It has to be a JWT.
    Access,
    /// The ID token, of an issuer whose access tokens say nothing to anybody else.
    Id,
}

/// Signs the page's users in.
pub struct SignIn {
    config: SignInConfig,
    endpoints: Mutex<Known>,
    asking: Semaphore,
    own_pages: Pages,
    authenticator: Arc<dyn Authenticator>,
    clock: Arc<dyn Clock>,
}

/// What is known of the issuer.
#[derive(Default)]
enum Known {
    #[default]
    Nothing,
    /// Its addresses, to be looked at again then.
    Endpoints(Instant, Arc<Endpoints>),
    /// It did not answer, and is asked again then.
    Away(Instant),
}

/// The issuer's addresses.
pub(in crate::http) struct Endpoints {
    /// Where users sign in.
    pub(in crate::http) authorization: Url,
    /// Where they sign out, if they can.
    pub(in crate::http) end_session: Option<Url>,
    token: Url,
}

/// What the page has for a token.
pub(in crate::http) enum Grant {
    /// What the issuer has sent its user back with.
    Code {
        code: String,
        /// The random text whose digest the issuer was shown before (RFC 7636).
        verifier: String,
        /// The page's own address, as the issuer was told it.
        redirect_uri: String,
        /// The random text that the ID token has to repeat.
        nonce: String,
    },
    /// What came with a token.
    Refresh { refresh_token: SecretString },
}

/// A token that this server accepts.
pub(in crate::http) struct SignedIn {
    pub(in crate::http) token: String,
    /// `None` where it says nothing of its end.
    pub(in crate::http) expires_in_s: Option<u64>,
    pub(in crate::http) refresh_token: Option<String>,
    pub(in crate::http) id_token: Option<String>,
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub(in crate::http) enum SignInError {
    #[error("a page of another site has sent the request")]
    Foreign,
    #[error("the issuer at which users sign in does not answer as it should; please try again")]
    Away,
    #[error("too many sign in at once; please try again")]
    Crowded,
    #[error("the issuer gives no token for this; please sign in again")]
    Refused,
    #[error("what the issuer gave is not for this page: {0}")]
    NotOurs(&'static str),
    #[error("the issuer's token is not accepted here: {0}")]
    Token(#[source] AuthError),
}

impl From<SignInError> for Problem {
    fn from(error: SignInError) -> Self {
        let text = error.to_string();
        match error {
            SignInError::Foreign => Self::csrf_failed(text),
            SignInError::Away | SignInError::Crowded => Self::unavailable(Code::SignInUnavailable, text),
            SignInError::Token(AuthError::KeysUnavailable) => AuthError::KeysUnavailable.into(),
            SignInError::Refused | SignInError::NotOurs(_) | SignInError::Token(_) => Self::sign_in_refused(text),
        }
    }
}

/// The claims of an ID token that say for whom it is (OpenID Connect Core 1.0, section 2).
#[derive(Deserialize)]
struct IdClaims {
    iss: String,
    aud: Audience,
    azp: Option<String>,
    /// It may have a fraction.
    exp: f64,
    nonce: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

#[derive(Deserialize)]
struct Answer {
    access_token: Option<String>,
    id_token: Option<String>,
    refresh_token: Option<String>,
}

/// RFC 6749, section 5.2.
#[derive(Deserialize)]
struct Refusal {
    error: String,
    #[serde(default)]
    error_description: String,
}

impl SignIn {
    /// What `config` asks for.
    pub fn new(config: SignInConfig, authenticator: Arc<dyn Authenticator>, clock: Arc<dyn Clock>) -> Self {
        Self {
            config,
            endpoints: Mutex::default(),
            asking: Semaphore::new(MOST_ASKED),
            own_pages: Pages::new(&[]),
            authenticator,
            clock,
        }
    }

    /// What the page is told.
    pub(in crate::http) fn config(&self) -> &SignInConfig {
        &self.config
    }

    /// The issuer's addresses. One request asks for all that wait.
    ///
    /// # Errors
    /// [`SignInError::Away`].
    pub(in crate::http) async fn endpoints(&self) -> Result<Arc<Endpoints>, SignInError> {
        let mut known = self.endpoints.lock().await;
        match &*known {
            Known::Endpoints(until, endpoints) if Instant::now() < *until => return Ok(endpoints.clone()),
            Known::Away(until) if Instant::now() < *until => return Err(SignInError::Away),
            Known::Nothing | Known::Endpoints(..) | Known::Away(_) => {}
        }
        match self.discover().await {
            Ok(endpoints) => {
                let endpoints = Arc::new(endpoints);
                *known = Known::Endpoints(Instant::now() + ENDPOINTS_SERVE, endpoints.clone());
                Ok(endpoints)
            }
            Err(error) => {
                tracing::warn!(error = %Causes(&error), "the issuer of page.oidc_issuer cannot be asked");
                let again = Instant::now() + AWAY;
                // Addresses that were good once serve on.
                if let Known::Endpoints(until, endpoints) = &mut *known {
                    *until = again;
                    return Ok(endpoints.clone());
                }
                *known = Known::Away(again);
                Err(SignInError::Away)
            }
        }
    }

    async fn discover(&self) -> Result<Endpoints, FetchError> {
        let found = Discovery::of(&self.config.issuer).await?;
        Ok(Endpoints {
            authorization: found.authorization()?,
            end_session: found.end_session()?,
            token: found.token()?,
        })
    }

    /// A token for what the page shows.
    ///
    /// # Errors
    /// See [`SignInError`].
    pub(in crate::http) async fn redeem(&self, grant: Grant, headers: &HeaderMap) -> Result<SignedIn, SignInError> {
        let is_own = matches!(self.own_pages.sender(headers), None | Some(Sender::Own));
        if !is_own || is_of_site(headers, &["same-origin"]) == Some(false) {
            return Err(SignInError::Foreign);
        }
        let _place = self.asking.try_acquire().map_err(|_| SignInError::Crowded)?;
        let endpoints = self.endpoints().await?;
        let Answer { access_token, id_token, refresh_token } = self.ask(&endpoints.token, &grant).await?;
        if let Grant::Code { nonce, .. } = &grant {
            let id_token = id_token.as_deref().ok_or(SignInError::NotOurs("there is no ID token"))?;
            self.is_for_this_page(id_token, nonce)?;
        }
        let token = match self.config.token {
            TokenKind::Access => access_token.ok_or(SignInError::NotOurs("there is no access token"))?,
            TokenKind::Id => id_token.clone().ok_or(SignInError::NotOurs("there is no ID token"))?,
        };
        let caller = self.authenticator.authenticate(&token).await.map_err(|error| {
            tracing::warn!(error = %error, "a token of page.oidc_issuer is not accepted by [auth]");
            SignInError::Token(error)
        })?;
        let left_ms = caller.expires_at_ms.map(|ends| ends.saturating_sub(self.clock.now_ms()).max(0));
        let expires_in_s = left_ms.and_then(|left| u64::try_from(left / 1000).ok());
        Ok(SignedIn { token, expires_in_s, refresh_token, id_token })
    }

    async fn ask(&self, url: &Url, grant: &Grant) -> Result<Answer, SignInError> {
        let away = |error| {
            tracing::warn!(error = %Causes(&error), "the token_endpoint of page.oidc_issuer does not answer");
            SignInError::Away
        };
        let SignInConfig { client_id: id, client_secret: secret, .. } = &self.config;
        let secret = secret.expose_secret();
        let mut request = fetch::client(url).map_err(away)?.post(url.clone()).header(ACCEPT, "application/json");
        if !secret.is_empty() {
            // Both are written as in a form first (RFC 6749, section 2.3.1).
            request = request.basic_auth(encoded(id), Some(encoded(secret)));
        }
        let form = form(grant, Some(id).filter(|_| secret.is_empty()));
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form);
        let response = request.send().await.map_err(|error| away(fetch::unreachable(error)))?;
        match response.status().as_u16() {
            200 => {
                let body = fetch::read(response, MAX_BYTES).await.map_err(away)?;
                parse_bytes(&body).map_err(|_| SignInError::NotOurs("the answer cannot be read"))
            }
            status @ (400 | 401 | 403) => {
                let body = fetch::read(response, MAX_BYTES).await.unwrap_or_default();
                let reason = parse_bytes::<Refusal>(&body)
                    .map(|refusal| format!("{}: {}", refusal.error, refusal.error_description))
                    .unwrap_or_default();
                let reason = &reason[..reason.floor_char_boundary(REASON_BYTES)];
                tracing::warn!(status, reason, "page.oidc_issuer gives no token");
                Err(SignInError::Refused)
            }
            status => Err(away(FetchError::Status(status))),
        }
    }

    /// Whether an ID token is one for this page and this sign-in (OpenID Connect Core 1.0, section 3.1.3.7). It came from the
    /// issuer itself over TLS, which may stand for its signature there; where it is the token that the page sends, that is
    /// verified besides.
    fn is_for_this_page(&self, id_token: &str, nonce: &str) -> Result<(), SignInError> {
        let claims: IdClaims =
            insecure_decode_claims(id_token).map_err(|_| SignInError::NotOurs("the ID token cannot be read"))?;
        let SignInConfig { issuer, client_id: client, .. } = &self.config;
        let (is_in, others) = match &claims.aud {
            Audience::One(one) => (one == client, false),
            Audience::Many(many) => (many.contains(client), many.len() > 1),
        };
        let azp = match &claims.azp {
            Some(azp) => azp == client,
            None => !others,
        };
        let now_s = self.clock.now_ms() as f64 / 1000.0;
        match () {
            () if claims.iss != *issuer => Err(SignInError::NotOurs("the ID token is of another issuer")),
            () if !is_in || !azp => Err(SignInError::NotOurs("the ID token is for another client")),
            () if claims.exp + LEEWAY_S < now_s => Err(SignInError::NotOurs("the ID token has expired")),
            () if claims.nonce.as_deref() != Some(nonce) => {
                Err(SignInError::NotOurs("the ID token is of another sign-in"))
            }
            () => Ok(()),
        }
    }
}

/// What the issuer is asked; a client that shows no secret says in it who it is.
fn form(grant: &Grant, client: Option<&String>) -> String {
    let mut form = Serializer::new(String::new());
    form.extend_pairs(client.map(|client| ("client_id", client)));
    match grant {
        Grant::Code { code, verifier, redirect_uri, nonce: _ } => form
            .append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("code_verifier", verifier)
            .append_pair("redirect_uri", redirect_uri),
        Grant::Refresh { refresh_token } => {
            form.append_pair("grant_type", "refresh_token").append_pair("refresh_token", refresh_token.expose_secret())
        }
    };
    form.finish()
}

fn encoded(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect()
}
