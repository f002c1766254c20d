//! Where a conversation is in its user's application. It outlives a run, and a conversation may have it before its first
//! one. What clients say of it is untrusted.

use serde_json::{Value, json};

use super::screen::ScreenState;
use crate::chat::line::one_line;

/// 120 characters of an id or a name in a sentence.
const NAME_CHARS: usize = 120;

/// The place of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The kind of screen, which selects the profile.
    pub context_type: String,
    /// What the screen is about.
    pub entity: Option<Entity>,
    /// What of that the user looks at: an object of the client's.
    pub focus: Option<ScreenState>,
}

/// Something of the user's application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// Its id there.
    pub id: String,
    /// Its name, where a tool told it.
    pub name: Option<String>,
}

/// What a request changes of a place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlaceUpdate {
    /// The entity's id.
    pub entity: Update<String>,
    /// The focus.
    pub focus: Update<ScreenState>,
}

/// What is done to a value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Update<T> {
    /// It stays.
    #[default]
    Keep,
    /// There is none any more.
    Clear,
    /// It is this one.
    Set(T),
}

/// Who moved a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mover {
    /// Its client, by a request.
    Request,
    /// A tool whose file says so.
    Tool,
}

impl Mover {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Request, Self::Tool];

    /// Its name in events.
    pub fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Tool => "tool",
        }
    }
}

/// Where a tool moves the conversation of a call that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The kind of screen.
    pub context_type: String,
    /// What it is about there.
    pub entity: Option<Entity>,
    /// What of that the user looks at then.
    pub focus: Option<ScreenState>,
}

impl PlaceUpdate {
    /// It changes nothing.
    pub const NONE: Self = Self { entity: Update::Keep, focus: Update::Keep };

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    /// The place of a conversation whose request names `context_type`. One that has none gets one only with an update.
    pub fn apply(&self, stored: Option<&Place>, context_type: &str) -> Option<Place> {
        if stored.is_none() && self.is_empty() {
            return None;
        }
        let kept = stored.filter(|stored| stored.context_type == context_type);
        let kept = kept.and_then(|stored| stored.entity.clone());
        let entity = match &self.entity {
            Update::Keep => kept,
            Update::Clear => None,
            Update::Set(id) => match kept {
                Some(kept) if kept.id == *id => Some(kept),
                Some(_) | None => Some(Entity { id: id.clone(), name: None }),
            },
        };
        let focus = match &self.focus {
            Update::Keep => stored.and_then(|stored| stored.focus.clone()),
            Update::Clear => None,
            Update::Set(focus) => Some(focus.clone()),
        };
        Some(Place { context_type: context_type.to_owned(), entity, focus })
    }
}

impl Place {
    /// The place of a conversation that begins there.
    pub fn begun(context_type: String, update: &PlaceUpdate) -> Self {
        let place = update.apply(None, &context_type);
        place.unwrap_or(Self { context_type, entity: None, focus: None })
    }

    /// The place after `moved`. What its user looked at before is left behind.
    pub fn after(moved: Move) -> Self {
        Self { context_type: moved.context_type, entity: moved.entity, focus: moved.focus }
    }

    /// A line about a move to it. What a backend says stays on it, and is short.
    pub fn arrival(&self) -> String {
        let line = |text: &str| one_line(text).chars().take(NAME_CHARS).collect::<String>();
        let about = match &self.entity {
            Some(Entity { id, name: Some(name) }) => format!(" for \"{}\" (ID: {})", line(name), line(id)),
            Some(Entity { id, name: None }) => format!(" (ID: {})", line(id)),
            None => String::new(),
        };
        format!("Context shifted to {}{about}", self.context_type)
    }

    /// The place as templates see it.
    pub fn value(&self) -> Value {
        json!({
            "context_type": self.context_type,
            "entity_id": self.entity.as_ref().map(|entity| &entity.id),
            "entity_name": self.entity.as_ref().and_then(|entity| entity.name.as_ref()),
            "focus": self.focus.as_ref().map(ScreenState::fields),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(context_type: &str, entity: Option<&str>, focus: Option<&str>) -> Place {
        Place {
            context_type: context_type.to_owned(),
            entity: entity.map(|id| Entity { id: id.to_owned(), name: None }),
            focus: focus.map(|text| ScreenState::parse(text).unwrap()),
        }
    }

    #[test]
    fn what_a_request_does_not_say_stays_where_it_still_fits() {
        let set = |id: &str| Update::Set(id.to_owned());
        let focus = |text: &str| Update::Set(ScreenState::parse(text).unwrap());
        let update = |entity, focus| PlaceUpdate { entity, focus };
        let stored = place("project", Some("p1"), Some(r#"{"a":1}"#));
        let rows = [
            (None, PlaceUpdate::default(), "global", None, "a conversation without a place"),
            (None, update(set("p1"), Update::Keep), "project", Some(place("project", Some("p1"), None)), "its first"),
            (None, update(Update::Clear, Update::Keep), "global", Some(place("global", None, None)), "an empty one"),
            (Some(&stored), PlaceUpdate::default(), "project", Some(stored.clone()), "all stays"),
            (
                Some(&stored),
                PlaceUpdate::default(),
                "global",
                Some(place("global", None, Some(r#"{"a":1}"#))),
                "an entity is of its screen",
            ),
            (
                Some(&stored),
                update(set("p2"), Update::Clear),
                "project",
                Some(place("project", Some("p2"), None)),
                "both are said",
            ),
            (
                Some(&stored),
                update(Update::Clear, focus(r#"{"b":2}"#)),
                "project",
                Some(place("project", None, Some(r#"{"b":2}"#))),
                "one goes and one comes",
            ),
        ];
        for (stored, update, context_type, expected, reason) in rows {
            assert_eq!(update.apply(stored, context_type), expected, "{reason}");
        }
    }

    #[test]
    fn a_name_stays_with_its_entity() {
        let named = Some(Entity { id: "p1".to_owned(), name: Some("Garden".to_owned()) });
        let stored = Place { entity: named.clone(), ..place("project", None, None) };
        let again = PlaceUpdate { entity: Update::Set("p1".to_owned()), focus: Update::Keep };
        assert_eq!(again.apply(Some(&stored), "project").unwrap().entity, named);
    }
}
