//! The settings as their document has them, and back.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde_json::{Map, Value, json};

use crate::agent::ports::models::{CHOICE, Key, ModelSettings, Provider, Workload, WorkloadKind};

/// What stands for a key.
const BULLETS: &str = "\u{2022}\u{2022}\u{2022}\u{2022}\u{2022}\u{2022}\u{2022}\u{2022}";

/// The document.
#[derive(PartialEq)]
pub(super) struct Document {
    root: Map<String, Value>,
    /// The providers that were renamed, by their names now.
    renamed: BTreeMap<String, String>,
}

/// Why a document is none.
pub(super) enum Unread {
    /// A member has another type.
    Shape { place: String, words: String },
    /// It has what is not known: each in words that begin with its place.
    Unknown(Vec<String>),
}

impl Document {
    /// Of `settings`, for a user whose messages `choice` answers.
    pub(super) fn of(settings: &ModelSettings, choice: Option<&str>) -> Self {
        let providers = settings.providers.iter().map(|(name, provider)| {
            let Provider { kind, base_url, key, options } = provider;
            let key = if matches!(key, Key::None) { "" } else { BULLETS };
            (name.clone(), json!({"type": kind, "api_key": key, "base_url": base_url, "options": options}))
        });
        let workloads = settings.workloads.iter().map(|(name, workload)| {
            let Workload { provider, model, kind, options } = workload;
            let kind = kind.name();
            (name.clone(), json!({"provider": provider, "model": model, "kind": kind, "options": options}))
        });
        let root = Map::from_iter([
            ("providers".to_owned(), Value::Object(providers.collect())),
            ("workloads".to_owned(), Value::Object(workloads.collect())),
            ("models".to_owned(), json!({"agents": {"universal": {"workload": choice.unwrap_or_default()}}})),
        ]);
        Self { root, renamed: BTreeMap::new() }
    }

    pub(super) fn into_value(self) -> Value {
        Value::Object(self.root)
    }

    /// With `patch` laid over it (RFC 7396).
    pub(super) fn merged(mut self, patch: &Map<String, Value>) -> Self {
        merge(&mut self.root, patch);
        self
    }

    /// With another name for what is called `old` in a section, wherever it is named, and the places that named it.
    ///
    /// # Errors
    /// Why not, in words.
    pub(super) fn renamed(mut self, section: &str, old: &str, new: &str) -> Result<(Self, Vec<String>), String> {
        let kind = section.trim_end_matches('s');
        if new.is_empty() || old == new {
            return Err("the new name must be another one, and not empty".to_owned());
        }
        let entries = self.root.get_mut(section).and_then(Value::as_object_mut);
        let Some(entries) = entries.filter(|entries| entries.contains_key(old)) else {
            return Err(format!("there is no {kind} {old:?}"));
        };
        if entries.contains_key(new) {
            return Err(format!("there is a {kind} {new:?} already"));
        }
        if let Some(entry) = entries.remove(old) {
            entries.insert(new.to_owned(), entry);
        }
        let mut references = Vec::new();
        if section == "providers" {
            self.renamed.insert(new.to_owned(), old.to_owned());
            for (name, workload) in self.root.get_mut("workloads").and_then(Value::as_object_mut).into_iter().flatten()
            {
                if let Some(provider) = workload.get_mut("provider").filter(|provider| provider.as_str() == Some(old)) {
                    *provider = Value::from(new);
                    references.push(format!("workloads.{name}.provider"));
                }
            }
        } else if self.choice().as_deref() == Some(old) {
            self.root.insert("models".to_owned(), json!({"agents": {"universal": {"workload": new}}}));
            references.push(CHOICE.to_owned());
        }
        Ok((self, references))
    }

    /// The workload that is chosen.
    pub(super) fn choice(&self) -> Option<String> {
        let models = self.root.get("models")?;
        let chosen = models.pointer("/agents/universal/workload")?.as_str()?;
        Some(chosen.to_owned()).filter(|chosen| !chosen.is_empty())
    }

    /// Whether all but the choice is as in `other`.
    pub(super) fn is_same_but_choice(&self, other: &Self) -> bool {
        let rest = |document: &Self| {
            let mut rest = document.root.clone();
            rest.remove("models");
            rest
        };
        rest(self) == rest(other)
    }

