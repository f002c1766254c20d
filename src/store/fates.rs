//! The fates of a turn's calls, kept beside their results: a view of a conversation need not read those, which may be
//! long.

use super::record_error::RecordError;
use crate::chat::fate::CallFate;
use crate::chat::message::Message;
use crate::chat::tool::ToolResult;

/// All fates, to find one by its name.
const FATES: [CallFate; 4] = [CallFate::Done, CallFate::Failed, CallFate::NotRun, CallFate::Unknown];

/// The fates of the calls that `results` answer, by their ids.
pub(super) fn fates(results: &[ToolResult]) -> Vec<(String, CallFate)> {
    results.iter().map(|result| (result.id.as_str().to_owned(), result.fate)).collect()
}

/// The fates of the calls that `message` answers as JSON text, `[["toolu_1", "done"]]`; `None` for what answers no
/// calls.
///
/// # Errors
/// When they cannot be written as JSON.
pub(super) fn encode_fates(message: &Message) -> Result<Option<String>, RecordError> {
    let Message::ToolResults(results) = message else { return Ok(None) };
    let fates: Vec<(String, &str)> = fates(results).into_iter().map(|(id, fate)| (id, fate.name())).collect();
    Ok(Some(serde_json::to_string(&fates).map_err(RecordError::json("fate"))?))
}

/// The calls' ids and fates in `text`.
///
/// # Errors
/// When it is not what [`encode_fates`] wrote.
pub(super) fn decode_fates(text: &str) -> Result<Vec<(String, CallFate)>, RecordError> {
    let rows: Vec<(String, String)> = serde_json::from_str(text).map_err(RecordError::json("fate"))?;
    let fate = |(id, name): (String, String)| {
        let fate = FATES.into_iter().find(|fate| fate.name() == name).ok_or(RecordError::Fate)?;
        Ok((id, fate))
    };
    rows.into_iter().map(fate).collect()
}
