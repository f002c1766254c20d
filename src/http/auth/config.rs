//! `[auth]` and `[auth.issuers.NAME]`: whose tokens are accepted, and what their claims are called.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::address::source;
use super::cookie::is_cookie_name;
use super::keys::Key;
use super::session::SessionConfig;
use super::{AuthSetupError, MIN_SECRET_BYTES, keys};
use crate::chat::causes::Causes;

/// An hour: clocks that differ by more are broken, and a token must end some time.
const MAX_LEEWAY_S: u64 = 3600;

/// 32 characters of an issuer's name: it stands before every tenant of its users.
const NAME_CHARS: usize = 32;

/// 256 bytes of a tenant that the settings fix, as many as a claim may have.
const MAX_TENANT_BYTES: usize = 256;

/// `[auth]`: whose tokens are accepted.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuthConfig {
    /// How tokens are verified.
    pub mode: Mode,
    /// The file with the secret that `dev` makes for itself.
    pub dev_secret_file: String,
    /// `hs256`: the shared secret, at least 32 bytes.
    pub hs256_secret: SecretString,
    /// `rs256`: a PEM file with the issuer's public key.
    pub rs256_public_key_file: String,
    /// `jwks`: where the issuer publishes its keys; empty asks the issuer where (OpenID Connect Discovery).
    pub jwks_url: String,
    /// Seconds between two looks at an issuer's keys.
    pub jwks_refresh_s: u64,
    /// Seconds between two looks at most, however many tokens name keys that are not known.
    pub jwks_cooldown_s: u64,
    /// Seconds for which keys are good when their issuer cannot be reached.
    pub jwks_stale_s: u64,
    /// The `iss` that tokens must have; empty accepts any.
    pub issuer: String,
    /// The `aud` that tokens must name; empty accepts any.
    pub audience: String,
    /// The scopes that clients of `/mcp` are told to ask for.
    pub scopes: Vec<String>,
    /// The claim with the audience: a name, or a list of them.
    pub audience_claim: String,
    /// The `typ` that tokens must have in their header, such as `at+jwt`; empty accepts any.
    pub typ: String,
    /// Seconds of clock difference that `exp`, `nbf` and `iat` tolerate.
    pub leeway_s: u64,
    /// The claim with the tenant; a dot leads into an object.
    pub tenant_claim: String,
    /// The claim with the roles: a list of strings, or one string with blanks between.
    pub roles_claim: String,
    /// The address that renews tokens near their end; empty: none. A caller's token is sent there, as it is to backends
    /// with the caller's credentials and to the `token_url` of those that have it exchanged.
    pub renew_url: String,
    /// Seconds before a token's end from which on it is renewed.
    pub renew_before_s: u64,
    /// The cookie that carries the token where there is no `Authorization`; empty is none.
    pub cookie: String,
    /// Who gives tokens in exchange for sessions.
    pub session: SessionConfig,
    /// Users whom front ends name behind one token.
    pub forwarded: ForwardedConfig,
    /// Whether tokens without a tenant are refused.
    pub require_tenant: bool,
    /// Whether the settings have to name an audience.
    pub require_audience: bool,
    /// More issuers, by a name of the operator's own.
    pub issuers: BTreeMap<String, Issuer>,
}

impl Default for AuthConfig {
    fn default() -> Self {
        Self {
            mode: Mode::Dev,
            dev_secret_file: "data/dev-secret".to_owned(),
            hs256_secret: SecretString::default(),
            rs256_public_key_file: String::new(),
            jwks_url: String::new(),
            jwks_refresh_s: 300,
            jwks_cooldown_s: 60,
            jwks_stale_s: 86_400,
            issuer: String::new(),
            audience: String::new(),
            scopes: Vec::new(),
            audience_claim: "aud".to_owned(),
            typ: String::new(),
            leeway_s: 30,
            tenant_claim: "tenant".to_owned(),
            roles_claim: "roles".to_owned(),
            renew_url: String::new(),
            renew_before_s: 300,
            cookie: String::new(),
            session: SessionConfig::default(),
            forwarded: ForwardedConfig::default(),
            require_tenant: false,
            require_audience: false,
            issuers: BTreeMap::new(),
        }
    }
}

