//! Tokens made here, in `dev` and `hs256`: what `switchboard token` prints.

use std::time::Duration;

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Map, json};

use super::{AuthConfig, AuthSetupError};

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

/// Makes tokens that the same settings accept.
pub(super) struct Signer {
    key: EncodingKey,
    typ: String,
    issuer: String,
    audience: String,
    audience_claim: String,
    tenant_claim: String,
    roles_claim: String,
}

impl Signer {
    pub(super) fn new(config: &AuthConfig, secret: &[u8]) -> Self {
        Self {
            key: EncodingKey::from_secret(secret),
            typ: config.typ.clone(),
            issuer: config.issuer.clone(),
            audience: config.audience.clone(),
            audience_claim: config.audience_claim.clone(),
            tenant_claim: config.tenant_claim.clone(),
            roles_claim: config.roles_claim.clone(),
        }
    }

    /// A token that begins at `now_s`.
    pub(super) fn sign(&self, claims: &Claims, now_s: u64) -> Result<String, AuthSetupError> {
        let mut body = Map::new();
        body.insert("sub".to_owned(), json!(claims.user));
        body.insert("iat".to_owned(), json!(now_s));
        body.insert("exp".to_owned(), json!(now_s.saturating_add(claims.ttl.as_secs())));
        // A name with dots stands as it is: it is looked for like that first.
        if let Some(tenant) = &claims.tenant {
            body.insert(self.tenant_claim.clone(), json!(tenant));
        }
        if !claims.roles.is_empty() {
            body.insert(self.roles_claim.clone(), json!(claims.roles));
        }
        for (claim, value) in [("iss", &self.issuer), (self.audience_claim.as_str(), &self.audience)] {
            if !value.is_empty() {
                body.insert(claim.to_owned(), json!(value));
            }
        }
        let mut header = Header::new(Algorithm::HS256);
        if !self.typ.is_empty() {
            header.typ = Some(self.typ.clone());
        }
        encode(&header, &body, &self.key).map_err(AuthSetupError::Sign)
    }
}
