//! The long parts of a run, kept apart from its row, which is written anew with each lease: the screen state of its
//! request, the earlier messages of its client, the calls it left, and its answer.

use super::ConversationRow;
use crate::chat::answer::Answer;
use crate::chat::ids::RunId;
use crate::chat::screen::ScreenState;
use crate::chat::tool::ToolCall;
use crate::store::answer::{AnswerRecord, encode_answer};
use crate::store::client::{decode_calls, encode_calls};
use crate::store::database::Connection;
use crate::store::fault::Fault;
use crate::store::record_error::RecordError;
use crate::store::statement::{Batch, query};
use crate::store::transcript;

/// Keeps the screen state of a run that begins.
pub(super) fn keep_context(batch: &mut Batch, run: RunId, context: Option<&ScreenState>) {
    let Some(context) = context else { return };
    let keep = batch.say("INSERT INTO run_details (run_id, context) VALUES ($1, $2)");
    keep.bind((run.to_string(), context.as_str().to_owned()));
}

/// Keeps the client's messages from before the run with which the conversation begins.
pub(super) fn insert_client_history(batch: &mut Batch, run: RunId, history: String) {
    let keep = batch.say(
        "INSERT INTO run_details (run_id, earlier) VALUES ($1, $2)
         ON CONFLICT (run_id) DO UPDATE SET earlier = excluded.earlier",
    );
    keep.bind((run.to_string(), history));
}

/// Keeps the answer of a run that ends.
///
/// # Errors
/// When it cannot be written.
pub(super) fn keep_answer(batch: &mut Batch, run: RunId, answer: Option<&Answer>) -> Result<(), RecordError> {
    let Some(answer) = answer else { return Ok(()) };
    let AnswerRecord { body, diagnostics } = encode_answer(answer)?;
    let keep = batch.say(
        "INSERT INTO run_details (run_id, answer, diagnostics) VALUES ($1, $2, $3)
         ON CONFLICT (run_id) DO UPDATE SET answer = excluded.answer, diagnostics = excluded.diagnostics",
    );
    keep.bind((run.to_string(), body, diagnostics));
    Ok(())
}

/// Keeps the calls that a run leaves to its client.
///
/// # Errors
/// When they cannot be written.
pub(super) fn keep_left(batch: &mut Batch, run: RunId, left: &[ToolCall]) -> Result<(), RecordError> {
    if left.is_empty() {
        return Ok(());
    }
    let keep = batch.say(
        "INSERT INTO run_details (run_id, client_calls) VALUES ($1, $2)
         ON CONFLICT (run_id) DO UPDATE SET client_calls = excluded.client_calls",
    );
    keep.bind((run.to_string(), encode_calls(left)?));
    Ok(())
}

/// The calls that a run of the conversation left to its client.
///
/// # Errors
/// When they cannot be read.
pub(super) async fn left_by(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    run_seq: i64,
) -> Result<Vec<ToolCall>, Fault> {
    let text: Option<Option<String>> = query(
        "SELECT d.client_calls FROM runs r JOIN run_details d ON d.run_id = r.id
         WHERE r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = $4",
    )
    .bind((&conversation.scope, &conversation.id, run_seq))
    .fetch_optional_value(connection)
    .await?;
    Ok(text.flatten().map(|text| decode_calls(&text)).transpose()?.unwrap_or_default())
}

/// The screen state of a run's request.
///
/// # Errors
/// When it cannot be read.
pub(super) async fn context_of(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    run_seq: i64,
) -> Result<Option<ScreenState>, Fault> {
    let text: Option<Option<String>> = query(
        "SELECT d.context FROM runs r JOIN run_details d ON d.run_id = r.id
         WHERE r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = $4",
    )
    .bind((&conversation.scope, &conversation.id, run_seq))
    .fetch_optional_value(connection)
    .await?;
    Ok(text.flatten().map(|text| transcript::screen(&text)).transpose()?)
}