/// How tokens are verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// HS256 with a secret of our own making; loopback only.
    Dev,
    /// HS256 with a shared secret.
    Hs256,
    /// RS256 with a public key from a file.
    Rs256,
    /// Keys that issuers publish.
    Jwks,
}

/// `[auth.forwarded]`: the users of a front end's connection.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ForwardedConfig {
    /// The secret with which the front end signs who its user is (HS256), at least 32 bytes; empty: its users are one.
    pub secret: SecretString,
    /// The header with what it has signed, a JWT.
    pub header: String,
    /// The `iss` of that JWT; empty accepts any.
    pub issuer: String,
    /// The claim with the user.
    pub user_claim: String,
    /// Whether a user of the front end is the one of this server, in the connection's tenant, whose token names the same.
    pub same_users: bool,
}

impl Default for ForwardedConfig {
    fn default() -> Self {
        Self {
            secret: SecretString::default(),
            header: "x-openwebui-user-jwt".to_owned(),
            issuer: "open-webui".to_owned(),
            user_claim: "sub".to_owned(),
            same_users: false,
        }
    }
}

impl ForwardedConfig {
    /// The mistakes in it: key and reason, never the secret.
    fn mistakes(&self) -> Vec<(&'static str, String)> {
        let mut mistakes = Vec::new();
        let secret = self.secret.expose_secret();
        if !secret.is_empty() && secret.len() < MIN_SECRET_BYTES {
            mistakes.push(("secret", format!("must have at least {MIN_SECRET_BYTES} bytes")));
        }
        if self.header.is_empty() || self.header.parse::<axum::http::HeaderName>().is_err() {
            mistakes.push(("header", "is not the name of a header".to_owned()));
        }
        if self.user_claim.is_empty() {
            mistakes.push(("user_claim", "is required".to_owned()));
        }
        mistakes
    }
}

/// `[auth.issuers.NAME]`: one more issuer. Its users are its own, even with a `sub` and a tenant of another issuer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Issuer {
    /// The `iss` of its tokens, by which it is chosen.
    pub issuer: String,
    /// The audiences of which its tokens must name one.
    pub audience: Vec<String>,
    /// As [`AuthConfig::audience_claim`].
    pub audience_claim: String,
    /// The address of its keys; empty: from its discovery document, unless there is a file.
    pub jwks_url: String,
    /// A PEM file with its public key, instead of published ones.
    pub public_key_file: String,
    /// As [`AuthConfig::typ`].
    pub typ: String,
    /// As [`AuthConfig::leeway_s`].
    pub leeway_s: u64,
    /// The tenant of all its users; empty takes the claim.
    pub tenant: String,
    /// As [`AuthConfig::tenant_claim`].
    pub tenant_claim: String,
    /// As [`AuthConfig::roles_claim`].
    pub roles_claim: String,
    /// The roles that its users may have; others in its tokens are left out. Empty is all.
    pub roles: Vec<String>,
}

impl Default for Issuer {
    fn default() -> Self {
        let AuthConfig { audience_claim, typ, leeway_s, tenant_claim, roles_claim, .. } = AuthConfig::default();
        Self {
            issuer: String::new(),
            audience: Vec::new(),
            audience_claim,
            jwks_url: String::new(),
            public_key_file: String::new(),
            typ,
            leeway_s,
            tenant: String::new(),
            tenant_claim,
            roles_claim,
            roles: Vec::new(),
        }
    }
}

/// The mistake in a key's file. How a key is no key says nothing to whoever has named the file.
fn reason(error: &AuthSetupError) -> String {
    match matches!(error, AuthSetupError::File { .. }) {
        true => Causes(error).to_string(),
        false => error.to_string(),
    }
}

