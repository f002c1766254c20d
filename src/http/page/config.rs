//! `[page]`: what operators say of the chat page.

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use crate::http::auth::{SignInConfig, TokenKind, is_source};

/// `[page]`: how the page calls itself and looks, and how its users sign in.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PageConfig {
    /// What it is called; empty: Switchboard.
    pub name: String,
    /// The file of its drawing, SVG or PNG; empty: our own.
    pub logo: String,
    /// Its colour, `#rrggbb`; empty: our own.
    pub accent: String,
    /// What a new conversation offers to say, instead of what profiles offer.
    pub starters: Vec<String>,
    /// The issuer at which users sign in (OpenID Connect); empty: they paste a token.
    pub oidc_issuer: String,
    /// The page's id there.
    pub oidc_client_id: String,
    /// Its secret there; empty for a public client.
    pub oidc_client_secret: SecretString,
    /// What is asked for, with blanks between. It has `openid`.
    pub oidc_scope: String,
    /// For whom the access token is asked, where the issuer wants to be told; empty: it is not.
    pub oidc_audience: String,
    /// Which token the page sends.
    pub oidc_token: TokenKind,
}

impl Default for PageConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            logo: String::new(),
            accent: String::new(),
            starters: Vec::new(),
            oidc_issuer: String::new(),
            oidc_client_id: String::new(),
            oidc_client_secret: SecretString::default(),
            oidc_scope: "openid profile email".to_owned(),
            oidc_audience: String::new(),
            oidc_token: TokenKind::Access,
        }
    }
}

impl PageConfig {
    /// Where users sign in; `None` where they paste a token.
    pub fn sign_in(&self) -> Option<SignInConfig> {
        let Self { oidc_issuer, oidc_client_id, oidc_client_secret, oidc_scope, oidc_audience, oidc_token, .. } = self;
        (!oidc_issuer.is_empty()).then(|| SignInConfig {
            issuer: oidc_issuer.clone(),
            client_id: oidc_client_id.clone(),
            client_secret: oidc_client_secret.clone(),
            scope: oidc_scope.clone(),
            audience: oidc_audience.clone(),
            token: *oidc_token,
        })
    }

    /// The mistakes in how users sign in: key and reason.
    pub fn mistakes(&self) -> Vec<(&'static str, String)> {
        let mut mistakes = Vec::new();
        let mut wrong = |key, reason: &str| mistakes.push((key, reason.to_owned()));
        match (self.oidc_issuer.as_str(), self.oidc_client_id.as_str()) {
            ("", "") => {
                if !self.oidc_client_secret.expose_secret().is_empty() {
                    wrong("oidc_client_secret", "is of use only with page.oidc_issuer");
                }
            }
            ("", _) => wrong("oidc_issuer", "is required with page.oidc_client_id"),
            (_, "") => wrong("oidc_client_id", "is required with page.oidc_issuer"),
            (issuer, _) => {
                if let Err(reason) = is_source(issuer) {
                    wrong("oidc_issuer", reason);
                }
            }
        }
        if !self.oidc_scope.split(' ').any(|scope| scope == "openid") {
            wrong("oidc_scope", "must have openid");
        }
        mistakes
    }
}
