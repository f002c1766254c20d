//! Who calls: a bearer token in `Authorization`, verified with one pinned algorithm per mode.

mod dev;
mod jwt;

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use secrecy::SecretString;
use serde::Deserialize;

use super::Services;
use super::problem::Problem;
use crate::chat::caller::Caller;

pub use dev::{DevToken, DevTokens};
pub use jwt::{AuthSetupError, Claims, Jwt};

/// The longest token that is looked at, in bytes.
const MAX_TOKEN_BYTES: usize = 8 * 1024;

/// The shortest shared secret: as long as the hash (RFC 7518, section 3.2).
const MIN_SECRET_BYTES: usize = 32;

/// `[auth]`: whose tokens are accepted.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// How tokens are verified.
    pub mode: Mode,
    /// Where `dev` keeps the secret that it makes for itself.
    pub dev_secret_file: String,
    /// `hs256`: the shared secret, at least 32 bytes.
    pub hs256_secret: SecretString,
    /// `rs256`: a PEM file with the issuer's public key.
    pub rs256_public_key_file: String,
    /// `jwks`: where the issuer publishes its keys.
    pub jwks_url: String,
    /// The `iss` that tokens must have; empty accepts any.
    pub issuer: String,
    /// The `aud` that tokens must name; empty accepts any.
    pub audience: String,
    /// Seconds of clock difference that `exp` and `nbf` tolerate.
    pub leeway_s: u64,
    /// The claim with the tenant.
    pub tenant_claim: String,
    /// The claim with the roles: a list of strings, or one string with blanks between.
    pub roles_claim: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mode: Mode::Dev,
            dev_secret_file: "data/dev-secret".to_owned(),
            hs256_secret: SecretString::default(),
            rs256_public_key_file: String::new(),
            jwks_url: String::new(),
            issuer: String::new(),
            audience: String::new(),
            leeway_s: 30,
            tenant_claim: "tenant".to_owned(),
            roles_claim: "roles".to_owned(),
        }
    }
}

/// How tokens are verified. Each mode accepts exactly one algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// HS256 with a secret of our own making; loopback only.
    Dev,
    /// HS256 with a shared secret.
    Hs256,
    /// RS256 with a public key from a file.
    Rs256,
    /// Keys from the issuer's JWKS.
    Jwks,
}

/// The verifier that `config` asks for.
///
/// # Errors
/// When a key is missing, unreadable or too weak.
pub fn build(config: &Config) -> Result<Arc<Jwt>, AuthSetupError> {
    let jwt = match config.mode {
        Mode::Dev => Jwt::hs256(config, &dev::secret(&config.dev_secret_file)?),
        Mode::Hs256 => Jwt::hs256(config, &config.hs256_secret),
        Mode::Rs256 => Jwt::rs256(config),
        Mode::Jwks => Err(AuthSetupError::NotBuilt("jwks")),
    }?;
    Ok(Arc::new(jwt))
}

/// The verified caller of a request; a request without a good token is answered with 401 before anything else of it is read.
pub(super) struct Authenticated(pub(super) Caller);

impl FromRequestParts<Services> for Authenticated {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, services: &Services) -> Result<Self, Problem> {
        let mut values = parts.headers.get_all(AUTHORIZATION).iter();
        let value = values.next().ok_or_else(|| Problem::no_token("a bearer token is required"))?;
        if values.next().is_some() {
            return Err(Problem::no_token("more than one Authorization header"));
        }
        let token = value
            .to_str()
            .ok()
            .and_then(bearer)
            .ok_or_else(|| Problem::no_token("Authorization must be \"Bearer\" and a token"))?;
        if token.len() > MAX_TOKEN_BYTES {
            return Err(Problem::no_token("the token is too long"));
        }
        Ok(Self(services.authenticator.authenticate(token)?))
    }
}

/// The token of an `Authorization` value; the scheme's case does not matter (RFC 9110, section 11.1).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim_matches(' ');
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && !token.contains(' ')).then_some(token)
}
