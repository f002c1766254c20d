//! Tokens of this server's own for a server of tools, which is asked for no caller (RFC 6749, section 4.4).

use std::sync::Arc;

use secrecy::SecretString;

use super::asking::Asker;
use super::config::{Credentials, NamedBackend, token_url};
use super::error::NoToken;
use super::issued::{Issued, Issuer};
use crate::agent::ports::clock::{Clock, SystemClock};
use crate::chat::caller::{Bearer, Caller, Owner};

/// The tokens for one server. They are kept in memory, and replaced before their end.
#[derive(Debug)]
pub struct MachineTokens {
    issuer: Issuer,
    nobody: Caller,
}

/// A token.
#[derive(Debug, Clone)]
pub struct MachineToken(Arc<Issued>);

impl MachineToken {
    /// Its text, for the one function that puts it on the wire.
    pub fn text(&self) -> &SecretString {
        &self.0.token
    }
}

impl MachineTokens {
    /// Those for the server of that name, which `config` says how to get, for this address (RFC 8707); `None` where it says
    /// nothing of an issuer.
    ///
    /// # Errors
    /// When the TLS setup fails.
    pub fn new(name: &str, config: &NamedBackend, resource: &str) -> Result<Option<Self>, reqwest::Error> {
        let grant = Credentials::ClientCredentials.grant();
        let Some(at) = token_url(&config.token_url).zip(grant) else { return Ok(None) };
        let asker = Asker::new((name, config), at, || SystemClock.now_ms())?.for_resource(resource);
        let nobody = Caller {
            owner: Owner { tenant: String::new(), user: String::new() },
            known_as: None,
            expires_at_ms: None,
            roles: Vec::new(),
            bearer: Bearer::new(""),
            cookie: None,
        };
        Ok(Some(Self { issuer: Issuer::new(asker), nobody }))
    }

    /// The token to send now. Those who ask at once wait for one.
    ///
    /// # Errors
    /// When there is none to be had.
    pub async fn token(&self) -> Result<MachineToken, NoToken> {
        self.issuer.token(&self.nobody).await.map(MachineToken)
    }

    /// The one in the place of `refused`; `None` where it is refused as soon after another one.
    ///
    /// # Errors
    /// When there is none to be had.
    pub async fn fresh(&self, refused: &MachineToken) -> Result<Option<MachineToken>, NoToken> {
        Ok(self.issuer.fresh(&self.nobody, &refused.0).await?.map(MachineToken))
    }
}
