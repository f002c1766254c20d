//! Operations: what calls do to the things that users know by name.

use serde::{Deserialize, Serialize};

use super::ids::ToolCallId;

/// What is done to a thing, or to things of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// One is made.
    Create,
    /// One is read.
    Read,
    /// One is changed.
    Update,
    /// One is removed.
    Delete,
    /// Those that there are.
    List,
    /// Those that fit some words.
    Search,
}

impl Action {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Create, Self::Read, Self::Update, Self::Delete, Self::List, Self::Search];

    /// Its name in events and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Read => "read",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::List => "list",
            Self::Search => "search",
        }
    }

    /// Whether it is about one thing that is there already.
    pub fn is_of_one(self) -> bool {
        matches!(self, Self::Read | Self::Update | Self::Delete)
    }
}

/// How far an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationStatus {
    /// Its call is about to be made.
    Start,
    /// It was made.
    Success,
    /// It came to nothing, or nobody knows.
    Error,
}

impl OperationStatus {
    /// Its name in events.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Success => "success",
            Self::Error => "error",
        }
    }
}

/// What a call does, or has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// The call.
    #[serde(with = "call_id")]
    pub call: ToolCallId,
    /// What it does.
    pub action: Action,
    /// The kind of thing.
    pub kind: String,
    /// The id of the thing, where it is about one and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What users call it; never an id.
    pub name: String,
    /// How far it is.
    pub status: OperationStatus,
}

/// The id of a call as text.
mod call_id {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::ToolCallId;

    pub(super) fn serialize<S: Serializer>(id: &ToolCallId, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(id.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ToolCallId, D::Error> {
        String::deserialize(deserializer).map(ToolCallId::from_model)
    }
}

/// What calls of a tool do to the things that users know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationRule {
    /// What they do.
    pub action: Action,
    /// The kind of thing.
    pub kind: String,
    /// The argument with its id.
    pub id: Option<String>,
    /// The arguments that may name it, best first; a dot leads into an object.
    pub name: Vec<String>,
    /// The tool that reads one of the kind by the same argument, for a name that is not known.
    pub lookup: Option<String>,
    /// The argument in which clients see the name. It is never sent.
    pub shown_as: Option<String>,
}
