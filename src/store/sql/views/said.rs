//! What users see of runs, whatever branch they are on: for transcripts and for the index of what is said.

use std::collections::HashMap;

use super::branch::message_id;
use super::heads::find_head;
use super::{SqlStore, is_seen};
use crate::agent::ports::conversations::{MessageView, PageError, RunTranscript, TranscriptAt, TranscriptPart};
use crate::agent::ports::feedback::KeptFeedback;
use crate::bounded::memory::Reservation;
use crate::chat::ids::{ConversationId, RunId};
use crate::store::answer::decode_answer;
use crate::store::database::Connection;
use crate::store::fates::decode_fates;
use crate::store::fault::{Fault, Undone};
use crate::store::record::{RunRow, run_columns, run_parent};
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope};
use crate::store::sql::feedback;
use crate::store::statement::query;
use crate::store::transcript;
use crate::store::view::{self, Kept, ViewPart};

/// Stored bytes of a part at most, but for those of its first run: 512 KiB.
const PART_BYTES: i64 = 512 << 10;

/// Runs of a part at most.
const PART_RUNS: i64 = 100;

/// The memory of a part, as a multiple of its stored bytes: its rows, their values, the answers' text, and the document that
/// is made of them.
pub(in crate::store::sql) const TIMES: usize = 5;

/// A message: its run, its number there, when it was kept, kind, body; or the fates of calls instead of their results, and
/// whether it is those.
type MessageRow = (String, i64, i64, String, String, bool);

/// A run, with its number and its parent's.
#[derive(sqlx::FromRow)]
struct Row {
    #[sqlx(flatten)]
    run: RunRow,
    run_seq: i64,
    parent: Option<i64>,
}

impl SqlStore {
    pub(in crate::store) async fn try_transcript(
        &self,
        scope: &Scope,
        id: &ConversationId,
        at: Option<TranscriptAt>,
        held: &mut Reservation,
    ) -> Result<Option<TranscriptPart>, Undone<PageError>> {
        let mut transaction = self.database.read(Reach::User(scope)).await?;
        let Some(head) = find_head(&mut transaction, scope, id).await? else { return Ok(None) };
        let TranscriptAt { run: after, until } = match at {
            Some(at) => at,
            None => TranscriptAt { run: -1, until: newest(&mut transaction, scope, id).await? },
        };
        let sizes = sizes(&mut transaction, scope, id, (after, until), PART_RUNS).await?;
        let Some((upto, bytes)) = fitting(&sizes) else {
            return Ok(Some(TranscriptPart { head, runs: Vec::new(), next: None }));
        };
        let more = held.grow(bytes.saturating_mul(TIMES).saturating_sub(held.bytes()));
        more.map_err(|exhausted| Undone::Refused(exhausted.into()))?;
        let mut said = said(&mut transaction, scope, id, (after + 1, upto)).await?;
        let mut given = given(&mut transaction, scope, id, (after + 1, upto)).await?;
        let rows: Vec<Row> = query(concat!(
            "SELECT ",
            run_columns!(),
            ", r.run_seq, ",
            run_parent!(),
            " AS parent FROM runs r WHERE r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3
                 AND r.run_seq > $4 AND r.run_seq <= $5 ORDER BY r.run_seq",
        ))
        .bind((scope, id.as_str(), after, upto))
        .fetch_all(&mut transaction)
        .await?;
        let runs = rows.into_iter().map(|Row { run, run_seq, parent }| {
            let run = run.into_record()?;
            let messages = said.remove(&run.id).unwrap_or_default();
            let (goes_on, feedback) = (parent.unwrap_or(-1) == run_seq - 1, given.remove(&run.id));
            Ok(RunTranscript { run, goes_on, messages, feedback })
        });
        let runs = runs.collect::<Result<_, Fault>>()?;
        let next = (upto < until).then_some(TranscriptAt { run: upto, until });
        Ok(Some(TranscriptPart { head, runs, next }))
    }
}

/// How far runs of these sizes fit, and what they take; the first one does whatever its size.
fn fitting(sizes: &[(i64, i64)]) -> Option<(i64, usize)> {
    let (mut last, mut bytes) = (None, 0_i64);
    for &(run_seq, size) in sizes {
        if last.is_some() && bytes.saturating_add(size) > PART_BYTES {
            break;
        }
        (last, bytes) = (Some(run_seq), bytes.saturating_add(size));
    }
    Some((last?, usize::try_from(bytes).unwrap_or_default()))
}

/// The newest run's number.
async fn newest(connection: &mut dyn Connection, scope: &Scope, id: &ConversationId) -> Result<i64, sqlx::Error> {
    query("SELECT COALESCE(MAX(run_seq), -1) FROM runs WHERE tenant = $1 AND user_id = $2 AND conversation = $3")
        .bind((scope, id.as_str()))
        .fetch_value(connection)
        .await
}

