//! What a running run says: messages and the trail, numbered, and the note of a write before it is sent.

use std::fmt::Write;

use aws_lc_rs::digest::{SHA256, digest};

use super::payloads::{PayloadRow, insert_payloads};
use super::{Connection, Seat, SeatRow, SqlStore};
use crate::agent::ports::store::Commit;
use crate::chat::ids::{RunId, ToolCallId};
use crate::chat::trail::TrailEntry;
use crate::chat::unfinished::Unfinished;
use crate::store::calling::encode_calling;
use crate::store::fault::Fault;
use crate::store::record::column;
use crate::store::scope::BindScope;
use crate::store::trail::encode_entry;
use crate::store::transcript::{self, Record, RecordError};

use super::Place;

/// What a [`Commit`] writes, as it is stored.
pub(super) struct Rows {
    messages: Vec<Record>,
    trail: Vec<(i64, &'static str, String)>,
    payloads: Vec<PayloadRow>,
}

impl Rows {
    /// The rows of `commit`.
    ///
    /// # Errors
    /// When something cannot be written as JSON.
    pub(super) fn of(commit: Commit<'_>) -> Result<Self, RecordError> {
        let trail = commit.trail.iter().map(|entry| Ok((entry.at_ms, entry.what.kind(), encode_entry(&entry.what)?)));
        Ok(Self {
            messages: commit.messages.iter().map(transcript::encode).collect::<Result<_, _>>()?,
            trail: trail.collect::<Result<_, RecordError>>()?,
            payloads: commit.payloads.iter().map(PayloadRow::of).collect::<Result<_, _>>()?,
        })
    }
}

impl SqlStore {
    pub(super) async fn try_append(&self, run: RunId, commit: Commit<'_>) -> Result<(), Fault> {
        let rows = Rows::of(commit)?;
        let now = self.clock.now_ms();
        let mut transaction = self.write().await?;
        let seat: Option<SeatRow> = sqlx::query_as(
            "UPDATE runs SET turns = $2, input_tokens = $3, output_tokens = $4, cached_input_tokens = $5,
                 reasoning_tokens = $6, nano_usd = $7, calling = NULL
             WHERE id = $1 AND state = 'running'
             RETURNING tenant, user_id, conversation, run_seq",
        )
        .bind(run.to_string())
        .bind(i64::from(commit.turns))
        .bind(column(commit.usage.input_tokens))
        .bind(column(commit.usage.output_tokens))
        .bind(column(commit.usage.cached_input_tokens))
        .bind(column(commit.usage.reasoning_tokens))
        .bind(commit.cost.map(|cost| column(cost.nano_usd)))
        .fetch_optional(&mut *transaction)
        .await?;
        let seat = seat.map(Seat::from).ok_or(Fault::RunEnded)?;
        forget_pieces(&mut transaction, run).await?;
        insert_rows(&mut transaction, &seat, run, commit, &rows, now).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// A call is noted once: whoever comes second must not send it, also when they are the same and did not hear of
    /// their commit.
    pub(super) async fn try_dispatch(&self, run: RunId, call: &ToolCallId, turn: &Unfinished) -> Result<(), Fault> {
        let calling = encode_calling(turn)?;
        let key = call_key(call);
        let mut transaction = self.write().await?;
        let noted = sqlx::query("UPDATE runs SET calling = $2 WHERE id = $1 AND state = 'running'")
            .bind(run.to_string())
            .bind(calling)
            .execute(&mut *transaction)
            .await?;
        if noted.rows_affected() == 0 {
            return Err(Fault::RunEnded);
        }
        let dispatched = sqlx::query(
            "INSERT INTO dispatches (run_id, call_key) VALUES ($1, $2) ON CONFLICT (run_id, call_key) DO NOTHING",
        )
        .bind(run.to_string())
        .bind(&key)
        .execute(&mut *transaction)
        .await?;
        if dispatched.rows_affected() == 0 {
            return Err(Fault::DispatchedBefore { run, call: key });
        }
        transaction.commit().await?;
        Ok(())
    }
}

/// A call's id as a key of bounded length.
fn call_key(call: &ToolCallId) -> String {
    let mut key = String::with_capacity(64);
    for byte in digest(&SHA256, call.as_str().as_bytes()).as_ref() {
        // Writing to a text does not fail.
        let _ = write!(key, "{byte:02x}");
    }
    key
}

/// Writes what a run has to say. What has its number already stays as it is.
pub(super) async fn insert_rows(
    connection: &mut Connection,
    seat: &Seat,
    run: RunId,
    commit: Commit<'_>,
    rows: &Rows,
    now: i64,
) -> Result<(), sqlx::Error> {
    for (seq, record) in (i64::from(commit.first)..).zip(&rows.messages) {
        insert_message(connection, seat, seq, record, now).await?;
    }
    for (seq, (at, kind, body)) in (i64::from(commit.first_entry)..).zip(&rows.trail) {
        insert_entry(connection, &seat.place, Some((run, seq)), (*at, kind, body)).await?;
    }
    insert_payloads(connection, (&seat.place.scope, &seat.place.conversation), run, &rows.payloads, now).await
}

/// Removes what was kept of the turn that streamed: it is in a message now, or nobody comes back to it.
pub(super) async fn forget_pieces(connection: &mut Connection, run: RunId) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM partials WHERE run_id = $1").bind(run.to_string()).execute(connection).await?;
    Ok(())
}

/// Writes one message of a run.
pub(super) async fn insert_message(
    connection: &mut Connection,
    seat: &Seat,
    seq: i64,
    record: &Record,
    now: i64,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO messages (tenant, user_id, conversation, run_seq, seq, kind, body, created_at, fates)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (tenant, user_id, conversation, run_seq, seq) DO NOTHING",
    )
    .bind_scope(&seat.place.scope)
    .bind(&seat.place.conversation)
    .bind(seat.run_seq)
    .bind(seq)
    .bind(record.kind)
    .bind(&record.body)
    .bind(now)
    .bind(&record.fates)
    .execute(connection)
    .await?;
    Ok(())
}

/// Writes one entry of the trail, which has the number `seq` in `run`.
pub(super) async fn insert_happened(
    connection: &mut Connection,
    place: &Place,
    run: RunId,
    seq: i64,
    entry: &TrailEntry,
) -> Result<(), Fault> {
    let body = encode_entry(&entry.what)?;
    insert_entry(connection, place, Some((run, seq)), (entry.at_ms, entry.what.kind(), &body)).await?;
    Ok(())
}

/// Writes one entry of the trail: when, of which kind, what.
pub(super) async fn insert_entry(
    connection: &mut Connection,
    place: &Place,
    number: Option<(RunId, i64)>,
    (at, kind, body): (i64, &str, &str),
) -> Result<(), sqlx::Error> {
    let (run, seq) = number.unzip();
    sqlx::query(
        "INSERT INTO trail (tenant, user_id, conversation, run_id, seq, at, kind, body)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (run_id, seq) WHERE run_id IS NOT NULL DO NOTHING",
    )
    .bind_scope(&place.scope)
    .bind(&place.conversation)
    .bind(run.map(|run| run.to_string()))
    .bind(seq)
    .bind(at)
    .bind(kind)
    .bind(body)
    .execute(connection)
    .await?;
    Ok(())
}
