//! Who calls: a bearer token in `Authorization`, in `x-api-key` where a protocol has that, or else in a cookie, verified with keys whose algorithms are pinned.
//!
//! `cookie` reads it from a cookie, `session` has it given in exchange for one, and `origin` knows whose page has sent a
//! request. `forwarded` tells for whom of its users a front end asks. `renew` has tokens near their end renewed. `verify`
//! chooses issuer and key, `claims` judges what a token says, `keys` knows which keys are good enough, `published` keeps those
//! of issuers that publish them and `fetch` gets them from a good `address`. `oidc` has the page's users sign in at an issuer.
//! `local` is the user of this machine, who needs none.

mod address;
mod claims;
mod config;
mod cookie;
mod dev;
mod fetch;
mod forwarded;
mod keys;
mod local;
mod oidc;
mod origin;
mod published;
mod renew;
mod session;
mod sign;
mod verify;

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use super::Services;
use super::problem::Problem;
use super::share::Slot;
use super::wire_info::WireInfo;
use crate::agent::ports::clock::Clock;
use crate::agent::ports::identity::AuthError;
use crate::chat::caller::Caller;
use crate::chat::causes::Causes;

use session::Refused;

pub use config::{AuthConfig, ForwardedConfig, Issuer, Mode};
pub use cookie::CookieTokens;
pub use dev::{DevToken, DevTokens};
pub use forwarded::ForwardedUsers;
pub use local::LocalUser;
pub(super) use local::is_from_this_machine;
pub(super) use oidc::{Grant, SignedIn};
pub use oidc::{SignIn, SignInConfig, TokenKind};
pub(super) use origin::{Pages, Sender};
pub use renew::Renewal;
pub(super) use renew::{NEW_TOKEN, layer as renewing};
pub use session::{SessionConfig, SessionTokens};
pub use sign::Claims;
pub use verify::Tokens;

/// The header in which some clients send what others send as a bearer token.
const API_KEY: &str = "x-api-key";

/// The longest token that is looked at, in bytes.
const MAX_TOKEN_BYTES: usize = 8 * 1024;

/// The shortest shared secret: as long as the hash (RFC 7518, section 3.2).
const MIN_SECRET_BYTES: usize = 32;

/// Why no verifier could be made, or no token.
#[derive(Debug, thiserror::Error)]
pub enum AuthSetupError {
    /// A file could not be read or written.
    #[error("{path} cannot be used")]
    File {
        /// The file.
        path: String,
        /// The cause.
        #[source]
        error: std::io::Error,
    },
    /// The shared secret can be guessed.
    #[error("the secret must have at least 32 bytes")]
    WeakSecret,
    /// The PEM file holds no public key.
    #[error("{path} holds no public key in PEM form")]
    BadKey {
        /// The file.
        path: String,
        /// The mistake in it.
        #[source]
        error: jsonwebtoken::errors::Error,
    },
    /// The PEM file holds a public key that is not good enough.
    #[error("{path} holds a key that cannot be used: {reason}")]
    UnusableKey {
        /// The file.
        path: String,
        /// The mistake in it.
        reason: &'static str,
    },
    /// This mode verifies tokens of another issuer and cannot make any.
    #[error("tokens can only be made in the modes dev and hs256")]
    CannotSign,
    /// The client that has sessions exchanged cannot be made.
    #[error("auth.session.exchange_url cannot be asked")]
    Client(#[source] Box<dyn Error + Send + Sync>),
    /// Signing failed.
    #[error("the token could not be signed")]
    Sign(#[source] jsonwebtoken::errors::Error),
}

/// Whether tokens or keys may come from this address.
///
/// # Errors
/// What is wrong with it.
pub(super) fn is_source(address: &str) -> Result<(), &'static str> {
    address::source(address).map(drop)
}

/// The verifier that `config` asks for; `known_as_claim` has what front ends call users by, and is empty where that is
/// `sub`. Nothing is fetched before [`Tokens::start`].
///
/// # Errors
/// When a key is missing, unreadable or too weak.
pub fn build(config: &AuthConfig, known_as_claim: &str, clock: Arc<dyn Clock>) -> Result<Arc<Tokens>, AuthSetupError> {
    Ok(Arc::new(Tokens::new(config, known_as_claim, clock)?))
}

/// The verified caller of a request; a request without a good token is answered with 401 before anything else of it is read.
pub(super) struct Authenticated(pub(super) Caller);

impl FromRequestParts<Services> for Authenticated {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, services: &Services) -> Result<Self, Problem> {
        let of_session = match &services.session_tokens {
            Some(sessions) if !parts.headers.contains_key(AUTHORIZATION) && !has_api_key(parts) => {
                sessions.caller(parts).await.inspect_err(|refused| match refused {
                    Refused::Token(error) => count(services, error),
                    Refused::NoSession(_) | Refused::Csrf(_) | Refused::Unavailable(_) => {}
                })?
            }
            Some(_) | None => None,
        };
        // A session's token is not renewed: it goes to nobody else, nor to the page, which never had it.
        let renewal = services.renewal.as_ref().filter(|_| of_session.is_none());
        let caller = match of_session {
            Some(caller) => caller,
            None => of_token(parts, services).await?,
        };
        let (caller, is_named) = match &services.forwarded_users {
            Some(forwarded) => forwarded.caller(&parts.headers, caller).inspect_err(|_| {
                services.recorder.token_refused("its forwarded user cannot be verified");
            })?,
            None => (caller, false),
        };
        // Nor does the token of a connection go to its users, or one of a cookie, which no script may read, to scripts.
        let renewal = renewal.filter(|_| !is_named && caller.cookie.is_none());
        // The slot is the connection's, so that a place is held until the whole answer is sent.
        if let Some(slot) = parts.extensions.get::<Slot>() {
            slot.take(&caller)?;
        }
        if let (Some(renewal), Some(slot)) = (renewal, parts.extensions.get::<renew::Slot>()) {
            slot.begin(renewal, &caller);
        }
        Ok(Self(caller))
    }
}

