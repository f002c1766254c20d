//! Payloads and suggestions as JSON, alike in the native protocol's events and in its whole answers.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::chat::answer::{ActionHandler, ActionStyle, SuggestedAction, SuggestedValue, Suggestions};
use crate::chat::payload::Payload;

/// A payload.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Payload)]
pub struct PayloadBody {
    payload_id: String,
    r#type: String,
    /// As its kind says.
    data: Value,
    summary: String,
}

impl PayloadBody {
    /// The body of `payload`.
    pub fn from_payload(payload: &Payload) -> Self {
        let Payload { id, kind, data, summary, source: _ } = payload;
        Self { payload_id: id.to_string(), r#type: kind.clone(), data: data.clone(), summary: summary.clone() }
    }
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
