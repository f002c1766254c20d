//! A run's answer for its user, beside the exact transcript that the model sees: the text without markers, the
//! positions of calls in it, and the model's suggestions.

use serde_json::Value;

use super::ids::ToolCallId;
use super::notice::Notice;

/// A run's answer as its user sees it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// Text and calls in the order in which they came.
    pub pieces: Vec<AnswerPiece>,
    /// The model's suggestions.
    pub suggestions: Suggestions,
    /// How the run was carried out, where its profile lets its caller see that.
    pub diagnostics: Option<Value>,
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerPiece {
    /// Text for the user, markers taken out.
    Text(String),
    /// A text of the server instead of the model.
    Notice(String),
    /// What the server told of files here, beside the text.
    NotShown(Notice),
    /// A call stands here.
    Call(ToolCallId),
    /// The calls of one turn end here.
    RoundEnd,
}

/// A model's suggestions to its user.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Suggestions {
    /// Things to say; `None` when it suggested none.
    pub values: Option<Vec<SuggestedValue>>,
    /// Things to do; `None` when it suggested none.
    pub actions: Option<Vec<SuggestedAction>>,
}

impl Suggestions {
    /// Whether there are none of either kind.
    pub fn is_empty(&self) -> bool {
        self.values.is_none() && self.actions.is_none()
    }
}

/// Something to say next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuggestedValue {
    /// The button's label.
    pub label: String,
    /// The text that is sent when it is chosen.
    pub value: String,
}

/// Something to do next.
#[derive(Debug, Clone, PartialEq)]
pub struct SuggestedAction {
    /// The button's label.
    pub label: String,
    /// The action's name.
    pub action: String,
    /// Its handler.
    pub handler: ActionHandler,
    /// Data for the handler.
    pub data: Option<Value>,
    /// How the button looks.
    pub style: Option<ActionStyle>,
}

/// The handler of a suggested action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionHandler {
    /// The front end by itself.
    Client,
    /// The server: a message with the action's name and data is sent.
    Server,
}

/// How the button of an action looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionStyle {
    /// The usual choice.
    Primary,
    /// Another choice.
    Secondary,
    /// One that needs a second thought.
    Warning,
}
