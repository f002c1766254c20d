//! The state of a user's screen, as the request tells it. Untrusted.
//!
//! **Invariant:** it is kept as its text, which is shared: a tree of half a megabyte can take seventy, and lives as long as its
//! run. It is read anew for a prompt or a call that takes something of it.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::bounded::json::{self, JsonText, NodeBudget, Wanted};

/// A JSON object of the client's. Clones are the same text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScreenState(JsonText);

impl ScreenState {
    /// The object in `text`; `None` where it is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let raw: Box<RawValue> = json::parse(text).ok()?;
        raw.get().starts_with('{').then(|| Self(raw.into()))
    }

    /// These fields, each as JSON; `None` where there are none.
    pub fn of_fields<'a>(fields: impl IntoIterator<Item = (&'a str, &'a RawValue)>) -> Option<Self> {
        let fields = fields.into_iter().map(|(name, raw)| format!("{}:{raw}", Value::from(name)));
        let fields: Vec<String> = fields.collect();
        if fields.is_empty() { None } else { Self::parse(&format!("{{{}}}", fields.join(","))) }
    }

    /// The object as it is, for whoever writes it into another.
    pub fn raw(&self) -> &RawValue {
        self.0.raw()
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// All of its fields, read anew; none where they would take too much memory, which no request's do.
    pub fn fields(&self) -> Map<String, Value> {
        json::object(self.as_str()).unwrap_or_default()
    }

    /// The non-empty text that is the field `name`.
    pub fn text(&self, name: &str) -> Option<String> {
        let text = self.as_str();
        let wanted = Wanted::field(name, Wanted::nothing());
        let mut read = json::read(text, &wanted, &mut NodeBudget::for_bytes(text.len(), None)).ok()?;
        match read.get_mut(name).map(Value::take) {
            Some(Value::String(text)) if !text.is_empty() => Some(text),
            Some(_) | None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_state_is_an_object_and_keeps_its_text() {
        let text = r#"{"page": "rules","n":1.0,"empty":"","in":{"page":"x"}}"#;
        let state = ScreenState::parse(text).unwrap();
        assert_eq!(state.as_str(), text);
        assert_eq!(serde_json::to_string(state.raw()).unwrap(), text);
        let texts = ["page", "n", "empty", "in", "x"].map(|name| state.text(name));
        assert_eq!(texts, [Some("rules".to_owned()), None, None, None, None]);
        assert_eq!(state.fields().len(), 4);
        for other in ["[]", "null", "{", "7", r#"["{}"]"#] {
            assert!(ScreenState::parse(other).is_none(), "{other}");
        }
        let (a, b): (&RawValue, &RawValue) = (json::parse("[1]").unwrap(), json::parse("{}").unwrap());
        let built = ScreenState::of_fields([("state", a), ("con\"text", b)]).unwrap();
        assert_eq!(built.as_str(), r#"{"state":[1],"con\"text":{}}"#);
        assert_eq!(ScreenState::of_fields([]), None);
    }
}
