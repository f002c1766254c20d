//! A conversation that is shown again, for protocols whose clients keep its messages themselves.

use crate::chat::approval::Approval;
use crate::chat::artifact::Artifact;
use crate::chat::fate::CallFate;
use crate::chat::ids::MessageId;
use crate::chat::notice::Notice;

/// An earlier message.
#[derive(Debug, Clone, PartialEq)]
pub enum Shown {
    /// By the user.
    User {
        /// Its id.
        id: MessageId,
        /// The words.
        text: String,
    },
    /// By the assistant.
    Assistant {
        /// Its id.
        id: MessageId,
        /// The words; empty where it only called tools.
        text: String,
        /// What the server told beside it.
        notices: Vec<Notice>,
        /// The tools it called.
        calls: Vec<ShownCall>,
    },
}

/// A call that was made before. Its arguments are not told again but while it waits, nor is its result.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownCall {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// What has become of it.
    pub state: ShownState,
    /// What it has made for the screen.
    pub made: Vec<Artifact>,
}

/// What has become of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum ShownState {
    /// It waits for a person.
    Waits(Box<Approval>),
    /// This.
    Ended(CallFate),
}