impl AuthConfig {
    /// Whether [`Self::mode`] speaks for an issuer itself, beside the named ones.
    pub(super) fn speaks_for_itself(&self) -> bool {
        match self.mode {
            Mode::Dev | Mode::Hs256 | Mode::Rs256 => true,
            Mode::Jwks => self.issuers.is_empty() || !self.issuer.is_empty() || !self.jwks_url.is_empty(),
        }
    }

    /// Whether two issuers may have tenants of one name: there are several, and one of them is free to name any.
    pub fn may_share_tenants(&self) -> bool {
        let own = usize::from(self.speaks_for_itself());
        own + self.issuers.len() > 1 && (own > 0 || self.issuers.values().any(|issuer| issuer.tenant.is_empty()))
    }

    /// The mistakes in it: key below `auth` and reason, never a secret.
    pub fn mistakes(&self) -> Vec<(String, String)> {
        let mut mistakes = Vec::new();
        let mut wrong = |key: &str, reason: &str| mistakes.push((key.to_owned(), reason.to_owned()));
        if self.leeway_s > MAX_LEEWAY_S {
            wrong("leeway_s", &format!("must be at most {MAX_LEEWAY_S}"));
        }
        for (key, seconds, most) in [
            ("jwks_refresh_s", self.jwks_refresh_s, 86_400),
            ("jwks_cooldown_s", self.jwks_cooldown_s, 3600),
            ("jwks_stale_s", self.jwks_stale_s, 604_800),
            ("renew_before_s", self.renew_before_s, 86_400),
        ] {
            if !(1..=most).contains(&seconds) {
                wrong(key, &format!("must be 1 to {most}"));
            }
        }
        if !self.renew_url.is_empty()
            && let Err(reason) = source(&self.renew_url)
        {
            wrong("renew_url", reason);
        }
        if !is_cookie_name(&self.cookie) {
            wrong("cookie", "has characters that no name of a cookie has");
        }
        for (key, reason) in self.session.mistakes() {
            wrong(&format!("session.{key}"), &reason);
        }
        for (key, reason) in self.forwarded.mistakes() {
            wrong(&format!("forwarded.{key}"), &reason);
        }
        if !self.cookie.is_empty() && !self.session.cookie.is_empty() {
            wrong("session.cookie", "must be empty beside auth.cookie: one cookie says who calls");
        }
        match self.mode {
            Mode::Dev => {}
            Mode::Hs256 => {
                if self.hs256_secret.expose_secret().len() < MIN_SECRET_BYTES {
                    wrong("hs256_secret", "must have at least 32 bytes");
                }
            }
            Mode::Rs256 => match self.rs256_public_key_file.as_str() {
                "" => wrong("rs256_public_key_file", "is required with auth.mode \"rs256\""),
                path => {
                    if let Err(error) = keys::rs256_file(path) {
                        wrong("rs256_public_key_file", &reason(&error));
                    }
                }
            },
            Mode::Jwks if !self.speaks_for_itself() => {}
            Mode::Jwks => {
                if self.audience.is_empty() {
                    wrong("audience", "is required with auth.mode \"jwks\": its issuer makes tokens for others too");
                }
                if let Err(reason) = published(&self.issuer, &self.jwks_url) {
                    wrong(reason.0, reason.1);
                }
            }
        }
        if self.require_tenant && self.mode == Mode::Dev {
            wrong("require_tenant", "must be false with auth.mode \"dev\": its tokens name no tenant by themselves");
        }
        if self.require_audience && matches!(self.mode, Mode::Hs256 | Mode::Rs256) && self.audience.is_empty() {
            wrong("audience", "is required with auth.require_audience");
        }
        if !self.issuers.is_empty() && self.speaks_for_itself() && self.issuer.is_empty() {
            wrong(
                "issuer",
                "is required beside auth.issuers, unless auth.mode is \"jwks\": who speaks for a token is chosen by its issuer",
            );
        }
        self.issuer_mistakes(&mut mistakes);
        mistakes
    }

