//! All of a conversation, a part at a time: every branch, every run, the trail. A part is looked at twice: how large its rows
//! are, and then, when there is memory for them, what they say.

use serde_json::value::RawValue;

use super::artifacts::{self, artifact_columns};
use super::branch::message_id;
use super::heads::find_head;
use super::trail::{self, item};
use super::{SqlStore, approvals_behind, feedback};
use crate::agent::ports::conversations::{
    ArtifactExport, ExportAt, ExportEnd, ExportItem, ExportPart, MessageExport, PageError, PayloadExport, RunExport,
};
use crate::bounded::memory::Reservation;
use crate::chat::causes::Causes;
use crate::chat::ids::{ConversationId, PayloadId, RunId};
use crate::store::database::Connection;
use crate::store::fault::{Fault, Undone};
use crate::store::record::{RunRow, run_columns, run_parent};
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope, original};
use crate::store::statement::query;
use crate::store::transcript;

/// Stored bytes of a part at most, but for those of its first row: 512 KiB.
const PART_BYTES: i64 = 512 << 10;

/// Rows of a part at most.
const PART_ROWS: i64 = 500;

/// Approvals of a part at most: each has up to 128 KiB.
const PART_APPROVALS: i64 = 4;

/// The memory of a part, as a multiple of its stored bytes: its rows, the document that is made of them, and the bytes
/// of it that are on their way.
const TIMES: usize = 3;

/// A run with its number and the branch that it goes on from.
#[derive(sqlx::FromRow)]
struct Row {
    #[sqlx(flatten)]
    run: RunRow,
    run_seq: i64,
    parent_run: Option<String>,
    parent_seq: Option<i64>,
    context: Option<String>,
    score: Option<i64>,
    feedback: Option<String>,
    given_at: Option<i64>,
}

/// A message: its run and its run's number, its own number there, when it was kept, kind, body.
type Message = (String, i64, i64, i64, String, String);

/// How large a row is, behind its position.
type Size = (i64, i64, i64);

/// The position of the last row that fits, how much those up to it take, and whether there are more.
type Fitting = ((i64, i64), usize, bool);

/// The rows of these sizes that fit, in order; the first one does whatever its size.
fn fitting(sizes: &[Size]) -> Option<Fitting> {
    let (mut bytes, mut last, mut count) = (0_i64, None, 0);
    for &(run_seq, number, size) in sizes {
        if last.is_some() && bytes.saturating_add(size) > PART_BYTES {
            break;
        }
        (bytes, last, count) = (bytes.saturating_add(size), Some((run_seq, number)), count + 1);
    }
    let has_more = count < sizes.len() || i64::try_from(sizes.len()).is_ok_and(|rows| rows == PART_ROWS);
    Some((last?, usize::try_from(bytes).unwrap_or_default(), has_more))
}

/// Reserves what rows of so many bytes take.
fn reserve(held: &mut Reservation, bytes: usize) -> Result<(), Undone<PageError>> {
    let more = held.grow(bytes.saturating_mul(TIMES).saturating_sub(held.bytes()));
    more.map_err(|exhausted| Undone::Refused(exhausted.into()))
}

/// A part, where there is memory for it.
type Read = Result<ExportPart, Undone<PageError>>;

impl SqlStore {
    pub(in crate::store) async fn try_export(
        &self,
        scope: &Scope,
        id: &ConversationId,
        at: ExportAt,
        held: &mut Reservation,
    ) -> Result<Option<ExportPart>, Undone<PageError>> {
        let mut transaction = self.database.read(Reach::User(scope)).await?;
        let Some(head) = find_head(&mut transaction, scope, id).await? else { return Ok(None) };
        let connection = &mut transaction;
        let part = match at {
            ExportAt::Start => {
                let next = Some(ExportAt::Messages { run: -1, seq: -1, until: end(connection, scope, id).await? });
                ExportPart { items: vec![ExportItem::Head(head)], next }
            }
            ExportAt::Messages { run, seq, until } => messages(connection, scope, id, (run, seq, until), held).await?,
            ExportAt::Payloads { seq, until } => payloads(connection, scope, id, (seq, until), held).await?,
            ExportAt::Artifacts { run, seq, until } => {
                artifacts(connection, scope, id, (run, seq, until), held).await?
            }
            ExportAt::Approvals { at_ms, id: after, until } => {
                let found = approvals_behind(connection, scope, id.as_str(), (at_ms, &after), PART_APPROVALS).await?;
                let next = match found.last() {
                    Some(last) => {
                        let (at_ms, id) = (last.approval.created_at_ms, last.approval.id.to_string());
                        ExportAt::Approvals { at_ms, id, until }
                    }
                    None => ExportAt::Trail { id: 0, until },
                };
                let items = found.into_iter().map(|view| ExportItem::Approval(Box::new(view))).collect();
                ExportPart { items, next: Some(next) }
            }
            ExportAt::Trail { id: after, until } => trail(connection, scope, id, (after, until), held).await?,
        };
        Ok(Some(part))
    }
}

