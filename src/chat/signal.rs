//! Signals: immutable facts of a tenant, which others hear of. Whoever makes a change writes its signal in the same
//! transaction, so no state lacks its signal and no signal tells of what did not happen.

use std::fmt;

use serde_json::{Map, Value};

use super::ids::SignalId;

/// The longest name, in bytes.
const NAME_BYTES: usize = 255;

/// The name of a signal or of a directive: `^[a-z0-9_]+\.[a-z0-9_.]+$`, at most 255.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FactName(String);

/// A text that is no such name; safe to show to whoever sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be two words or more of a-z 0-9 _ with a dot between, at most 255 characters")]
pub struct InvalidName;

impl FactName {
    /// The name in `text`.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let is_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        let (first, rest) = text.split_once('.').ok_or(InvalidName)?;
        let is_name = !first.is_empty()
            && !rest.is_empty()
            && text.len() <= NAME_BYTES
            && first.bytes().all(is_word)
            && rest.bytes().all(|b| is_word(b) || b == b'.');
        if is_name { Ok(Self(text.to_owned())) } else { Err(InvalidName) }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FactName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The thing that a directive or a signal is about, as the application knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Its kind, such as `forum.thread`.
    pub kind: String,
    /// Its id there.
    pub id: String,
}

impl Subject {
    /// The longest id, in bytes.
    pub const ID_BYTES: usize = 512;
}

/// A signal.
#[derive(Debug, Clone, PartialEq)]
pub struct Signal {
    /// Its id, in every delivery and replay.
    pub id: SignalId,
    /// Its position among those of its tenant, in the order of commit.
    pub seq: i64,
    /// When it was written, in milliseconds since the Unix epoch.
    pub inserted_at_ms: i64,
    /// The fact.
    pub fact: SignalFact,
}

/// What a signal says.
#[derive(Debug, Clone, PartialEq)]
pub struct SignalFact {
    /// Its name.
    pub name: String,
    /// What belongs to it.
    pub payload: Map<String, Value>,
    /// What is known beside it.
    pub metadata: Map<String, Value>,
    /// When it happened, in milliseconds since the Unix epoch; `None`: when it is written.
    pub occurred_at_ms: Option<i64>,
    /// What it belongs to: the run or the request that began it.
    pub correlation: Option<String>,
    /// What caused it: the call or the directive.
    pub causation: Option<String>,
    /// The `sub` of the user who did it; `None` where no user did.
    pub actor: Option<String>,
    /// What it is about.
    pub subject: Option<Subject>,
    /// Who wrote it: `directives`, `api` or `runs`.
    pub source: SignalSource,
    /// Of those with the same key only the first is kept, within a tenant.
    pub dedupe_key: Option<String>,
}

/// Who wrote a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalSource {
    /// A directive's transition.
    Directives,
    /// A client.
    Api,
    /// The loop.
    Runs,
}

impl SignalSource {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Directives, Self::Api, Self::Runs];

    /// Its name on every wire and in the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::Directives => "directives",
            Self::Api => "api",
            Self::Runs => "runs",
        }
    }

    /// The source of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.name() == name)
    }
}

/// Which names are meant: one, those behind a prefix, or all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamePattern {
    /// `*`.
    All,
    /// `prefix.*`: what begins with this, the dot included.
    Prefix(String),
    /// This one.
    Exact(FactName),
}

impl NamePattern {
    /// The pattern in `text`.
    ///
    /// # Errors
    /// When it is neither a name, nor `prefix.*`, nor `*`.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        if text == "*" {
            return Ok(Self::All);
        }
        let Some(prefix) = text.strip_suffix('*') else { return FactName::parse(text).map(Self::Exact) };
        // With any last word it is a name.
        let is_prefix = prefix.ends_with('.') && FactName::parse(&format!("{prefix}x")).is_ok();
        if is_prefix { Ok(Self::Prefix(prefix.to_owned())) } else { Err(InvalidName) }
    }

    /// Whether `name` is meant.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Prefix(prefix) => name.starts_with(prefix.as_str()),
            Self::Exact(exact) => exact.as_str() == name,
        }
    }
}

/// Who hears of signals: the operator's subscribers, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subscriptions(pub Vec<Subscription>);

/// What one subscriber hears of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// Its name in the settings.
    pub name: String,
    /// Which signals.
    pub events: Vec<NamePattern>,
    /// Of which tenants, as tokens name them; empty: of all.
    pub tenants: Vec<String>,
}

impl Subscriptions {
    /// The names of those that hear of a signal of this name in the tenant that tokens name so.
    pub fn hearing<'a>(&'a self, tenant: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
        let is_meant = move |one: &&Subscription| {
            (one.tenants.is_empty() || one.tenants.iter().any(|known| known == tenant))
                && one.events.iter().any(|pattern| pattern.matches(name))
        };
        self.0.iter().filter(is_meant).map(|one| one.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_patterns_are_checked() {
        let long = format!("a.{}", "b".repeat(254));
        let rows = [
            ("forum.thread.created", true, "three words"),
            ("a.b", true, "the shortest"),
            ("a_1.b_2", true, "all letters"),
            ("a", false, "one word"),
            (".a", false, "nothing in front"),
            ("a.", false, "nothing behind"),
            ("A.b", false, "a capital"),
            ("a-b.c", false, "a sign"),
            (&long, false, "too long"),
        ];
        for (text, is_name, reason) in rows {
            assert_eq!(FactName::parse(text).is_ok(), is_name, "{reason}");
        }
        let rows = [
            ("*", "x.y", true, "all"),
            ("forum.*", "forum.thread.created", true, "a prefix"),
            ("forum.*", "forumx.y", false, "which ends with its dot"),
            ("forum.thread.*", "forum.thread", false, "and has something behind it"),
            ("a.b", "a.b", true, "a name"),
            ("a.b", "a.b.c", false, "and no other"),
        ];
        for (pattern, name, meant, reason) in rows {
            assert_eq!(NamePattern::parse(pattern).unwrap().matches(name), meant, "{reason}");
        }
        for wrong in ["", "a*", "*.a", "A.*", "forum*", ".*"] {
            assert!(NamePattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
