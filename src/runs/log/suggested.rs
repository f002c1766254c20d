//! Suggestions in the lines of a log outside this process.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::answer::{ActionHandler, ActionStyle, SuggestedAction, SuggestedValue, Suggestions};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SuggestionsLine<'a> {
    #[serde(borrow)]
    values: Option<Vec<ValueLine<'a>>>,
    #[serde(borrow)]
    actions: Option<Vec<ActionLine<'a>>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ValueLine<'a> {
    #[serde(borrow)]
    label: Cow<'a, str>,
    #[serde(borrow)]
    value: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ActionLine<'a> {
    #[serde(borrow)]
    label: Cow<'a, str>,
    #[serde(borrow)]
    action: Cow<'a, str>,
    handler: HandlerLine,
    data: Option<Cow<'a, Value>>,
    style: Option<StyleLine>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum HandlerLine {
    Client,
    Server,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StyleLine {
    Primary,
    Secondary,
    Warning,
}

impl<'a> SuggestionsLine<'a> {
    pub(super) fn from_suggestions(suggestions: &'a Suggestions) -> Self {
        let value = |value: &'a SuggestedValue| ValueLine {
            label: Cow::Borrowed(&value.label),
            value: Cow::Borrowed(&value.value),
        };
        let action = |action: &'a SuggestedAction| ActionLine {
            label: Cow::Borrowed(&action.label),
            action: Cow::Borrowed(&action.action),
            handler: match action.handler {
                ActionHandler::Client => HandlerLine::Client,
                ActionHandler::Server => HandlerLine::Server,
            },
            data: action.data.as_ref().map(Cow::Borrowed),
            style: action.style.map(|style| match style {
                ActionStyle::Primary => StyleLine::Primary,
                ActionStyle::Secondary => StyleLine::Secondary,
                ActionStyle::Warning => StyleLine::Warning,
            }),
        };
        Self {
            values: suggestions.values.as_ref().map(|values| values.iter().map(value).collect()),
            actions: suggestions.actions.as_ref().map(|actions| actions.iter().map(action).collect()),
        }
    }

    pub(super) fn into_suggestions(self) -> Suggestions {
        let value =
            |value: ValueLine<'_>| SuggestedValue { label: value.label.into_owned(), value: value.value.into_owned() };
        let action = |action: ActionLine<'_>| SuggestedAction {
            label: action.label.into_owned(),
            action: action.action.into_owned(),
            handler: match action.handler {
                HandlerLine::Client => ActionHandler::Client,
                HandlerLine::Server => ActionHandler::Server,
            },
            data: action.data.map(Cow::into_owned),
            style: action.style.map(|style| match style {
                StyleLine::Primary => ActionStyle::Primary,
                StyleLine::Secondary => ActionStyle::Secondary,
                StyleLine::Warning => ActionStyle::Warning,
            }),
        };
        Suggestions {
            values: self.values.map(|values| values.into_iter().map(value).collect()),
            actions: self.actions.map(|actions| actions.into_iter().map(action).collect()),
        }
    }
}