/// The first runs behind a number, up to another one, with the stored bytes of what users see of each.
pub(in crate::store::sql) async fn sizes(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &ConversationId,
    (after, upto): (i64, i64),
    most: i64,
) -> Result<Vec<(i64, i64)>, sqlx::Error> {
    query(
        "SELECT r.run_seq,
             CAST(COALESCE((SELECT SUM(octet_length(CASE WHEN m.fates IS NULL THEN m.body ELSE m.fates END))
                  FROM messages m WHERE m.tenant = $1 AND m.user_id = $2 AND m.conversation = $3
                      AND m.run_seq = r.run_seq), 0)
             + COALESCE(octet_length(d.answer), 0) AS BIGINT)
         FROM runs r LEFT JOIN run_details d ON d.run_id = r.id
         WHERE r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq > $4 AND r.run_seq <= $5
         ORDER BY r.run_seq LIMIT $6",
    )
    .bind((scope, id.as_str(), after, upto, most))
    .fetch_all(connection)
    .await
}

/// What users see of the runs from one number to another, by run.
pub(in crate::store::sql) async fn said(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &ConversationId,
    (from, upto): (i64, i64),
) -> Result<HashMap<RunId, Vec<MessageView>>, Fault> {
    let rows: Vec<MessageRow> = query(concat!(
        "SELECT r.id, m.seq, CASE WHEN m.created_at = 0 THEN r.started_at ELSE m.created_at END, m.kind,
             CASE WHEN m.fates IS NULL THEN m.body ELSE m.fates END, m.fates IS NOT NULL
         FROM runs r JOIN messages m ON m.tenant = $1 AND m.user_id = $2 AND m.conversation = $3 AND m.run_seq = r.run_seq
         WHERE r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq >= $4 AND r.run_seq <= $5
             AND (m.kind = 'tool_results' OR ",
        is_seen!(),
        ") ORDER BY m.run_seq, m.seq",
    ))
    .bind((scope, id.as_str(), from, upto))
    .fetch_all(&mut *connection)
    .await?;
    let kept = rows.into_iter().map(|(run, seq, created_at_ms, kind, body, is_fates)| {
        let what = match is_fates {
            true => ViewPart::Fates(decode_fates(&body)?),
            false => ViewPart::from_message(transcript::decode(&kind, &body)?),
        };
        let run = RunId::parse(&run).map_err(RecordError::from)?;
        Ok(Kept { id: message_id(run, seq), created_at_ms, what })
    });
    let mut by_run: HashMap<RunId, Vec<MessageView>> = HashMap::new();
    for message in view::messages(kept.collect::<Result<_, Fault>>()?) {
        by_run.entry(message.id.run).or_default().push(message);
    }
    let answers: Vec<(String, String)> = query(
        "SELECT r.id, d.answer FROM runs r JOIN run_details d ON d.run_id = r.id
         WHERE r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq >= $4 AND r.run_seq <= $5
             AND d.answer IS NOT NULL",
    )
    .bind((scope, id.as_str(), from, upto))
    .fetch_all(connection)
    .await?;
    for (run, body) in answers {
        let run = RunId::parse(&run).map_err(RecordError::from)?;
        if let Some(messages) = by_run.get_mut(&run) {
            view::replace_with_answer_text(messages, run, &decode_answer(&body, None)?);
        }
    }
    Ok(by_run)
}

/// The feedback on the runs from one number to another, by run.
pub(super) async fn given(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &ConversationId,
    (from, upto): (i64, i64),
) -> Result<HashMap<RunId, KeptFeedback>, Fault> {
    let rows: Vec<feedback::KeptRow> = query(
        "SELECT f.run_id, f.score, f.body, f.given_at FROM feedback f JOIN runs r ON r.id = f.run_id
         WHERE f.tenant = $1 AND f.user_id = $2 AND f.conversation = $3 AND r.run_seq >= $4 AND r.run_seq <= $5",
    )
    .bind((scope, id.as_str(), from, upto))
    .fetch_all(connection)
    .await?;
    let each = rows
        .into_iter()
        .map(|row| Ok(feedback::kept(row)?))
        .map(|kept| kept.map(|kept: KeptFeedback| (kept.run, kept)));
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::{PART_BYTES, fitting};

    #[test]
    fn a_part_has_the_runs_that_fit_and_always_one() {
        type Row = (&'static [(i64, i64)], Option<(i64, usize)>, &'static str);
        let rows: [Row; 4] = [
            (&[], None, "nothing"),
            (&[(0, 1), (1, 2)], Some((1, 3)), "all fit"),
            (&[(0, PART_BYTES), (1, 1)], Some((0, 524_288)), "the second does not"),
            (&[(0, PART_BYTES * 2), (1, 1)], Some((0, 1_048_576)), "the first does whatever its size"),
        ];
        for (sizes, expected, reason) in rows {
            assert_eq!(fitting(sizes), expected, "{reason}");
        }
    }
}