/// The newest rows now.
async fn end(connection: &mut dyn Connection, scope: &Scope, id: &ConversationId) -> Result<ExportEnd, sqlx::Error> {
    let (run, trail): (i64, i64) = query(
        "SELECT COALESCE((SELECT MAX(run_seq) FROM runs WHERE tenant = $1 AND user_id = $2 AND conversation = $3), -1),
             COALESCE((SELECT MAX(id) FROM trail WHERE tenant = $1 AND user_id = $2 AND conversation = $3), 0)",
    )
    .bind((scope, id.as_str()))
    .fetch_one(connection)
    .await?;
    Ok(ExportEnd { run, trail })
}

/// Messages behind one of a run, each run that begins among them before its own.
async fn messages(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &ConversationId,
    (run, seq, until): (i64, i64, ExportEnd),
    held: &mut Reservation,
) -> Read {
    let sizes: Vec<Size> = query(
        "SELECT m.run_seq, m.seq, CAST(octet_length(m.body) + CASE WHEN m.run_seq > $4 AND m.seq = 0 THEN
             COALESCE((SELECT octet_length(d.context) FROM runs r JOIN run_details d ON d.run_id = r.id
                  WHERE r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = m.run_seq), 0)
             ELSE 0 END AS BIGINT)
         FROM messages m WHERE m.tenant = $1 AND m.user_id = $2 AND m.conversation = $3
             AND (m.run_seq, m.seq) > ($4, $5) AND m.run_seq <= $6 ORDER BY m.run_seq, m.seq LIMIT $7",
    )
    .bind((scope, id.as_str(), run, seq, until.run, PART_ROWS))
    .fetch_all(&mut *connection)
    .await?;
    let (last, bytes, has_more) = fitting(&sizes).unwrap_or(((until.run, i64::MAX), 0, false));
    reserve(held, bytes)?;
    // A run that has no messages stands before the next one that has.
    let up_to = if has_more { last.0 } else { until.run };
    let mut runs = runs(connection, scope, id, (run, up_to)).await?.into_iter().peekable();
    let mut items = Vec::new();
    for (of_run, run_seq, seq, created_at, kind, body) in
        messages_between(connection, scope, id, (run, seq), last).await?
    {
        while let Some(row) = runs.next_if(|row| row.run_seq <= run_seq) {
            items.push(begun(row)?);
        }
        // An export is what people reach for when something is broken.
        let files = transcript::files(&kind, &body).unwrap_or_else(|error| {
            tracing::warn!(error = %Causes(&error), "the files of a message were not read");
            Vec::new()
        });
        let body = RawValue::from_string(body).map_err(RecordError::json("message"))?;
        let id = message_id(RunId::parse(&of_run).map_err(RecordError::from)?, seq);
        items.push(ExportItem::Message(MessageExport { id, kind, created_at_ms: created_at, body, files }));
    }
    for row in runs {
        items.push(begun(row)?);
    }
    let next = match has_more {
        true => ExportAt::Messages { run: last.0, seq: last.1, until },
        false => ExportAt::Payloads { seq: -1, until },
    };
    Ok(ExportPart { items, next: Some(next) })
}

/// The runs behind the first number, up to the second one.
async fn runs(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &ConversationId,
    (after, up_to): (i64, i64),
) -> Result<Vec<Row>, sqlx::Error> {
    query(concat!(
        "SELECT ",
        run_columns!(),
        ", r.run_seq, (SELECT p.id FROM runs p WHERE p.tenant = $1 AND p.user_id = $2 AND p.conversation = $3
                AND p.run_seq = ",
        run_parent!(),
        ") AS parent_run, COALESCE(r.parent_seq, (SELECT MAX(m.seq) FROM messages m
                WHERE m.tenant = $1 AND m.user_id = $2 AND m.conversation = $3 AND m.run_seq = ",
        run_parent!(),
        ")) AS parent_seq, d.context, f.score, f.body AS feedback, f.given_at FROM runs r
             LEFT JOIN run_details d ON d.run_id = r.id LEFT JOIN feedback f ON f.run_id = r.id
         WHERE r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq > $4 AND r.run_seq <= $5
         ORDER BY r.run_seq",
    ))
    .bind((scope, id.as_str(), after, up_to))
    .fetch_all(connection)
    .await
}

