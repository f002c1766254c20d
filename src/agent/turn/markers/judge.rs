//! The markers of a profile, and what is made of the JSON behind one.

use serde_json::{Map, Value};

use super::{Found, Markers, SUGGESTIONS};
use crate::agent::offer::profile::Profile;
use crate::chat::answer::{ActionHandler, ActionStyle, SuggestedAction, SuggestedValue};
use crate::chat::approval::DECIDING_ACTIONS;
use crate::chat::schema::Schema;

/// A marker.
#[derive(Debug)]
pub(super) struct Marker {
    /// Its word, with the colon.
    pub(super) word: String,
    kind: Kind,
}

/// The kind of JSON behind it.
#[derive(Debug, Clone)]
enum Kind {
    Values,
    /// The names are those of what the front end can do by itself.
    Actions(Vec<String>),
    Payload {
        name: String,
        schema: Option<Schema>,
    },
}

impl Marker {
    /// The markers that `profile` lets a model write.
    pub(super) fn all(profile: &Profile) -> Vec<Self> {
        let client = profile.client_actions.iter().map(|action| action.name.clone()).collect();
        let suggestions = [Kind::Values, Kind::Actions(client)];
        let suggestions = SUGGESTIONS.into_iter().zip(suggestions).filter(|_| profile.suggestions);
        let payloads = profile.payload_types.iter().filter_map(|known| {
            let kind = Kind::Payload { name: known.name.clone(), schema: known.schema.clone() };
            Some(Self { word: known.marker.clone()?, kind })
        });
        suggestions.map(|(word, kind)| Self { word: word.to_owned(), kind }).chain(payloads).collect()
    }
}

impl Markers {
    /// Keeps what stands behind a marker.
    ///
    /// # Errors
    /// When that is not what the marker is for; why.
    pub(super) fn judge(&mut self, marker: usize, value: Value) -> Result<(), String> {
        let Some(kind) = self.known.get(marker).map(|marker| marker.kind.clone()) else { return Ok(()) };
        match (kind, value) {
            (Kind::Values, Value::Array(entries)) => {
                let values = self.entries(marker, entries, suggested_value);
                if self.is_first(marker, 0) && !values.is_empty() {
                    self.found.push(Found::Values(values));
                }
            }
            (Kind::Actions(client), Value::Array(entries)) => {
                let actions = self.entries(marker, entries, |entry| suggested_action(entry, &client));
                if self.is_first(marker, 1) && !actions.is_empty() {
                    self.found.push(Found::Actions(actions));
                }
            }
            (Kind::Values | Kind::Actions(_), _) => return Err("is not followed by a list".to_owned()),
            (Kind::Payload { name, schema }, data) => {
                let Some(schema) = schema else {
                    self.found.push(Found::Payload { kind: name, data });
                    return Ok(());
                };
                let data = match schema.check(&data) {
                    Ok(()) => data,
                    Err(_) => schema.with_defaults(data),
                };
                let checked = schema.check(&data);
                checked.map_err(|mistakes| format!("has data that is wrong: {}", mistakes.join("; ")))?;
                self.found.push(Found::Payload { kind: name, data });
            }
        }
        Ok(())
    }

    /// The entries of a list; a wrong one is left out with a note.
    fn entries<T>(
        &mut self,
        marker: usize,
        entries: Vec<Value>,
        read: impl Fn(Map<String, Value>) -> Result<T, String>,
    ) -> Vec<T> {
        if entries.is_empty() {
            self.note(marker, "is followed by an empty list");
        }
        let mut all = Vec::new();
        for (number, entry) in entries.into_iter().enumerate() {
            let entry = match entry {
                Value::Object(entry) => read(entry),
                _ => Err("is no object".to_owned()),
            };
            match entry {
                Ok(entry) => all.push(entry),
                Err(reason) => self.note(marker, &format!("has an entry that was left out: [{number}] {reason}")),
            }
        }
        all
    }

    fn is_first(&mut self, marker: usize, kind: usize) -> bool {
        let is_first = !std::mem::replace(&mut self.suggested[kind], true);
        if !is_first {
            self.note(marker, "came before; only the first one counts");
        }
        is_first
    }
}

fn suggested_value(mut entry: Map<String, Value>) -> Result<SuggestedValue, String> {
    Ok(SuggestedValue { label: text(&mut entry, "label")?, value: text(&mut entry, "value")? })
}

fn suggested_action(mut entry: Map<String, Value>, client: &[String]) -> Result<SuggestedAction, String> {
    let (label, action) = (text(&mut entry, "label")?, text(&mut entry, "action")?);
    if DECIDING_ACTIONS.contains(&action.as_str()) {
        return Err("is for the server alone to offer".to_owned());
    }
    let handler = match text(&mut entry, "handler")?.as_str() {
        "client" if client.contains(&action) => ActionHandler::Client,
        "client" => return Err("is nothing that the front end can do".to_owned()),
        "server" => ActionHandler::Server,
        _ => return Err("must have the handler client or server".to_owned()),
    };
    let style = match entry.get("style") {
        None | Some(Value::Null) => None,
        Some(style) => Some(match style.as_str() {
            Some("primary") => ActionStyle::Primary,
            Some("secondary") => ActionStyle::Secondary,
            Some("warning") => ActionStyle::Warning,
            Some(_) | None => return Err("must have the style primary, secondary or warning".to_owned()),
        }),
    };
    let data = entry.remove("data").filter(|data| !data.is_null());
    Ok(SuggestedAction { label, action, handler, data, style })
}

fn text(entry: &mut Map<String, Value>, key: &str) -> Result<String, String> {
    match entry.remove(key) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text),
        Some(_) | None => Err(format!("must have the text {key}")),
    }
}
