//! Payloads, suggestions and places as JSON, alike in the native protocol's events and in its whole answers.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::bounded::json::JsonText;
use crate::chat::answer::{ActionHandler, ActionStyle, SuggestedAction, SuggestedValue, Suggestions};
use crate::chat::notice::Notice;
use crate::chat::payload::Payload;
use crate::chat::place::{Mover, Place};

/// A payload.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Payload)]
pub struct PayloadBody<'a> {
    payload_id: &'a str,
    r#type: &'a str,
    /// As its kind says.
    #[schema(value_type = Value)]
    data: &'a JsonText,
    summary: &'a str,
}

impl<'a> PayloadBody<'a> {
    /// The body of `payload`.
    pub fn from_payload(payload: &'a Payload) -> Self {
        let Payload { id, kind, data, summary, source: _ } = payload;
        Self { payload_id: id.as_str(), r#type: kind, data, summary }
    }
}

/// Where a conversation is.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Place)]
pub struct PlaceBody {
    /// The kind of screen.
    context_type: String,
    /// The id of what the screen is about.
    entity_id: Option<String>,
    /// Its name, where a tool told it.
    entity_name: Option<String>,
    /// What of that its user looks at, as the client said it.
    #[schema(value_type = Option<Object>)]
    focus: Option<Value>,
}

impl PlaceBody {
    /// The body of `place`.
    pub fn from_place(place: &Place) -> Self {
        let Place { context_type, entity, focus } = place;
        Self {
            context_type: context_type.clone(),
            entity_id: entity.as_ref().map(|entity| entity.id.clone()),
            entity_name: entity.as_ref().and_then(|entity| entity.name.clone()),
            focus: focus.as_ref().map(|focus| Value::Object(focus.fields())),
        }
    }
}

/// A conversation is somewhere else.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = PlaceChange)]
pub struct PlaceChangeBody {
    /// `request` or `tool`.
    by: &'static str,
    #[serde(flatten)]
    place: PlaceBody,
}

impl PlaceChangeBody {
    /// The body of a move.
    pub fn new(by: Mover, place: &Place) -> Self {
        Self { by: by.name(), place: PlaceBody::from_place(place) }
    }
}

/// What the server tells its user beside the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Notice)]
pub struct NoticeBody {
    /// What it is about, for programs: `files_not_shown`.
    code: &'static str,
    /// The same for people; may change at any time.
    message: String,
    /// The ids of the files.
    files: Vec<String>,
}

impl NoticeBody {
    /// The body of `notice`.
    pub fn of(notice: &Notice) -> Self {
        let Notice { files, message, said: _ } = notice;
        Self { code: Notice::CODE, message: message.clone(), files: files.iter().map(ToString::to_string).collect() }
    }
}

/// A run does not read all that was said before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SummaryPhase)]
pub struct SummaryBody {
    /// `start`: a summary stands for the rest, or is waited for; `end`: the run goes on.
    phase: &'static str,
}

impl SummaryBody {
    /// It begins.
    pub const START: Self = Self { phase: "start" };
    /// It is over.
    pub const END: Self = Self { phase: "end" };
}

/// Suggestions; a kind of which there are none is left out.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Suggestions)]
pub struct SuggestionsBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    suggested_values: Option<Vec<ValueBody>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggested_actions: Option<Vec<ActionBody>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = SuggestedValue)]
struct ValueBody {
    label: String,
    value: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = SuggestedAction)]
struct ActionBody {
    label: String,
    action: String,
    /// `client` or `server`.
    handler: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// `primary`, `secondary` or `warning`.
    style: Option<&'static str>,
}

impl SuggestionsBody {
    /// The body of `suggestions`.
    pub fn from_suggestions(suggestions: &Suggestions) -> Self {
        let Suggestions { values, actions } = suggestions;
        let value =
            |SuggestedValue { label, value }: &SuggestedValue| ValueBody { label: label.clone(), value: value.clone() };
        Self {
            suggested_values: values.as_ref().map(|values| values.iter().map(value).collect()),
            suggested_actions: actions.as_ref().map(|actions| actions.iter().map(ActionBody::from_action).collect()),
        }
    }
}

impl ActionBody {
    fn from_action(action: &SuggestedAction) -> Self {
        Self {
            label: action.label.clone(),
            action: action.action.clone(),
            handler: match action.handler {
                ActionHandler::Client => "client",
                ActionHandler::Server => "server",
            },
            data: action.data.clone(),
            style: action.style.map(|style| match style {
                ActionStyle::Primary => "primary",
                ActionStyle::Secondary => "secondary",
                ActionStyle::Warning => "warning",
            }),
        }
    }
}
