//! `[web]`: what the tools of the web may reach.

use std::time::Duration;

use serde::Deserialize;
use url::Url;

use crate::bounded::address::{BadException, Exceptions, is_metadata_host};

/// `[web]`: the search engine, and where pages may come from.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebConfig {
    /// A search engine that speaks SearXNG's JSON; it may be private. Empty: there is no search.
    pub search_url: String,
    /// Exceptions from the ban on addresses that are not public, as `host:port`.
    pub allow_hosts: Vec<String>,
    /// Seconds for a whole page, redirects included.
    pub fetch_timeout_s: u64,
}

impl WebConfig {
    /// The address of the search engine, where there is one.
    pub fn engine(&self) -> Option<Url> {
        let url = Url::parse(&self.search_url).ok()?;
        let is_plain =
            matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
        (is_plain && url.has_host() && !is_metadata_host(&url)).then_some(url)
    }

    /// What may be reached though it is not public.
    ///
    /// # Errors
    /// When one is no `host:port`.
    pub fn exceptions(&self) -> Result<Exceptions, BadException> {
        Exceptions::parse(&self.allow_hosts.join(","))
    }

    /// How long a page, or a search, may take.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.fetch_timeout_s)
    }

    /// What is wrong with it: key and reason.
    pub fn mistakes(&self) -> Vec<(String, String)> {
        let mut mistakes = Vec::new();
        let mut wrong = |key: &str, reason: String| mistakes.push((key.to_owned(), reason));
        if !self.search_url.is_empty() && self.engine().is_none() {
            wrong(
                "search_url",
                "must be an http:// or https:// address without a user, and no link-local one".to_owned(),
            );
        }
        if let Err(error) = self.exceptions() {
            wrong("allow_hosts", error.to_string());
        }
        if !(1..=120).contains(&self.fetch_timeout_s) {
            wrong("fetch_timeout_s", "must be 1 to 120".to_owned());
        }
        mistakes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_mistakes_are_told_at_once() {
        let config = |search_url: &str, hosts: &[&str], fetch_timeout_s| {
            let allow_hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
            WebConfig { search_url: search_url.to_owned(), allow_hosts, fetch_timeout_s }
        };
        assert_eq!(config("", &[], 12).mistakes(), []);
        assert_eq!(config("http://10.0.0.7:8080/search", &["10.0.0.7:80", "[::1]:81"], 12).mistakes(), []);
        assert_eq!(config("http://169.254.169.254/search", &[], 12).mistakes().len(), 1);
        let mistakes = config("http://user@search", &["nonsense"], 0).mistakes();
        let keys: Vec<_> = mistakes.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["search_url", "allow_hosts", "fetch_timeout_s"]);
    }
}