fn begun(row: Row) -> Result<ExportItem, Fault> {
    let Row { run, run_seq: _, parent_run, parent_seq, context, score, feedback, given_at } = row;
    let run = run.into_record()?;
    let given = score.zip(feedback).zip(given_at);
    let feedback =
        given.map(|((score, body), at)| feedback::kept((run.id.to_string(), score, body, at))).transpose()?;
    let parent = parent_run.map(|parent| RunId::parse(&parent)).transpose().map_err(RecordError::from)?;
    let parent = parent.map(|parent| message_id(parent, parent_seq.unwrap_or_default()));
    let context = context.map(RawValue::from_string).transpose().map_err(RecordError::json("context"))?;
    Ok(ExportItem::Run(Box::new(RunExport { run, parent, context, feedback })))
}

/// The messages behind the first position, up to the second one.
async fn messages_between(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &ConversationId,
    after: (i64, i64),
    last: (i64, i64),
) -> Result<Vec<Message>, sqlx::Error> {
    query(
        "SELECT r.id, m.run_seq, m.seq, CASE WHEN m.created_at = 0 THEN r.started_at ELSE m.created_at END, m.kind, m.body
         FROM messages m JOIN runs r
             ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = m.run_seq
         WHERE m.tenant = $1 AND m.user_id = $2 AND m.conversation = $3
             AND (m.run_seq, m.seq) > ($4, $5) AND (m.run_seq, m.seq) <= ($6, $7) ORDER BY m.run_seq, m.seq",
    )
    .bind((scope, id.as_str(), after.0, after.1, last.0, last.1))
    .fetch_all(connection)
    .await
}

/// The payloads behind a number.
async fn payloads(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &ConversationId,
    (after, until): (i64, ExportEnd),
    held: &mut Reservation,
) -> Read {
    let sizes: Vec<Size> = query(
        "SELECT y.seq, CAST(0 AS BIGINT), CAST(octet_length(y.data) + octet_length(y.summary) AS BIGINT)
         FROM payloads y JOIN runs r ON r.id = y.run_id
         WHERE y.tenant = $1 AND y.user_id = $2 AND y.conversation = $3 AND y.seq > $4 AND r.run_seq <= $5
         ORDER BY y.seq LIMIT $6",
    )
    .bind((scope, id.as_str(), after, until.run, PART_ROWS))
    .fetch_all(&mut *connection)
    .await?;
    let behind = ExportAt::Artifacts { run: -1, seq: -1, until };
    let Some((last, bytes, has_more)) = fitting(&sizes) else {
        return Ok(ExportPart { items: Vec::new(), next: Some(behind) });
    };
    reserve(held, bytes)?;
    let rows: Vec<(String, String, String, String, String)> = query(
        "SELECT y.run_id, y.id, y.kind, y.summary, y.data FROM payloads y JOIN runs r ON r.id = y.run_id
         WHERE y.tenant = $1 AND y.user_id = $2 AND y.conversation = $3 AND y.seq > $4 AND y.seq <= $5
             AND r.run_seq <= $6 ORDER BY y.seq",
    )
    .bind((scope, id.as_str(), after, last.0, until.run))
    .fetch_all(connection)
    .await?;
    let items = rows.into_iter().map(payload).collect::<Result<_, RecordError>>()?;
    let next = if has_more { ExportAt::Payloads { seq: last.0, until } } else { behind };
    Ok(ExportPart { items, next: Some(next) })
}

fn payload(
    (run, id, kind, summary, data): (String, String, String, String, String),
) -> Result<ExportItem, RecordError> {
    Ok(ExportItem::Payload(PayloadExport {
        run: RunId::parse(&run)?,
        id: PayloadId::parse(&id)?,
        kind: original(&kind).into_owned(),
        summary: serde_json::from_str(&summary).map_err(RecordError::json("summary"))?,
        data: RawValue::from_string(data).map_err(RecordError::json("payload"))?,
    }))
}

