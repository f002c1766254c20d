//! A person's decisions on the calls that wait: the `resume` of a `RunAgentInput`.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::json;
use super::{Errors, refuse};
use crate::bounded::json::{Tree, parse};
use crate::chat::approval::Decision;
use crate::chat::ids::ApprovalId;

/// The longest comment on a decision, in bytes.
const COMMENT_BYTES: usize = 4096;

/// The most decisions of one request, as many as a list of what waits has.
const MOST_DECISIONS: usize = 100;

/// A person's decision on one call that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The call.
    pub approval: ApprovalId,
    /// The entry.
    pub entry: Entry,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// They decided.
    Resolved(Decision),
    /// They went away without an answer, which lets nothing through.
    Cancelled,
}

impl Entry {
    /// The decision in it.
    pub fn decision(&self) -> Decision {
        match self {
            Self::Resolved(decision) => decision.clone(),
            Self::Cancelled => Decision { approve: false, comment: None },
        }
    }
}

/// An entry of `resume`. Not every key is known: what edits a call must not be ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResumeEntry {
    interrupt_id: String,
    status: Status,
    payload: Option<Tree>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Resolved,
    Cancelled,
}

/// The entries of `resume`; mistakes go to `errors`.
pub(super) fn resume(raw: Option<&RawValue>, errors: &mut Errors) -> Vec<Answered> {
    let Some(raw) = json::given(raw) else { return Vec::new() };
    let Ok(entries) = parse::<Vec<ResumeEntry>>(raw.get()) else {
        refuse(
            errors,
            "resume",
            "must be a list of objects with interruptId, status (resolved or cancelled) and payload",
        );
        return Vec::new();
    };
    if entries.len() > MOST_DECISIONS {
        refuse(errors, "resume", format!("must have at most {MOST_DECISIONS} entries"));
        return Vec::new();
    }
    let mut answered: Vec<Answered> = Vec::with_capacity(entries.len());
    for (at, entry) in entries.into_iter().enumerate() {
        match read(entry) {
            Ok(read) if answered.iter().any(|known| known.approval == read.approval) => {
                refuse(errors, "resume", format!("answers {} twice", read.approval));
            }
            Ok(read) => answered.push(read),
            Err(reason) => refuse(errors, "resume", format!("[{at}] {reason}")),
        }
    }
    answered
}

fn read(ResumeEntry { interrupt_id, status, payload }: ResumeEntry) -> Result<Answered, String> {
    let approval = ApprovalId::parse(&interrupt_id).map_err(|_| "interruptId is no id of an interrupt".to_owned())?;
    if status == Status::Cancelled {
        return Ok(Answered { approval, entry: Entry::Cancelled });
    }
    let Some(Tree(Value::Object(payload))) = payload else {
        return Err("must have a payload with approved: true or false".to_owned());
    };
    if payload.contains_key("editedArgs") {
        return Err("must not have editedArgs: a call is made as it was shown, or not at all".to_owned());
    }
    let Some(Value::Bool(approve)) = payload.get("approved").cloned() else {
        return Err("payload.approved must be true or false".to_owned());
    };
    let comment = match payload.get("comment") {
        None | Some(Value::Null) => None,
        Some(Value::String(comment)) => Some(comment.trim().to_owned()).filter(|comment| !comment.is_empty()),
        Some(_) => return Err("payload.comment must be a text".to_owned()),
    };
    if comment.as_ref().is_some_and(|comment| comment.len() > COMMENT_BYTES) {
        return Err(format!("payload.comment must be at most {COMMENT_BYTES} bytes"));
    }
    Ok(Answered { approval, entry: Entry::Resolved(Decision { approve, comment }) })
}
