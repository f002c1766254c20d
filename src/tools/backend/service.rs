//! `[backend.service]` and `[backends.NAME.service]`: by which credentials directives are sent whose caller is not there.

use std::collections::BTreeMap;

use super::config::{Credentials, NamedBackend, ServiceConfig, ServiceMode, TENANT};
use crate::tools::secret::Secret;

impl ServiceConfig {
    /// No credentials.
    fn off() -> Self {
        let (none, no_secret) = (String::new, || Secret(String::new().into()));
        Self {
            mode: ServiceMode::Off,
            token: no_secret(),
            token_url: none(),
            client_id: none(),
            client_secret: no_secret(),
            scope: none(),
            audience: none(),
        }
    }

    /// A backend of these credentials, with the address and the headers of `base`; `None` where they are off.
    pub fn backend(&self, base_url: &str, timeout_s: u64, headers: &BTreeMap<String, Secret>) -> Option<NamedBackend> {
        let credentials = match self.mode {
            ServiceMode::Off => return None,
            ServiceMode::Token => Credentials::Static,
            ServiceMode::ClientCredentials => Credentials::ClientCredentials,
        };
        Some(NamedBackend {
            base_url: base_url.to_owned(),
            timeout_s,
            credentials,
            api_key: self.token.clone(),
            token_url: self.token_url.clone(),
            client_id: self.client_id.clone(),
            client_secret: self.client_secret.clone(),
            scope: self.scope.clone(),
            audience: self.audience.clone(),
            headers: headers.clone(),
            service: Self::off(),
        })
    }

    /// The settings of it that name the tenant.
    pub fn naming_tenant(&self) -> impl Iterator<Item = &'static str> {
        let named = [("scope", &self.scope), ("audience", &self.audience)].into_iter();
        named.filter(|(_, text)| text.contains(TENANT)).map(|(key, _)| key)
    }

    /// What is wrong with it: key and reason, never a secret.
    pub fn mistakes(&self) -> Vec<(String, String)> {
        let Some(backend) = self.backend("", 0, &BTreeMap::new()) else {
            let given = [
                ("token", self.token.expose()),
                ("token_url", &self.token_url),
                ("client_id", &self.client_id),
                ("client_secret", self.client_secret.expose()),
                ("scope", &self.scope),
                ("audience", &self.audience),
            ];
            let given = given.into_iter().filter(|(_, value)| !value.is_empty());
            let reason = "is of use only with mode = \"token\" or \"client_credentials\"";
            return given.map(|(key, _)| (key.to_owned(), reason.to_owned())).collect();
        };
        if self.mode == ServiceMode::Token && self.token.expose().is_empty() {
            return vec![("token".to_owned(), "is required with mode = \"token\"".to_owned())];
        }
        let named = |(key, reason): (String, String)| match key.as_str() {
            "api_key" => ("token".to_owned(), "is of use only with mode = \"token\"".to_owned()),
            _ => (key, reason),
        };
        backend.mistakes().into_iter().map(named).collect()
    }
}

impl NamedBackend {
    /// A server of tools that wants tokens of this server's own: where they are given, by which name and secret, and of which
    /// scope and audience.
    pub fn of_machine(token_url: &str, client: (&str, &Secret), scope: &str, audience: &str) -> Self {
        Self {
            base_url: String::new(),
            timeout_s: 0,
            credentials: Credentials::ClientCredentials,
            api_key: Secret(String::new().into()),
            token_url: token_url.to_owned(),
            client_id: client.0.to_owned(),
            client_secret: client.1.clone(),
            scope: scope.to_owned(),
            audience: audience.to_owned(),
            headers: BTreeMap::new(),
            service: ServiceConfig::off(),
        }
    }

    /// The backend as directives reach it whose caller is not there, where they can.
    pub fn as_service(&self) -> Option<Self> {
        let of_service = self.service.backend(&self.base_url, self.timeout_s, &self.headers);
        of_service.or_else(|| match self.credentials {
            // What it is sent is this server's own anyway.
            Credentials::None | Credentials::Static | Credentials::ClientCredentials => Some(self.clone()),
            Credentials::Caller | Credentials::TokenExchange => None,
        })
    }
}