    /// The settings that it says; `before` is what it was made of.
    ///
    /// # Errors
    /// See [`Unread`].
    pub(super) fn settings(&self, before: &ModelSettings) -> Result<ModelSettings, Unread> {
        let mut unknown = Vec::new();
        only(&self.root, "", &["providers", "workloads", "models"], &mut unknown);
        self.check_choice(&mut unknown)?;
        let mut providers = BTreeMap::new();
        for (name, entry) in section(&self.root, "providers")? {
            let place = format!("providers.{name}");
            let entry = object(entry, &place)?;
            only(entry, &place, &["type", "api_key", "base_url", "options"], &mut unknown);
            let key = match text(entry, &place, "api_key")? {
                BULLETS => {
                    let of = self.renamed.get(name).unwrap_or(name);
                    let has_one = before.providers.get(of).is_some_and(|found| !matches!(found.key, Key::None));
                    if has_one { Key::Of(of.clone()) } else { Key::None }
                }
                "" => Key::None,
                key => Key::New(SecretString::from(key.to_owned())),
            };
            let provider = Provider {
                kind: text(entry, &place, "type")?.to_owned(),
                base_url: text(entry, &place, "base_url")?.to_owned(),
                key,
                options: options(entry, &place)?,
            };
            providers.insert(name.clone(), provider);
        }
        let mut workloads = BTreeMap::new();
        for (name, entry) in section(&self.root, "workloads")? {
            let place = format!("workloads.{name}");
            let entry = object(entry, &place)?;
            only(entry, &place, &["provider", "model", "kind", "options"], &mut unknown);
            let kind = match text(entry, &place, "kind")? {
                "" => WorkloadKind::Chat,
                kind => WorkloadKind::ALL.into_iter().find(|known| known.name() == kind).unwrap_or_else(|| {
                    unknown.push(format!("{place}.kind: there is no kind {kind:?}"));
                    WorkloadKind::Chat
                }),
            };
            let workload = Workload {
                provider: text(entry, &place, "provider")?.to_owned(),
                model: text(entry, &place, "model")?.to_owned(),
                kind,
                options: options(entry, &place)?,
            };
            workloads.insert(name.clone(), workload);
        }
        match unknown.is_empty() {
            true => Ok(ModelSettings { providers, workloads, default: before.default.clone(), ..Default::default() }),
            false => Err(Unread::Unknown(unknown)),
        }
    }

    /// Notes members around the choice that are not known.
    fn check_choice(&self, unknown: &mut Vec<String>) -> Result<(), Unread> {
        let (mut found, mut place) = (self.root.get("models"), "models".to_owned());
        for member in ["agents", "universal", "workload"] {
            let Some(value) = found else { return Ok(()) };
            let value = object(value, &place)?;
            only(value, &place, &[member], unknown);
            found = value.get(member);
            place = format!("{place}.{member}");
        }
        match found {
            None | Some(Value::String(_)) => Ok(()),
            Some(_) => Err(wrong_shape(&place, "a text")),
        }
    }
}

/// RFC 7396.
fn merge(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (name, value) in patch {
        match value {
            Value::Null => {
                target.remove(name);
            }
            Value::Object(patch) => match target.get_mut(name) {
                Some(Value::Object(target)) => merge(target, patch),
                _ => {
                    let mut fresh = Map::new();
                    merge(&mut fresh, patch);
                    target.insert(name.clone(), Value::Object(fresh));
                }
            },
            value => {
                target.insert(name.clone(), value.clone());
            }
        }
    }
}

fn only(entry: &Map<String, Value>, place: &str, known: &[&str], unknown: &mut Vec<String>) {
    for name in entry.keys().filter(|name| !known.contains(&name.as_str())) {
        let dot = if place.is_empty() { "" } else { "." };
        unknown.push(format!("{place}{dot}{name}: is not a known setting"));
    }
}

fn section<'a>(
    root: &'a Map<String, Value>,
    name: &str,
) -> Result<impl Iterator<Item = (&'a String, &'a Value)>, Unread> {
    Ok(root.get(name).map(|section| object(section, name)).transpose()?.into_iter().flatten())
}

fn object<'a>(value: &'a Value, place: &str) -> Result<&'a Map<String, Value>, Unread> {
    value.as_object().ok_or_else(|| wrong_shape(place, "an object"))
}

fn text<'a>(entry: &'a Map<String, Value>, place: &str, member: &str) -> Result<&'a str, Unread> {
    match entry.get(member) {
        None => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(wrong_shape(&format!("{place}.{member}"), "a text")),
    }
}

fn options(entry: &Map<String, Value>, place: &str) -> Result<Map<String, Value>, Unread> {
    match entry.get("options") {
        None => Ok(Map::new()),
        Some(options) => object(options, &format!("{place}.options")).cloned(),
    }
}

fn wrong_shape(place: &str, expected: &str) -> Unread {
    Unread::Shape { place: place.to_owned(), words: format!("Input should be {expected}") }
}