/// The caller by the token that a request has itself.
async fn of_token(parts: &Parts, services: &Services) -> Result<Caller, Problem> {
    let unreadable = |reason| {
        services.recorder.token_refused(reason);
        Problem::no_token(reason)
    };
    let (token, cookie) = match presented(parts, services.cookie_tokens.as_deref()).map_err(unreadable)? {
        Presented::Bearer(token) => (Cow::Borrowed(token), None),
        Presented::Cookie { found, is_ours: true } => (Cow::Owned(found.token), Some(found.cookie)),
        Presented::Cookie { is_ours: false, .. } => {
            return Err(Problem::forbidden("a cookie counts only for requests of this site's own pages"));
        }
        Presented::Nothing => match of_local_user(parts, services)? {
            Some(token) => (Cow::Owned(token), None),
            None => return Err(Problem::no_token("a bearer token is required")),
        },
    };
    let caller = services.authenticator.authenticate(&token).await.inspect_err(|error| count(services, error))?;
    Ok(Caller { cookie, ..caller })
}

/// The token of the local user, where the request is theirs and its protocol is for them.
fn of_local_user(parts: &Parts, services: &Services) -> Result<Option<String>, Problem> {
    let is_for_them = parts.extensions.get::<WireInfo>().is_some_and(|wire| wire.local_user);
    let local = services.local_user.as_ref().filter(|_| is_for_them);
    let token = local.and_then(|local| local.token(&parts.headers, &parts.extensions)).transpose();
    token.map_err(|error| {
        tracing::error!(error = %Causes(&error), "no token of the local user made");
        Problem::internal()
    })
}

/// Counts a token that was refused.
fn count(services: &Services, error: &AuthError) {
    match error {
        AuthError::Invalid(reason) => services.recorder.token_refused(reason),
        AuthError::NoTenant => services.recorder.token_refused("it names no tenant"),
        AuthError::Expired => services.recorder.token_refused("the token has expired"),
        // It may be good.
        AuthError::KeysUnavailable => {}
    }
}

/// Where a request's token is.
enum Presented<'a> {
    Bearer(&'a str),
    Cookie {
        found: cookie::Found,
        /// Whether a page that may do so has sent the request.
        is_ours: bool,
    },
    Nothing,
}

/// The token of a request: `Authorization` counts where there are both.
fn presented<'a>(parts: &'a Parts, cookies: Option<&CookieTokens>) -> Result<Presented<'a>, &'static str> {
    let mut values = parts.headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        if has_api_key(parts) {
            return api_key(parts).map(Presented::Bearer);
        }
        return match cookies.and_then(|cookies| Some((cookies, cookies.find(&parts.headers)?))) {
            None => Ok(Presented::Nothing),
            Some((cookies, found)) => {
                Ok(Presented::Cookie { found: found?, is_ours: cookies.lets(&parts.method, &parts.headers) })
            }
        };
    };
    if values.next().is_some() {
        return Err("more than one Authorization header");
    }
    let token = value.to_str().ok().and_then(bearer).ok_or("Authorization must be \"Bearer\" and a token")?;
    bounded(token).map(Presented::Bearer)
}

fn bounded(token: &str) -> Result<&str, &'static str> {
    if token.len() > MAX_TOKEN_BYTES { Err("the token is too long") } else { Ok(token) }
}

/// Whether a request has its token as an API key, in a protocol whose clients do so.
fn has_api_key(parts: &Parts) -> bool {
    parts.extensions.get::<WireInfo>().is_some_and(|wire| wire.api_key) && parts.headers.contains_key(API_KEY)
}

fn api_key(parts: &Parts) -> Result<&str, &'static str> {
    let mut values = parts.headers.get_all(API_KEY).iter();
    let token = values.next().filter(|_| values.next().is_none()).and_then(|value| value.to_str().ok());
    let token = token.map(str::trim).filter(|token| !token.is_empty() && !token.contains(' '));
    bounded(token.ok_or("x-api-key must be given once, and be a token")?)
}

/// The token of an `Authorization` value; the scheme's case does not matter (RFC 9110, section 11.1).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim_matches(' ');
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && !token.contains(' ')).then_some(token)
}
