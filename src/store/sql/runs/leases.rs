//! The leases in SQL: renewed by beats, read by whoever watches, and what is tidied away.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use serde::Serialize;

use super::SqlStore;
use super::data::sweep_changes;
use super::drafts::sweep_drafts;
use super::places::sweep_unused;
use super::request::KEY_LIFE_MS;
use super::usage::KEPT_DAYS;
use crate::agent::ports::leases::{EndedRun, Leases, Notice, Old, Piece, Progress, Standing};
use crate::agent::ports::store_error::StoreError;
use crate::chat::day::Day;
use crate::chat::event::AgentEvent;
use crate::chat::ids::RunId;
use crate::store::database::Connection;
use crate::store::fault::{Fault, attempt};
use crate::store::record::{RunRow, column, run_columns};
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, storable};
use crate::store::statement::query;

/// How many runs' texts a beat keeps in one transaction. Runs that begin or end take their turn between two.
const RUNS_AT_ONCE: usize = 32;

/// How long a run counts as watched, in milliseconds: five seconds, the port's promise.
const WATCHED_MS: i64 = 5000;

/// How long an ended run is left to its owner, who may still say so, in milliseconds: three seconds, the port's
/// promise.
const LEFT_TO_OWNER_MS: i64 = 3000;

/// Rows that one tidying removes of each kind: a fraction of a second's work, so that no writer waits long behind it,
/// and a busy day's trail still goes in some hundred calls.
const TIDIED_AT_ONCE: i64 = 5000;

#[async_trait]
impl Leases for SqlStore {
    async fn beat(&self, replica: &str, lease_ms: i64, progress: &[Progress]) -> Result<Vec<Notice>, StoreError> {
        attempt("renew leases", self.try_beat(replica, lease_ms, progress)).await
    }

    async fn reap(&self) -> Result<Vec<RunId>, StoreError> {
        attempt("end runs whose lease is over", self.try_reap()).await
    }

    async fn watch(&self, runs: &[RunId]) -> Result<Vec<EndedRun>, StoreError> {
        attempt("watch runs", self.try_watch(runs)).await
    }

    async fn tidy(&self, old: Old) -> Result<bool, StoreError> {
        attempt("remove what is old", self.try_tidy(old)).await
    }
}

/// A run's new text, for the database to read.
#[derive(Serialize)]
struct PieceRow {
    run: String,
    turn: u32,
    /// Where the piece begins.
    at: i64,
    /// The piece as it is stored: JSON text, which may hold what a database's own text may not.
    piece: Option<String>,
    event: Option<i64>,
}

/// A live run as a beat finds it: id, whether to cancel it, whether it is watched.
type LiveRow = (String, bool, bool);

impl SqlStore {
    async fn try_beat(&self, replica: &str, lease_ms: i64, progress: &[Progress]) -> Result<Vec<Notice>, Fault> {
        if progress.is_empty() {
            return Ok(Vec::new());
        }
        let replica = storable(replica);
        let named: Vec<RunId> = progress.iter().map(|progress| progress.run).collect();
        let (mut there, mut renewed) = (HashSet::with_capacity(named.len()), Vec::with_capacity(named.len()));
        for (some, named) in progress.chunks(RUNS_AT_ONCE).zip(named.chunks(RUNS_AT_ONCE)) {
            let mut transaction = self.database.write(Reach::Leases).await?;
            there.extend(hold(&mut transaction, named).await?);
            let rows = piece_rows(some)?;
            renewed.extend(renew(&mut transaction, &replica, lease_ms, &rows).await?);
            if some.iter().any(|progress| progress.piece.is_some()) {
                insert_drafts(&mut transaction, &replica, &rows).await?;
            }
            transaction.commit().await?;
        }
        let mut live = HashMap::with_capacity(renewed.len());
        for (id, is_to_cancel, watched) in renewed {
            let standing = if is_to_cancel { Standing::CancelRequested } else { Standing::Live { watched } };
            live.insert(RunId::parse(&id).map_err(RecordError::from)?, standing);
        }
        let standing = |run: &RunId| match live.get(run) {
            Some(standing) => *standing,
            None if there.contains(run) => Standing::Ended,
            None => Standing::Gone,
        };
        Ok(named.iter().map(|run| Notice { run: *run, standing: standing(run) }).collect())
    }

