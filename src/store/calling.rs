//! The note of a turn whose write was sent off: serde's counterpart of [`Unfinished`], from which anybody can settle
//! the turn.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::record_error::RecordError;
use super::transcript::{IdRow, decode, encode};
use crate::chat::message::Message;
use crate::chat::unfinished::Unfinished;

/// An [`Unfinished`]. Its messages are kept raw: the reader's depth limit then counts each alone, as it does in their
/// own rows.
#[derive(Serialize, Deserialize)]
struct CallingRow<'a> {
    message: Box<RawValue>,
    results: Box<RawValue>,
    #[serde(borrow)]
    dispatched: Option<IdRow<'a>>,
}

/// The turn as JSON text.
///
/// # Errors
/// When it cannot be written as JSON.
pub(super) fn encode_calling(turn: &Unfinished) -> Result<String, RecordError> {
    let raw = |message| {
        let record = encode(&message)?;
        RawValue::from_string(record.body).map_err(RecordError::json("turn"))
    };
    let row = CallingRow {
        message: raw(Message::Assistant(turn.message.clone()))?,
        results: raw(Message::ToolResults(turn.results.clone()))?,
        dispatched: turn.dispatched.as_ref().map(IdRow::from_id),
    };
    serde_json::to_string(&row).map_err(RecordError::json("turn"))
}

/// The turn in `text`.
///
/// # Errors
/// When it is not what [`encode_calling`] wrote.
pub(super) fn decode_calling(text: &str) -> Result<Unfinished, RecordError> {
    let row: CallingRow<'_> = serde_json::from_str(text).map_err(RecordError::json("turn"))?;
    let message = decode("assistant", row.message.get())?;
    let results = decode("tool_results", row.results.get())?;
    let (Message::Assistant(message), Message::ToolResults(results)) = (message, results) else {
        return Err(RecordError::Kind);
    };
    Ok(Unfinished { message, results, dispatched: row.dispatched.map(IdRow::into_id) })
}
