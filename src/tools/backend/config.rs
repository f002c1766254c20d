//! `[backend]` and `[backends.NAME]`: where the REST APIs are, and who calls them.

use std::collections::BTreeMap;

use reqwest::Url;
use serde::Deserialize;

use crate::bounded::address::{is_loopback, is_metadata_host};
use crate::tools::secret::{Secret, header};

/// What stands for the caller's tenant in `scope` and `audience`.
pub(super) const TENANT: &str = "{tenant}";

/// `[backends.NAME]`: one more REST API, which tools and data loaders name.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedBackend {
    /// The API root.
    pub base_url: String,
    /// Seconds for a whole call; 0 means none.
    pub timeout_s: u64,
    /// Whose credentials a request has.
    pub credentials: Credentials,
    /// With `none` and `static`: sent as `Authorization: Bearer`; empty sends none.
    pub api_key: Secret,
    /// Where tokens for it are given, with `client_credentials` and `token_exchange`.
    pub token_url: String,
    /// The name by which the issuer knows this server.
    pub client_id: String,
    /// The secret of that name.
    pub client_secret: Secret,
    /// The scope of the tokens; `{tenant}` in it stands for the caller's tenant.
    pub scope: String,
    /// For whom the tokens are; `{tenant}` as in `scope`.
    pub audience: String,
    /// Headers of every request.
    pub headers: BTreeMap<String, Secret>,
    /// The credentials by which directives are sent whose caller is not there.
    pub service: ServiceConfig,
}

/// A service's own credentials for a backend.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceConfig {
    /// Which ones.
    pub mode: ServiceMode,
    /// `token`: one secret for all tenants.
    pub token: Secret,
    /// `client_credentials`: where tokens are given.
    pub token_url: String,
    /// The name by which the issuer knows this server.
    pub client_id: String,
    /// The secret of that name.
    pub client_secret: Secret,
    /// The scope of the tokens; `{tenant}` in it stands for the tenant.
    pub scope: String,
    /// For whom the tokens are; `{tenant}` as in `scope`.
    pub audience: String,
}

/// Which credentials a service has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceMode {
    /// None: nothing is sent without its caller.
    Off,
    /// A secret of the settings.
    Token,
    /// A token for each tenant (RFC 6749, section 4.4).
    ClientCredentials,
}

/// Whose credentials a request to a backend has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Credentials {
    /// The caller's token, as to `[backend]`.
    Caller,
    /// Never the caller's.
    None,
    /// A secret of the settings.
    Static,
    /// A token of this server's own for the caller's tenant (RFC 6749, section 4.4).
    ClientCredentials,
    /// A token for this backend in exchange for the caller's (RFC 8693).
    TokenExchange,
}

/// How a token is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grant {
    /// For this server, by tenant.
    ClientCredentials,
    /// For a caller, by their own token.
    TokenExchange,
}

impl Credentials {
    /// As they stand in the settings.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::None => "none",
            Self::Static => "static",
            Self::ClientCredentials => "client_credentials",
            Self::TokenExchange => "token_exchange",
        }
    }

    /// How the tokens are asked for, where an issuer gives them.
    pub(super) fn grant(self) -> Option<Grant> {
        match self {
            Self::Caller | Self::None | Self::Static => None,
            Self::ClientCredentials => Some(Grant::ClientCredentials),
            Self::TokenExchange => Some(Grant::TokenExchange),
        }
    }
}

impl NamedBackend {
    /// The settings of it that name the caller's tenant.
    pub fn naming_tenant(&self) -> impl Iterator<Item = &'static str> {
        let named = [("scope", &self.scope), ("audience", &self.audience)].into_iter();
        named.filter(|(_, text)| text.contains(TENANT)).map(|(key, _)| key)
    }

    /// What is wrong with it: key and reason, never a secret. The address is checked elsewhere.
    pub fn mistakes(&self) -> Vec<(String, String)> {
        let mut mistakes = Vec::new();
        let mut wrong = |key: &str, reason: &str| mistakes.push((key.to_owned(), reason.to_owned()));
        let has_key = !self.api_key.expose().is_empty();
        let is_own = matches!(self.credentials, Credentials::None | Credentials::Static);
        if has_key && !is_own {
            wrong("api_key", "is of use only with credentials = \"none\" or \"static\"");
        }
        if self.credentials == Credentials::Static && !has_key && self.headers.is_empty() {
            wrong("credentials", "\"static\" needs an api_key or a header");
        }
        let of_issuer = [
            ("token_url", self.token_url.as_str()),
            ("client_id", &self.client_id),
            ("client_secret", self.client_secret.expose()),
            ("scope", &self.scope),
            ("audience", &self.audience),
        ];
        match self.credentials.grant() {
            None => {
                for (key, _) in of_issuer.into_iter().filter(|(_, value)| !value.is_empty()) {
                    wrong(key, "is of use only with credentials = \"client_credentials\" or \"token_exchange\"");
                }
            }
            Some(_) => {
                for (key, _) in of_issuer.into_iter().take(3).filter(|(_, value)| value.is_empty()) {
                    wrong(key, "is required with these credentials");
                }
                if !self.token_url.is_empty() && token_url(&self.token_url).is_none() {
                    wrong(
                        "token_url",
                        "must be an https:// address without a user, password or fragment, or http:// on this machine",
                    );
                }
            }
        }
        if has_key && header("authorization", &self.api_key).is_err() {
            wrong("api_key", "has characters that no http header can carry");
        }
        for (name, value) in &self.headers {
            let key = format!("headers.{name}");
            match name.to_ascii_lowercase().as_str() {
                "authorization" if has_key => wrong(&key, "must not be given beside api_key"),
                "authorization" | "cookie" if !is_own => {
                    wrong(&key, "is taken by these credentials: it is of use only with \"none\" and \"static\"");
                }
                "idempotency-key" => wrong(&key, "is the key of each write"),
                _ => {
                    if let Err(reason) = header(name, value) {
                        wrong(&key, reason);
                    }
                }
            }
        }
        mistakes
    }
}

/// The address of an issuer: a secret is sent there, so it is https but on this machine. Who this server is stands in
/// `client_id` and `client_secret` alone.
pub(super) fn token_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let names_user = !url.username().is_empty() || url.password().is_some();
    if url.fragment().is_some() || names_user || is_metadata_host(&url) {
        return None;
    }
    (url.scheme() == "https" && url.has_host() || url.scheme() == "http" && is_loopback(&url)).then_some(url)
}