    async fn try_watch(&self, runs: &[RunId]) -> Result<Vec<EndedRun>, Fault> {
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        let list = list_of(runs)?;
        let mut rows: HashMap<RunId, WatchedRow> = HashMap::with_capacity(runs.len());
        let found: Vec<WatchedRow> = query(concat!(
            "SELECT ",
            run_columns!(),
            ", r.lease_until <= @now - $2 AS is_long_over, r.replica <> '' AS is_owners_word
             FROM runs r WHERE r.id @one_of($1)",
        ))
        .bind((&list, LEFT_TO_OWNER_MS))
        .fetch_all(&mut self.database.reading(Reach::Leases).await?)
        .await?;
        for row in found {
            rows.insert(row.row.id()?, row);
        }
        let (mut ended, mut is_any_live) = (Vec::new(), false);
        for run in runs {
            let Some(WatchedRow { row, is_long_over, is_owners_word }) = rows.remove(run) else {
                ended.push(EndedRun { run: *run, end: AgentEvent::Cancelled, last_event_id: None });
                continue;
            };
            let record = row.into_record()?;
            let last_event_id = record.last_event_id.filter(|_| is_owners_word);
            match record.end() {
                Some(end) if is_long_over => ended.push(EndedRun { run: *run, end, last_event_id }),
                Some(_) => {}
                None => is_any_live = true,
            }
        }
        if is_any_live {
            // Whoever holds one of them has no time for us, and will not for long: the next watch comes before this one
            // is over.
            let mut transaction = self.database.write(Reach::Leases).await?;
            query(
                "UPDATE runs SET watched_until = @now + $2 WHERE id IN (
                     SELECT id FROM runs WHERE state IN ('queued', 'running') AND id @one_of($1)
                     ORDER BY id @skip_locked)",
            )
            .bind((&list, WATCHED_MS))
            .execute(&mut transaction)
            .await?;
            transaction.commit().await?;
        }
        Ok(ended)
    }

    /// Names no owner: it looks at nothing but the time.
    async fn try_tidy(&self, old: Old) -> Result<bool, Fault> {
        let mut transaction = self.database.write(Reach::All).await?;
        let mut is_more_left = false;
        if let Some(before) = old.trail_before_ms {
            let removed = query(
                "DELETE FROM trail WHERE id IN (SELECT id FROM trail WHERE at < $1 ORDER BY at LIMIT $2 @skip_locked)",
            )
            .bind((before, TIDIED_AT_ONCE))
            .execute(&mut transaction)
            .await?;
            is_more_left = removed >= TIDIED_AT_ONCE.unsigned_abs();
        }
        let freed = query(
            "UPDATE runs SET request_key = NULL, request_digest = NULL WHERE id IN (
                 SELECT id FROM runs WHERE request_key IS NOT NULL AND started_at <= $1 LIMIT $2 @skip_locked)",
        )
        .bind((self.clock.now_ms().saturating_sub(KEY_LIFE_MS), TIDIED_AT_ONCE))
        .execute(&mut transaction)
        .await?;
        // A day's at most, where this is done each hour: one for each user and model.
        let uses = query(
            "DELETE FROM usage_daily WHERE (tenant, user_id, day, model) IN (
                 SELECT tenant, user_id, day, model FROM usage_daily WHERE day < $1 ORDER BY day LIMIT $2 @skip_locked)",
        )
        .bind((Day::of_ms(self.clock.now_ms()).plus(-KEPT_DAYS).0, TIDIED_AT_ONCE))
        .execute(&mut transaction)
        .await?;
        let swept = sweep_drafts(&mut transaction, self.clock.now_ms(), TIDIED_AT_ONCE).await?;
        let unused = sweep_unused(&mut transaction, self.clock.now_ms(), TIDIED_AT_ONCE).await?;
        let changes = sweep_changes(&mut transaction, self.clock.now_ms(), TIDIED_AT_ONCE).await?;
        transaction.commit().await?;
        let freed = freed.max(uses).max(swept).max(unused).max(changes);
        let is_more_left = is_more_left || freed >= TIDIED_AT_ONCE.unsigned_abs();
        let is_more_left = match old.unlisted_before_ms {
            Some(before) => self.try_delete_unlisted(before).await? || is_more_left,
            None => is_more_left,
        };
        let is_more_left = self.try_remove_previews().await? || is_more_left;
        let is_more_left = self.try_note_expired().await? || is_more_left;
        // Whatever was deleted or replaced since the last time.
        self.database.forget_deleted().await;
        Ok(is_more_left)
    }
}

