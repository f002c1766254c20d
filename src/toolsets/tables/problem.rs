//! What can be wrong with a table configuration or with a change to it: a path, a sentence and a stable code. The
//! validator and the edits make problems, the model reads them.

use serde_json::{Value, json};

/// A problem's kind, part of the tools' contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// A value that must be there is missing or empty.
    Required,
    /// A value outside its list, or already taken.
    InvalidValue,
    /// A name or reference that is not written as one.
    InvalidFormat,
    /// A date pattern that date-fns does not understand.
    InvalidDateFormat,
    /// A selected column that no visual setting describes.
    MissingVisualSettings,
    /// Some visible columns have an order and some have none.
    StrictOrder,
    /// A visible column is headed as an id.
    VisibleIdHeader,
    /// A link sits on an id instead of something a person can read.
    IdColumnWithLink,
    /// A column or table that the configuration does not have.
    InvalidFieldReference,
    /// JSON of another shape than a table configuration's.
    InvalidConfig,
}

impl Code {
    /// The code as the model reads it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Required => "REQUIRED",
            Self::InvalidValue => "INVALID_VALUE",
            Self::InvalidFormat => "INVALID_FORMAT",
            Self::InvalidDateFormat => "INVALID_DATE_FORMAT",
            Self::MissingVisualSettings => "MISSING_VISUAL_SETTINGS",
            Self::StrictOrder => "STRICT_ORDER",
            Self::VisibleIdHeader => "VISIBLE_ID_HEADER",
            Self::IdColumnWithLink => "ID_COLUMN_WITH_LINK",
            Self::InvalidFieldReference => "INVALID_FIELD_REFERENCE",
            Self::InvalidConfig => "INVALID_CONFIG",
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// A path such as `data_source[0].filters[1].operator`, or an argument's name.
    pub field: String,
    /// What, and what to do instead. Names things by name and not by index, so that it stays the same when others move.
    pub message: String,
    /// Which kind.
    pub code: Code,
}

impl Problem {
    /// A problem at `field`.
    pub fn new(code: Code, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into(), code }
    }

    /// The problem in the contract's shape, its keys in capitals: `{"Field", "Message", "Code"}`.
    pub fn to_value(&self) -> Value {
        json!({ "Field": self.field, "Message": self.message, "Code": self.code.as_str() })
    }

    /// The problem as one phrase, for a tool error.
    pub fn sentence(&self) -> String {
        format!("{}: {} ({})", self.field, self.message, self.code.as_str())
    }
}

/// The problems as a JSON list.
pub fn to_values(problems: &[Problem]) -> Value {
    problems.iter().map(Problem::to_value).collect()
}
