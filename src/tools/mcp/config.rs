//! `[mcp.NAME]`: where a server of tools is, and what the operator lets it do.

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use url::Url;

use crate::chat::approval::Consent;
use crate::tools::backend::{Credentials, NamedBackend};
use crate::tools::secret::{Secret, header};

/// `[mcp.NAME]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpConfig {
    /// Its address for streamable HTTP; empty for a program. It is never printed: its path may have a key.
    pub url: Secret,
    /// The program that speaks it on standard input and output; empty for an address.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, beside [`Self::inherited`].
    pub env: BTreeMap<String, Secret>,
    /// Headers of every request.
    pub headers: BTreeMap<String, Secret>,
    /// The section of `[backends]` that says what its requests present, and where it is when `url` does not; empty: none.
    pub backend: String,
    /// Where tokens of this server's own for it are given (RFC 6749, section 4.4); empty: it wants none, or `headers` have one.
    pub token_url: String,
    /// The name by which the issuer knows this server.
    pub client_id: String,
    /// The secret of that name.
    pub client_secret: Secret,
    /// The scope of the tokens.
    pub scope: String,
    /// For whom the tokens are, where the issuer wants it named.
    pub audience: String,
    /// Whether its issuer is told for which address they are; Entra ID refuses that (AADSTS901002).
    pub send_resource: bool,
    /// Seconds for a call.
    pub timeout_s: u64,
    /// Seconds until a new connection has listed its tools.
    pub connect_timeout_s: u64,
    /// The tools that are taken, by the server's names; empty takes all.
    pub tools: Vec<String>,
    /// The caller's token must list one of them; empty: all callers.
    pub roles: Vec<String>,
    /// The approval of a call that does not only read: `auto`, `user` or `role:NAME`.
    pub approval: String,
    /// Whether another user than the run's has to approve; only with a role.
    pub not_requester: bool,
    /// The tools that only read, by the server's names; empty believes the server.
    pub read_only: Vec<String>,
    /// The definitions that the operator has seen, by the server's names; empty keeps the first that is seen.
    pub pins: BTreeMap<String, String>,
    /// What a program gets of our own environment; filled by the configuration.
    #[serde(skip)]
    pub inherited: BTreeMap<String, String>,
}

impl Default for McpConfig {
    fn default() -> Self {
        Self {
            url: Secret(SecretString::default()),
            command: String::new(),
            args: Vec::new(),
            env: BTreeMap::new(),
            headers: BTreeMap::new(),
            backend: String::new(),
            token_url: String::new(),
            client_id: String::new(),
            client_secret: Secret(SecretString::default()),
            scope: String::new(),
            audience: String::new(),
            send_resource: true,
            timeout_s: 30,
            connect_timeout_s: 10,
            tools: Vec::new(),
            roles: Vec::new(),
            approval: "user".to_owned(),
            not_requester: false,
            read_only: Vec::new(),
            pins: BTreeMap::new(),
            inherited: BTreeMap::new(),
        }
    }
}

