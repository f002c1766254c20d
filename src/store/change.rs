//! The rows of changes and decisions: serde counterparts of [`crate::chat::preview`], whose types have none by law.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::record_error::RecordError;
use crate::chat::digest::sha256_hex;
use crate::chat::ids::PreviewId;
use crate::chat::preview::{Change, Decided, Save, SaveVerb, Verdict};

/// 256 KiB: a rule of 200 actions has less, and what is larger is not looked at step by step.
const CURRENT_BYTES: usize = 256 * 1024;

/// A [`Change`]. Its body is kept raw: the reader's depth limit then counts the body alone, as it did when the body came.
#[derive(Serialize, Deserialize)]
struct ChangeRow<'a> {
    what: Cow<'a, str>,
    existing_id: Option<Cow<'a, str>>,
    name: Cow<'a, str>,
    verb: VerbRow,
    path: Cow<'a, [String]>,
    body: Box<RawValue>,
}

/// A [`Decided`].
#[derive(Serialize, Deserialize)]
pub(super) struct DecidedRow<'a> {
    preview: Cow<'a, str>,
    what: Cow<'a, str>,
    name: Cow<'a, str>,
    verdict: VerdictRow,
    comment: Option<Cow<'a, str>>,
    saved_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    may_be_saved: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum VerbRow {
    Create,
    Replace,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum VerdictRow {
    Accept,
    Reject,
}

/// The change as JSON text.
///
/// # Errors
/// When its body is nested so deeply that it could not be read again.
pub(super) fn encode_change(change: &Change) -> Result<String, RecordError> {
    let row = ChangeRow {
        what: Cow::Borrowed(&change.what),
        existing_id: change.existing_id.as_deref().map(Cow::Borrowed),
        name: Cow::Borrowed(&change.name),
        verb: match change.save.verb {
            SaveVerb::Create => VerbRow::Create,
            SaveVerb::Replace => VerbRow::Replace,
        },
        path: Cow::Borrowed(&change.save.path),
        body: to_raw_value(&change.body).map_err(RecordError::json("change"))?,
    };
    let text = serde_json::to_string(&row).map_err(RecordError::json("change"))?;
    decode_change(&text)?;
    Ok(text)
}

/// The change in `text`.
///
/// # Errors
/// When it is not what [`encode_change`] wrote.
pub(super) fn decode_change(text: &str) -> Result<Change, RecordError> {
    let row: ChangeRow<'_> = serde_json::from_str(text).map_err(RecordError::json("change"))?;
    Ok(Change {
        what: row.what.into_owned(),
        existing_id: row.existing_id.map(Cow::into_owned),
        name: row.name.into_owned(),
        save: Save {
            verb: match row.verb {
                VerbRow::Create => SaveVerb::Create,
                VerbRow::Replace => SaveVerb::Replace,
            },
            path: row.path.into_owned(),
        },
        body: serde_json::from_str(row.body.get()).map_err(RecordError::json("change"))?,
        current: None,
    })
}

/// The target of a change as JSON text. `None` where there is none, or it is too long to compare, or it could not be
/// read again: a preview without it is still a preview.
pub(super) fn encode_current(change: &Change) -> Option<String> {
    let text = serde_json::to_string(change.current.as_ref()?).ok().filter(|text| text.len() <= CURRENT_BYTES)?;
    decode_current(&text).is_ok().then_some(text)
}

/// The target of a change, from `text`.
///
/// # Errors
/// When it is not what [`encode_current`] wrote.
pub(super) fn decode_current(text: &str) -> Result<Value, RecordError> {
    serde_json::from_str(text).map_err(RecordError::json("what a preview changes"))
}

/// The subject of a change, in a fixed length: of two previews about the same thing in a conversation the newer one
/// counts. An update is about the thing's id, a new thing about its name.
pub(super) fn subject(change: &Change) -> String {
    let thing = match &change.existing_id {
        Some(id) => ("id", id),
        None => ("name", &change.name),
    };
    let text = serde_json::json!([change.what, thing.0, thing.1]).to_string();
    sha256_hex(text.as_bytes())
}

/// The decision as JSON text.
///
/// # Errors
/// When it cannot be written as JSON.
pub(super) fn encode_decided(decided: &Decided) -> Result<String, RecordError> {
    serde_json::to_string(&DecidedRow::from_decided(decided)).map_err(RecordError::json("decision"))
}

/// The decision in `text`.
///
/// # Errors
/// When it is not what [`encode_decided`] wrote.
pub(super) fn decode_decided(text: &str) -> Result<Decided, RecordError> {
    let row: DecidedRow<'_> = serde_json::from_str(text).map_err(RecordError::json("decision"))?;
    row.into_decided()
}

impl<'a> DecidedRow<'a> {
    /// The row of `decided`.
    pub(super) fn from_decided(decided: &'a Decided) -> Self {
        Self {
            preview: Cow::Owned(decided.preview.to_string()),
            what: Cow::Borrowed(&decided.what),
            name: Cow::Borrowed(&decided.name),
            verdict: match decided.verdict {
                Verdict::Accept => VerdictRow::Accept,
                Verdict::Reject => VerdictRow::Reject,
            },
            comment: decided.comment.as_deref().map(Cow::Borrowed),
            saved_id: decided.saved_id.as_deref().map(Cow::Borrowed),
            may_be_saved: decided.may_be_saved,
        }
    }

    /// The decision of this row.
    ///
    /// # Errors
    /// When its id is none.
    pub(super) fn into_decided(self) -> Result<Decided, RecordError> {
        Ok(Decided {
            preview: PreviewId::parse(&self.preview)?,
            what: self.what.into_owned(),
            name: self.name.into_owned(),
            verdict: match self.verdict {
                VerdictRow::Accept => Verdict::Accept,
                VerdictRow::Reject => Verdict::Reject,
            },
            comment: self.comment.map(Cow::into_owned),
            saved_id: self.saved_id.map(Cow::into_owned),
            may_be_saved: self.may_be_saved,
        })
    }
}
