//! `[backend]` and `[backends.NAME]`: where the REST APIs are, and who calls them.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::tools::secret::{Secret, header};

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
    /// With `none`: sent as `Authorization: Bearer`; empty sends none.
    pub api_key: Secret,
    /// Headers of every request.
    pub headers: BTreeMap<String, Secret>,
}

/// Whose credentials a request to a backend has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Credentials {
    /// The caller's token, as to `[backend]`.
    Caller,
    /// Never the caller's.
    None,
}

impl NamedBackend {
    /// What is wrong with it: key and reason, never a secret. The address is checked elsewhere.
    pub fn mistakes(&self) -> Vec<(String, String)> {
        let mut mistakes = Vec::new();
        let mut wrong = |key: &str, reason: &str| mistakes.push((key.to_owned(), reason.to_owned()));
        let has_key = !self.api_key.expose().is_empty();
        if has_key && self.credentials == Credentials::Caller {
            wrong("api_key", "is of use only with credentials = \"none\"");
        }
        if has_key && header("authorization", &self.api_key).is_err() {
            wrong("api_key", "has characters that no http header can carry");
        }
        for (name, value) in &self.headers {
            let key = format!("headers.{name}");
            match name.to_ascii_lowercase().as_str() {
                "authorization" if has_key => wrong(&key, "must not be given beside api_key"),
                "authorization" | "cookie" if self.credentials == Credentials::Caller => {
                    wrong(&key, "carries the caller's own: it is of use only with credentials = \"none\"");
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