impl McpConfig {
    /// The mistakes in it: key and reason, never a secret. Addresses are checked elsewhere.
    pub fn mistakes(&self) -> Vec<(String, String)> {
        let mut mistakes = Vec::new();
        let mut wrong = |key: &str, reason: &str| mistakes.push((key.to_owned(), reason.to_owned()));
        match (self.url.expose().is_empty(), self.command.is_empty()) {
            (true, true) if !self.backend.is_empty() => {}
            (true, true) => wrong("url", "is required, or else command"),
            (true, false) if !self.backend.is_empty() => wrong("backend", "must not be given beside command"),
            (false, false) => wrong("command", "must not be given beside url"),
            (true, false) if !self.headers.is_empty() => wrong("headers", "are of use only with url"),
            (false, true) if !self.args.is_empty() => wrong("args", "are of use only with command"),
            (false, true) if !self.env.is_empty() => wrong("env", "is of use only with command"),
            (true, false) | (false, true) => {}
        }
        self.issuer_mistakes(&mut wrong);
        for (key, seconds) in [("timeout_s", self.timeout_s), ("connect_timeout_s", self.connect_timeout_s)] {
            if !(1..=3600).contains(&seconds) {
                wrong(key, "must be 1 to 3600");
            }
        }
        if self.consent().is_none() {
            wrong("approval", "must be auto, user or role:NAME");
        }
        if self.not_requester && !self.approval.starts_with("role:") {
            wrong("not_requester", "is of use only with approval = \"role:NAME\"");
        }
        for (name, value) in &self.headers {
            let key = format!("headers.{name}");
            if let Err(reason) = header(name, value) {
                wrong(&key, reason);
            }
        }
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) || value.0.expose_secret().contains('\0') {
                wrong(&format!("env.{name}"), "is not a variable that a program can be given");
            }
        }
        for (tool, pin) in &self.pins {
            if pin.len() != 64 || !pin.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
                wrong(
                    &format!("pins.{tool}"),
                    "must be a sha-256 in 64 digits 0-9 a-f; `switchboard mcp-tools` prints it",
                );
            }
        }
        mistakes
    }

    /// Those about who gives tokens.
    fn issuer_mistakes(&self, wrong: &mut impl FnMut(&str, &str)) {
        let names_authorization = self.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        let others = [
            ("client_id", self.client_id.as_str()),
            ("client_secret", self.client_secret.expose()),
            ("scope", &self.scope),
            ("audience", &self.audience),
        ];
        let others = others.into_iter().filter(|(_, value)| !value.is_empty());
        if !self.backend.is_empty() {
            let issuer = Some(("token_url", self.token_url.as_str())).filter(|(_, value)| !value.is_empty());
            let header = Some(("headers.authorization", "")).filter(|_| names_authorization);
            for (key, _) in issuer.into_iter().chain(others).chain(header) {
                wrong(key, "must not be given beside backend, whose credentials are presented");
            }
            return;
        }
        if self.token_url.is_empty() {
            for (key, _) in others {
                wrong(key, "is of use only with token_url");
            }
            return;
        }
        if self.url.expose().is_empty() {
            wrong("token_url", "is of use only with url");
        }
        if names_authorization {
            wrong("headers.authorization", "is taken by the tokens of token_url");
        }
        let issuer = self.issuer();
        for key in issuer.naming_tenant() {
            wrong(key, "must not name a tenant: the tokens are those of all callers");
        }
        for (key, reason) in issuer.mistakes() {
            wrong(&key, &reason);
        }
    }

    /// The mistakes in it as a server that presents the credentials of `backend`, which it names. One connection serves all
    /// callers, so there is nobody whose token it could present.
    pub fn mistakes_with(&self, backend: &NamedBackend) -> Vec<(String, String)> {
        let mut mistakes = Vec::new();
        let mut wrong = |key: &str, reason: &str| mistakes.push((key.to_owned(), reason.to_owned()));
        let needs = "with credentials = \"none\", \"static\" or \"client_credentials\"";
        match backend.credentials {
            Credentials::None | Credentials::Static | Credentials::ClientCredentials => {}
            Credentials::Caller | Credentials::TokenExchange => {
                wrong("backend", &format!("must be one {needs}: a server of tools gets nothing of a caller"));
            }
        }
        if backend.naming_tenant().next().is_some() {
            wrong("backend", "must not be one that names a tenant: the tokens are those of all callers");
        }
        match (Url::parse(&backend.base_url), Url::parse(self.url.expose())) {
            (Err(_), _) => wrong("backend", "must be one with an address"),
            (Ok(base), Ok(url)) if base.origin() != url.origin() => {
                wrong("url", &format!("must have the origin of backends.{}.base_url", self.backend));
            }
            (Ok(_), Ok(_) | Err(_)) => {}
        }
        for name in self.headers.keys() {
            if backend.headers.keys().any(|other| other.eq_ignore_ascii_case(name)) {
                wrong(&format!("headers.{name}"), "is one of the backend's");
            }
        }
        mistakes
    }

    /// Takes what `backend`, which it names, presents, and its address where it has none of its own.
    pub fn take(&mut self, backend: &NamedBackend) {
        if self.url.expose().is_empty() {
            self.url = Secret(backend.base_url.clone().into());
        }
        let NamedBackend { headers, api_key, token_url, client_id, client_secret, scope, audience, .. } = backend;
        self.headers.extend(headers.clone());
        if !api_key.expose().is_empty() {
            let value = Secret(format!("Bearer {}", api_key.expose()).into());
            self.headers.insert("authorization".to_owned(), value);
        }
        (self.token_url, self.client_id, self.client_secret) =
            (token_url.clone(), client_id.clone(), client_secret.clone());
        (self.scope, self.audience) = (scope.clone(), audience.clone());
    }

    /// How its tokens are asked for.
    pub(super) fn issuer(&self) -> NamedBackend {
        let client = (self.client_id.as_str(), &self.client_secret);
        NamedBackend::of_machine(&self.token_url, client, &self.scope, &self.audience)
    }

    /// The approval of calls that do not only read; `None` when `approval` is unknown.
    pub(super) fn consent(&self) -> Option<Consent> {
        match self.approval.as_str() {
            "auto" => Some(Consent::Auto),
            "user" => Some(Consent::User),
            other => other
                .strip_prefix("role:")
                .filter(|role| !role.is_empty())
                .map(|role| Consent::Role { role: role.to_owned(), not_requester: self.not_requester }),
        }
    }

    pub(super) fn patience(&self) -> Duration {
        Duration::from_secs(self.timeout_s)
    }

    pub(super) fn connect_patience(&self) -> Duration {
        Duration::from_secs(self.connect_timeout_s)
    }
}