    /// Settings that are allowed, and weaker than they could be; for the operator.
    pub fn weaknesses(&self) -> Vec<String> {
        let mode = match self.mode {
            Mode::Dev => return Vec::new(),
            Mode::Hs256 => "hs256",
            Mode::Rs256 => "rs256",
            Mode::Jwks if !self.speaks_for_itself() => return Vec::new(),
            Mode::Jwks => "jwks",
        };
        let open = [
            ("auth.audience", &self.audience, "made for somebody else"),
            ("auth.issuer", &self.issuer, "of another issuer"),
        ];
        let open = open.into_iter().filter(|(_, value, _)| value.is_empty());
        open.map(|(key, _, whose)| {
            format!("{key} is empty with auth.mode \"{mode}\": a token {whose} is accepted if it is signed with the same key")
        })
        .collect()
    }

    fn issuer_mistakes(&self, mistakes: &mut Vec<(String, String)>) {
        let mut taken: BTreeMap<&str, String> = BTreeMap::new();
        if self.speaks_for_itself() && !self.issuer.is_empty() {
            taken.insert(&self.issuer, "issuer".to_owned());
        }
        for (name, issuer) in &self.issuers {
            let mut wrong = |key: &str, reason: String| mistakes.push((format!("issuers.{name}.{key}"), reason));
            for (key, reason) in issuer.mistakes() {
                wrong(key, reason);
            }
            match taken.entry(&issuer.issuer) {
                _ if issuer.issuer.is_empty() => {}
                Entry::Occupied(first) => wrong("issuer", format!("is that of auth.{} already", first.get())),
                Entry::Vacant(free) => drop(free.insert(format!("issuers.{name}"))),
            }
        }
        let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        for name in self.issuers.keys() {
            if name.is_empty() || name.len() > NAME_CHARS || !name.bytes().all(is_plain) {
                let reason = format!("an issuer's name must be 1 to {NAME_CHARS} of a-z 0-9 -");
                mistakes.push((format!("issuers.{name}"), reason));
            }
        }
    }
}

impl Issuer {
    fn mistakes(&self) -> Vec<(&'static str, String)> {
        let mut mistakes = Vec::new();
        let mut wrong = |key, reason: &str| mistakes.push((key, reason.to_owned()));
        if self.audience.is_empty() || self.audience.iter().any(String::is_empty) {
            wrong("audience", "is required: an issuer makes tokens for others too");
        }
        if self.leeway_s > MAX_LEEWAY_S {
            wrong("leeway_s", &format!("must be at most {MAX_LEEWAY_S}"));
        }
        if self.tenant.len() > MAX_TENANT_BYTES {
            wrong("tenant", &format!("must be at most {MAX_TENANT_BYTES} bytes"));
        }
        match (self.public_key_file.as_str(), self.jwks_url.as_str()) {
            ("", url) => {
                if let Err((key, reason)) = published(&self.issuer, url) {
                    wrong(key, reason);
                }
            }
            (path, "") => {
                if self.issuer.is_empty() {
                    wrong("issuer", "is required");
                }
                if let Err(error) = Key::from_file(path) {
                    wrong("public_key_file", &reason(&error));
                }
            }
            (_, _) => wrong("public_key_file", "must not be given beside jwks_url"),
        }
        mistakes
    }
}

/// Whether an issuer publishes its keys.
fn published(issuer: &str, jwks_url: &str) -> Result<(), (&'static str, &'static str)> {
    if issuer.is_empty() {
        return Err(("issuer", "is required"));
    }
    match jwks_url {
        "" => source(issuer).map(drop).map_err(|reason| ("issuer", reason)),
        url => source(url).map(drop).map_err(|reason| ("jwks_url", reason)),
    }
}
