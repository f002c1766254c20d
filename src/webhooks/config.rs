//! `[signals]` and `[signals.subscribers.NAME]`.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use crate::bounded::address::{Exceptions, is_loopback, is_metadata_host, vet};
use crate::chat::signal::{NamePattern, Subscription, Subscriptions};

/// Stands before a secret (Standard Webhooks 1.0.0).
const PREFIX: &str = "whsec_";

/// Bytes of a secret, by the same.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// `[signals]`: who may write some, how long they are kept, and who hears of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignalsConfig {
    /// Roles that may write signals of their own.
    pub emit_roles: Vec<String>,
    /// Days that signals are kept; 0 means for ever.
    pub retention_days: u32,
    /// Milliseconds before the second attempt to deliver one; they double with each.
    pub retry_base_ms: u64,
    /// Seconds between two attempts at most.
    pub retry_max_s: u64,
    /// Who hears of them, by name.
    pub subscribers: BTreeMap<String, SubscriberConfig>,
}

/// `[signals.subscribers.NAME]`: who hears of signals.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubscriberConfig {
    /// Where they are delivered to: `https`, but on this machine.
    pub url: String,
    /// Which: names, `prefix.*`, or `*`.
    pub events: Vec<String>,
    /// What deliveries are signed with: base64 of 24 to 64 bytes behind `whsec_`.
    pub secret: SecretString,
    /// The secret before, while the subscriber still knows that one: deliveries are signed with both.
    pub previous_secret: SecretString,
    /// Of which tenants; empty: of all.
    pub tenants: Vec<String>,
    /// Whether its name may lead to an address of a private network.
    pub private: bool,
    /// Seconds for one attempt.
    pub timeout_s: u64,
    /// Attempts at most; then it is dead.
    pub max_attempts: u32,
}

impl SignalsConfig {
    /// Who hears of what.
    pub fn subscriptions(&self) -> Subscriptions {
        let subscription = |(name, subscriber): (&String, &SubscriberConfig)| Subscription {
            name: name.clone(),
            events: subscriber.events.iter().filter_map(|text| NamePattern::parse(text).ok()).collect(),
            tenants: subscriber.tenants.clone(),
        };
        Subscriptions(self.subscribers.iter().map(subscription).collect())
    }

    /// How long signals are kept.
    pub fn retention(&self) -> Option<Duration> {
        (self.retention_days != 0).then(|| Duration::from_secs(u64::from(self.retention_days) * 24 * 3600))
    }

    /// What is wrong with it: key and reason, never a secret.
    pub fn mistakes(&self) -> Vec<(String, String)> {
        let mut mistakes = Vec::new();
        for (name, subscriber) in &self.subscribers {
            let mut wrong = |key: &str, reason: String| mistakes.push((format!("subscribers.{name}.{key}"), reason));
            match address(&subscriber.url) {
                None => {
                    let reason = "must be an https:// address without a user, or http:// on this machine";
                    wrong("url", reason.to_owned());
                }
                Some(url) if is_metadata_host(&url) => {
                    wrong("url", "is a link-local address, where there is no subscriber".to_owned());
                }
                Some(url)
                    if !subscriber.private && !is_loopback(&url) && vet(&url, &Exceptions::default()).is_err() =>
                {
                    wrong("url", "is an address of a private network: private = true allows that".to_owned());
                }
                Some(_) => {}
            }
            if subscriber.events.is_empty() {
                wrong("events", "is required".to_owned());
            }
            for event in &subscriber.events {
                if NamePattern::parse(event).is_err() {
                    wrong("events", format!("{event:?} is no name, no prefix.* and not *"));
                }
            }
            let previous = Some(("previous_secret", &subscriber.previous_secret));
            let previous = previous.filter(|(_, secret)| !secret.expose_secret().is_empty());
            for (key, secret) in [("secret", &subscriber.secret)].into_iter().chain(previous) {
                if key_of(secret).is_none() {
                    let (least, most) = (SECRET_BYTES.start(), SECRET_BYTES.end());
                    wrong(key, format!("must be {PREFIX} and base64 of {least} to {most} bytes"));
                }
            }
            if !(1..=60).contains(&subscriber.timeout_s) {
                wrong("timeout_s", "must be 1 to 60".to_owned());
            }
            if !(1..=100).contains(&subscriber.max_attempts) {
                wrong("max_attempts", "must be 1 to 100".to_owned());
            }
        }
        mistakes
    }
}

/// The address of a subscriber.
pub(super) fn address(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok().filter(|url| url.username().is_empty() && url.password().is_none())?;
    let is_here = is_loopback(&url);
    (url.scheme() == "https" && url.has_host() || url.scheme() == "http" && is_here).then_some(url)
}

/// The bytes of a secret.
pub(super) fn key_of(secret: &SecretString) -> Option<Vec<u8>> {
    let bytes = STANDARD.decode(secret.expose_secret().strip_prefix(PREFIX)?).ok()?;
    SECRET_BYTES.contains(&bytes.len()).then_some(bytes)
}