/// The artifacts behind one of a run.
async fn artifacts(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &ConversationId,
    (run, seq, until): (i64, i64, ExportEnd),
    held: &mut Reservation,
) -> Read {
    let sizes: Vec<Size> = query(
        "SELECT r.run_seq, a.seq, CAST(octet_length(a.body) AS BIGINT) FROM artifacts a JOIN runs r ON r.id = a.run_id
         WHERE a.tenant = $1 AND a.user_id = $2 AND a.conversation = $3 AND (r.run_seq, a.seq) > ($4, $5)
             AND r.run_seq <= $6 ORDER BY r.run_seq, a.seq LIMIT $7",
    )
    .bind((scope, id.as_str(), run, seq, until.run, PART_ROWS))
    .fetch_all(&mut *connection)
    .await?;
    let behind = ExportAt::Approvals { at_ms: i64::MIN, id: String::new(), until };
    let Some((last, bytes, has_more)) = fitting(&sizes) else {
        return Ok(ExportPart { items: Vec::new(), next: Some(behind) });
    };
    reserve(held, bytes)?;
    let rows: Vec<artifacts::KeptRow> = query(concat!(
        "SELECT ",
        artifact_columns!(),
        " FROM artifacts a JOIN runs r ON r.id = a.run_id
         WHERE a.tenant = $1 AND a.user_id = $2 AND a.conversation = $3 AND (r.run_seq, a.seq) > ($4, $5)
             AND (r.run_seq, a.seq) <= ($6, $7) ORDER BY r.run_seq, a.seq",
    ))
    .bind((scope, id.as_str(), run, seq, last.0, last.1))
    .fetch_all(connection)
    .await?;
    let items = rows.into_iter().map(artifact).collect::<Result<_, RecordError>>()?;
    let next = if has_more { ExportAt::Artifacts { run: last.0, seq: last.1, until } } else { behind };
    Ok(ExportPart { items, next: Some(next) })
}

fn artifact(row: artifacts::KeptRow) -> Result<ExportItem, RecordError> {
    Ok(ExportItem::Artifact(ArtifactExport {
        run: RunId::parse(&row.run_id)?,
        call: original(&row.call).into_owned(),
        kind: original(&row.kind).into_owned(),
        helper: row.helper()?,
        body: RawValue::from_string(row.body).map_err(RecordError::json("artifact"))?,
    }))
}

/// The entries of the trail behind one.
async fn trail(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &ConversationId,
    (after, until): (i64, ExportEnd),
    held: &mut Reservation,
) -> Read {
    let sizes: Vec<Size> = query(
        "SELECT id, CAST(0 AS BIGINT), CAST(octet_length(body) AS BIGINT) FROM trail
         WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND id > $4 AND id <= $5 ORDER BY id LIMIT $6",
    )
    .bind((scope, id.as_str(), after, until.trail, PART_ROWS))
    .fetch_all(&mut *connection)
    .await?;
    let Some((last, bytes, has_more)) = fitting(&sizes) else {
        return Ok(ExportPart { items: Vec::new(), next: None });
    };
    reserve(held, bytes)?;
    let rows: Vec<trail::Row> = query(
        "SELECT id, at, kind, run_id, body FROM trail
         WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND id > $4 AND id <= $5 ORDER BY id",
    )
    .bind((scope, id.as_str(), after, last.0))
    .fetch_all(connection)
    .await?;
    let items = rows.into_iter().map(|row| Ok(ExportItem::Trail(item(row)?))).collect::<Result<_, Fault>>()?;
    let next = has_more.then_some(ExportAt::Trail { id: last.0, until });
    Ok(ExportPart { items, next })
}

#[cfg(test)]
mod tests {
    use super::{Fitting, PART_BYTES, PART_ROWS, Size, fitting};

    #[test]
    fn a_part_has_what_fits_and_always_a_row() {
        let many: Vec<Size> = (0..PART_ROWS).map(|n| (n, 0, 1)).collect();
        let rows: [(&[Size], Option<Fitting>, &str); 5] = [
            (&[], None, "nothing"),
            (&[(0, 0, 10), (0, 1, 10), (1, 0, 10)], Some(((1, 0), 30, false)), "all fit"),
            (&[(0, 0, PART_BYTES), (0, 1, 1)], Some(((0, 0), 524_288, true)), "the second does not"),
            (&[(0, 0, PART_BYTES * 2)], Some(((0, 0), 1_048_576, false)), "the first does whatever its size"),
            (&many, Some(((499, 0), 500, true)), "there may be more than were looked at"),
        ];
        for (sizes, expected, reason) in rows {
            assert_eq!(fitting(sizes), expected, "{reason}");
        }
    }
}