/// A run that is watched; whether it ended long enough ago, if it did; and whether its owner has recorded how.
#[derive(sqlx::FromRow)]
struct WatchedRow {
    #[sqlx(flatten)]
    row: RunRow,
    is_long_over: bool,
    is_owners_word: bool,
}

/// The new texts of runs, as a JSON list for `@progress`.
fn piece_rows(progress: &[Progress]) -> Result<String, RecordError> {
    let json = RecordError::json("beat");
    let mut rows = Vec::with_capacity(progress.len());
    for Progress { run, turn, piece, last_event_id } in progress {
        let at = piece.as_ref().map_or(0, |piece| column(piece.at));
        let piece = piece.as_ref().map(|Piece { text, .. }| serde_json::to_string(text)).transpose().map_err(&json)?;
        rows.push(PieceRow { run: run.to_string(), turn: *turn, at, piece, event: last_event_id.map(column) });
    }
    serde_json::to_string(&rows).map_err(&json)
}

/// Renews the leases of those runs in `rows` that live and are the replica's. In one change of each: it comes every
/// second.
async fn renew(
    connection: &mut dyn Connection,
    replica: &str,
    lease_ms: i64,
    rows: &str,
) -> Result<Vec<LiveRow>, sqlx::Error> {
    query(
        "UPDATE runs SET lease_until = @now + $2,
             last_event_id = CASE WHEN state = 'running' THEN COALESCE(p.event, last_event_id) ELSE last_event_id END
         FROM @progress($3) WHERE runs.id = p.run AND replica = $1 AND state IN ('queued', 'running')
         RETURNING id, cancel_requested <> 0, watched_until > @now",
    )
    .bind((replica, lease_ms, rows))
    .fetch_all(connection)
    .await
}

/// Keeps the texts of runs since their last commit. Text of a turn that has been committed meanwhile is in its message.
async fn insert_drafts(connection: &mut dyn Connection, replica: &str, rows: &str) -> Result<(), sqlx::Error> {
    // A piece that comes again is at least as long; a shorter one was under way for longer than its owner waited.
    query(
        "INSERT INTO partials (run_id, turn, at, body) SELECT r.id, p.turn, p.at, p.piece
         FROM @progress($2) JOIN runs r ON r.id = p.run AND r.turns = p.turn
         WHERE p.piece IS NOT NULL AND r.replica = $1 AND r.state = 'running'
         ON CONFLICT (run_id, turn, at) DO UPDATE SET body = excluded.body
             WHERE length(excluded.body) >= length(partials.body)",
    )
    .bind((replica, rows))
    .execute(connection)
    .await?;
    Ok(())
}

/// Holds those of `runs` that are there, and returns them. Rows are held in the order of their ids, so that no two
/// transactions wait for each other.
async fn hold(connection: &mut dyn Connection, runs: &[RunId]) -> Result<HashSet<RunId>, Fault> {
    let ids: Vec<String> = query("SELECT id FROM runs WHERE id @one_of($1) ORDER BY id @for_update")
        .bind(list_of(runs)?)
        .fetch_values(connection)
        .await?;
    ids.iter().map(|id| Ok(RunId::parse(id).map_err(RecordError::from)?)).collect()
}

/// Runs as a JSON list, a parameter of bounded number whatever the list's length.
fn list_of(runs: &[RunId]) -> Result<String, RecordError> {
    let ids: Vec<String> = runs.iter().map(RunId::to_string).collect();
    serde_json::to_string(&ids).map_err(RecordError::json("list"))
}
