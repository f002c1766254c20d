//! JSON Web Tokens: verified against one key and one algorithm, and made for `dev` and `hs256`.
//!
//! **Invariant:** the token's header chooses nothing. The algorithm is pinned by the mode; `kid`, `jku`, `x5u` and `jwk` are not
//! read (RFC 8725, sections 3.1 and 3.10).

use std::time::Duration;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};

use super::{Config, MIN_SECRET_BYTES};
use crate::agent::ports::identity::{AuthError, Authenticator};
use crate::chat::caller::{Bearer, Caller, Owner};

/// Verifies tokens of one issuer.
pub struct Jwt {
    verifying: DecodingKey,
    signing: Option<EncodingKey>,
    validation: Validation,
    algorithm: Algorithm,
    issuer: String,
    audience: String,
    tenant_claim: String,
    roles_claim: String,
}

/// Why no verifier could be made.
#[derive(Debug, thiserror::Error)]
pub enum AuthSetupError {
    /// A file could not be read or written.
    #[error("{path} cannot be used: {error}")]
    File {
        /// The file.
        path: String,
        /// What happened.
        #[source]
        error: std::io::Error,
    },
    /// The shared secret can be guessed.
    #[error("the secret must have at least 32 bytes")]
    WeakSecret,
    /// The PEM file holds no RSA public key.
    #[error("{path} holds no RSA public key in PEM form")]
    BadKey {
        /// The file.
        path: String,
        /// What is wrong with it.
        #[source]
        error: jsonwebtoken::errors::Error,
    },
    /// The mode is known and not there yet.
    #[error("auth mode {0} is not available in this version")]
    NotBuilt(&'static str),
    /// This mode verifies tokens of somebody else and cannot make any.
    #[error("tokens can only be made in the modes dev and hs256")]
    CannotSign,
    /// Signing failed.
    #[error("the token could not be signed")]
    Sign(#[source] jsonwebtoken::errors::Error),
}

/// What a token made here says.
#[derive(Debug, Clone)]
pub struct Claims {
    /// `sub`.
    pub user: String,
    /// The tenant claim.
    pub tenant: Option<String>,
    /// The roles claim.
    pub roles: Vec<String>,
    /// How long it is good for.
    pub ttl: Duration,
}

impl Jwt {
    pub(super) fn hs256(config: &Config, secret: &SecretString) -> Result<Self, AuthSetupError> {
        let secret = secret.expose_secret().as_bytes();
        if secret.len() < MIN_SECRET_BYTES {
            return Err(AuthSetupError::WeakSecret);
        }
        let signing = Some(EncodingKey::from_secret(secret));
        Ok(Self::new(config, DecodingKey::from_secret(secret), signing, Algorithm::HS256))
    }

    pub(super) fn rs256(config: &Config) -> Result<Self, AuthSetupError> {
        let path = config.rs256_public_key_file.clone();
        let pem = std::fs::read(&path).map_err(|error| AuthSetupError::File { path: path.clone(), error })?;
        let key = DecodingKey::from_rsa_pem(&pem).map_err(|error| AuthSetupError::BadKey { path, error })?;
        Ok(Self::new(config, key, None, Algorithm::RS256))
    }

    fn new(config: &Config, verifying: DecodingKey, signing: Option<EncodingKey>, algorithm: Algorithm) -> Self {
        let mut validation = Validation::new(algorithm);
        validation.leeway = config.leeway_s;
        validation.validate_nbf = true;
        validation.set_required_spec_claims(&["exp", "sub"]);
        match config.audience.as_str() {
            "" => validation.validate_aud = false,
            audience => {
                validation.set_audience(&[audience]);
                validation.required_spec_claims.insert("aud".to_owned());
            }
        }
        if !config.issuer.is_empty() {
            validation.set_issuer(&[&config.issuer]);
            validation.required_spec_claims.insert("iss".to_owned());
        }
        Self {
            verifying,
            signing,
            validation,
            algorithm,
            issuer: config.issuer.clone(),
            audience: config.audience.clone(),
            tenant_claim: config.tenant_claim.clone(),
            roles_claim: config.roles_claim.clone(),
        }
    }

    /// A token that this verifier accepts.
    ///
    /// # Errors
    /// [`AuthSetupError::CannotSign`] in modes that hold no signing key.
    pub fn sign(&self, claims: &Claims, now_s: u64) -> Result<String, AuthSetupError> {
        let Some(signing) = &self.signing else { return Err(AuthSetupError::CannotSign) };
        let mut body = Map::new();
        body.insert("sub".to_owned(), json!(claims.user));
        body.insert("iat".to_owned(), json!(now_s));
        body.insert("exp".to_owned(), json!(now_s.saturating_add(claims.ttl.as_secs())));
        if let Some(tenant) = &claims.tenant {
            body.insert(self.tenant_claim.clone(), json!(tenant));
        }
        if !claims.roles.is_empty() {
            body.insert(self.roles_claim.clone(), json!(claims.roles));
        }
        for (claim, value) in [("iss", &self.issuer), ("aud", &self.audience)] {
            if !value.is_empty() {
                body.insert(claim.to_owned(), json!(value));
            }
        }
        encode(&Header::new(self.algorithm), &body, signing).map_err(AuthSetupError::Sign)
    }
}

impl Authenticator for Jwt {
    fn authenticate(&self, token: &str) -> Result<Caller, AuthError> {
        let claims =
            decode::<Map<String, Value>>(token, &self.verifying, &self.validation).map_err(|e| refused(&e))?.claims;
        // The library would take a list of issuers too; an issuer is one text (RFC 7519, section 4.1.1).
        if !self.issuer.is_empty() && claims.get("iss").and_then(Value::as_str) != Some(self.issuer.as_str()) {
            return Err(AuthError::Invalid("its issuer is not accepted"));
        }
        let user = match claims.get("sub").and_then(Value::as_str) {
            Some(user) if !user.trim().is_empty() && user.len() <= 256 => user.to_owned(),
            Some(_) | None => return Err(AuthError::Invalid("sub is empty or too long")),
        };
        let tenant = match claims.get(&self.tenant_claim) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(tenant)) if tenant.len() <= 256 => tenant.clone(),
            Some(_) => return Err(AuthError::Invalid("the tenant claim is not a short string")),
        };
        let roles = match claims.get(&self.roles_claim) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(roles)) => roles.split_whitespace().map(str::to_owned).collect(),
            Some(Value::Array(roles)) => roles.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            Some(_) => return Err(AuthError::Invalid("the roles claim is not a list")),
        };
        Ok(Caller { owner: Owner { tenant, user }, roles, bearer: Bearer::new(token) })
    }
}

fn refused(error: &jsonwebtoken::errors::Error) -> AuthError {
    match error.kind() {
        ErrorKind::ExpiredSignature => AuthError::Expired,
        ErrorKind::InvalidSignature => AuthError::Invalid("its signature is wrong"),
        ErrorKind::InvalidAlgorithm | ErrorKind::InvalidAlgorithmName | ErrorKind::MissingAlgorithm => {
            AuthError::Invalid("its algorithm is not accepted")
        }
        ErrorKind::MissingRequiredClaim(_) => AuthError::Invalid("a required claim is missing"),
        ErrorKind::InvalidIssuer => AuthError::Invalid("its issuer is not accepted"),
        ErrorKind::InvalidAudience => AuthError::Invalid("its audience is not accepted"),
        ErrorKind::ImmatureSignature => AuthError::Invalid("it is not valid yet"),
        ErrorKind::InvalidClaimFormat(_) => AuthError::Invalid("a claim has the wrong type"),
        // The kinds are the library's and may grow; whatever else it is, the token cannot be read.
        _ => AuthError::Invalid("it cannot be read"),
    }
}
