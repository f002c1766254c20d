//! Previews: a change that a tool has validated, and that only its user can let through.

use serde_json::Value;

use super::ids::{ConversationId, PreviewId};

/// A change that waits for its user's decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// Its id, sent to the client with the artifact.
    pub id: PreviewId,
    /// Where it was made.
    pub conversation: ConversationId,
    /// The change that accepting it makes.
    pub change: Change,
}

/// The change that accepting a preview saves, complete: nothing of it comes from a later request.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The kind of thing that is changed, in words for people and the model; each tool has its own.
    pub what: String,
    /// The existing object's id for an update, `None` for a new one.
    pub existing_id: Option<String>,
    /// A name for people.
    pub name: String,
    /// How it is saved.
    pub save: Save,
    /// The body the backend gets.
    pub body: Value,
    /// The target as it was when the preview was made, in the shape of `body`; for updates, where it could be read. It
    /// is there to be compared with, takes no part in the save, and is read back only for one preview that waits.
    pub current: Option<Value>,
}

/// The state that a change was made against, so that a save can find out whether it still holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// The reader that finds the thing again; the tool that makes the change knows its own.
    pub reader: String,
    /// The digest of what the change would overwrite, as it was then. `None` for a new thing, and where it could not be read.
    pub digest: Option<String>,
}

/// Who made a preview. Their roles are checked again wherever it is listed or decided.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    /// The `context_type` of the profile; `None` in records of before this was kept.
    pub context_type: Option<String>,
    /// The tool; `None` in those too.
    pub tool: Option<String>,
}

/// The backend call that saves a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Save {
    /// Whether it makes a new thing or replaces an existing one.
    pub verb: SaveVerb,
    /// The path's segments, unencoded.
    pub path: Vec<String>,
}

/// The method of a save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaveVerb {
    /// Makes a new thing (`POST`).
    Create,
    /// Replaces an existing one (`PUT`).
    Replace,
}

impl Save {
    /// A save that makes a new thing at `path`.
    pub fn create<'a>(path: impl IntoIterator<Item = &'a str>) -> Self {
        Self { verb: SaveVerb::Create, path: path.into_iter().map(str::to_owned).collect() }
    }

    /// A save that replaces the thing at `path`.
    pub fn replace<'a>(path: impl IntoIterator<Item = &'a str>) -> Self {
        Self { verb: SaveVerb::Replace, ..Self::create(path) }
    }
}

/// The user's verdict on a preview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Save it.
    Accept,
    /// Do not.
    Reject,
}

/// A decision that has taken effect.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided {
    /// The preview.
    pub preview: PreviewId,
    /// The kind of thing that was changed, in words.
    pub what: String,
    /// The object's name for people.
    pub name: String,
    /// The user's verdict.
    pub verdict: Verdict,
    /// Why, in the user's words.
    pub comment: Option<String>,
    /// The id the backend saved it under; only after an accept.
    pub saved_id: Option<String>,
    /// Whether an earlier save was sent whose answer never came, so that what was rejected may be there all the same.
    pub may_be_saved: bool,
}

impl Decided {
    /// The decision as one bracketed line for the model.
    pub fn sentence(&self) -> String {
        let what = &self.what;
        let mut line = match (self.verdict, &self.saved_id) {
            (Verdict::Accept, Some(id)) => {
                format!("[The user accepted the preview of the {what} {:?}; it is saved with id {id}.", self.name)
            }
            (Verdict::Accept, None) => {
                format!("[The user accepted the preview of the {what} {:?}; it is saved.", self.name)
            }
            (Verdict::Reject, _) if self.may_be_saved => format!(
                "[The user rejected the preview of the {what} {:?}. An earlier attempt to save it was never confirmed, so it may be \
                 saved all the same; look before you say that it is not.",
                self.name
            ),
            (Verdict::Reject, _) => {
                format!("[The user rejected the preview of the {what} {:?}; nothing was saved.", self.name)
            }
        };
        if let Some(comment) = &self.comment {
            line.push_str(&format!(" Their comment: {comment:?}"));
        }
        line.push(']');
        line
    }
}
