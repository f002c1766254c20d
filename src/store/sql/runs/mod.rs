//! Runs in SQL: how they begin, what is said in them, how they end, and who keeps them alive.
//!
//! **Invariant:** whatever changes a run that has begun first changes or holds its row, and demands that it is live; so
//! what comes after the end finds that out, however late it comes. **Invariant:** a run that somebody else than its
//! owner has ended names no process any more (`replica`): its `last_event_id` is not its owner's last word.

mod answered;
mod append;
mod begin;
mod decided;
mod details;
mod earlier;
mod ending;
mod history;
mod leases;
mod not_begun;
mod pending_limits;
mod promote;
mod question;
mod reap;
mod request;

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;

use super::{Batch, Connection, SqlStore, approvals, audit, drafts, payloads, quotas, seen, take_turns, usage};
use crate::agent::ports::quotas::Quotas;
use crate::agent::ports::store::{
    BeginError, Begun, Commit, MostRuns, NewRun, RequestKey, RunEnd, RunStart, RunStore, Used,
};
use crate::agent::ports::store_error::StoreError;
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, RunId, ToolCallId};
use crate::chat::run::RunRecord;
use crate::chat::unfinished::Unfinished;
use crate::store::fault::{Fault, attempt};
use crate::store::scope::{BindScope, Scope};

#[async_trait]
impl RunStore for SqlStore {
    async fn begin_run(&self, run: NewRun<'_>) -> Result<Begun, BeginError> {
        let may_have_begun = AtomicBool::new(false);
        match attempt("begin a run", self.try_begin_run(run, &may_have_begun)).await {
            Ok(begun) => begun,
            // The same request again would find it by its key.
            Err(error) if may_have_begun.load(Ordering::Relaxed) && run.key.is_none() => {
                Err(BeginError::Unconfirmed(error))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn promote(&self, run: RunId, history_bytes: usize) -> Result<Option<RunStart>, StoreError> {
        attempt("promote a run", self.try_promote(run, history_bytes)).await
    }

    async fn dispatch(&self, run: RunId, call: &ToolCallId, turn: &Unfinished) -> Result<(), StoreError> {
        attempt("note a dispatch", self.try_dispatch(run, call, turn)).await
    }

    async fn append(&self, run: RunId, commit: Commit<'_>) -> Result<(), StoreError> {
        attempt("append messages", self.try_append(run, commit)).await
    }

    async fn finish_run(&self, run: RunId, commit: Commit<'_>, end: RunEnd<'_>) -> Result<(), StoreError> {
        attempt("finish a run", self.try_finish_run(run, commit, end)).await
    }

    async fn find_run(&self, owner: &Owner, run: RunId) -> Result<Option<RunRecord>, StoreError> {
        attempt("find a run", self.try_find_run(&owner.into(), run)).await
    }

    async fn live_runs(&self, owner: &Owner, conversation: &ConversationId) -> Result<Vec<RunId>, StoreError> {
        attempt("find live runs", self.try_live_runs(&owner.into(), conversation)).await
    }

    async fn request_cancel(&self, owner: &Owner, run: RunId) -> Result<Option<RunRecord>, StoreError> {
        attempt("cancel a run", self.try_request_cancel(&owner.into(), run)).await
    }

    async fn knows_request(&self, owner: &Owner, keys: &[String]) -> Result<bool, StoreError> {
        attempt("look for a request", self.try_knows_request(&owner.into(), keys)).await
    }

    async fn find_request(&self, owner: &Owner, key: RequestKey<'_>) -> Result<Option<RunRecord>, BeginError> {
        attempt("find a request", self.try_find_request(&owner.into(), key)).await?
    }

    async fn check_pending_limit(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        most: MostRuns,
        quotas: &Quotas,
    ) -> Result<(), BeginError> {
        attempt("count live runs", self.try_check_pending_limit(owner, conversation, most, quotas)).await?
    }
}

/// A conversation.
struct ConversationRow {
    scope: Scope,
    conversation: String,
}

/// A run's place in its conversation, read from its row.
struct Seat {
    place: ConversationRow,
    run_seq: i64,
}

/// The columns of a [`Seat`].
type SeatRow = (String, String, String, i64);

impl From<SeatRow> for Seat {
    fn from((tenant, user, conversation, run_seq): SeatRow) -> Self {
        Self { place: ConversationRow { scope: Scope::of_row(tenant, user), conversation }, run_seq }
    }
}

/// The columns of a [`Seat`], and how much of what the run has spent is charged.
type ChargedSeatRow = (String, String, String, i64, i64);

fn charged_seat((tenant, user, conversation, run_seq, charged): ChargedSeatRow) -> (Seat, i64) {
    (Seat::from((tenant, user, conversation, run_seq)), charged)
}

/// What a run goes on from: another run, up to and including its message `seq`; without one, all of that run.
#[derive(Clone, Copy)]
struct Branch {
    run_seq: i64,
    seq: Option<i64>,
}

impl Branch {
    /// What the columns say.
    fn from_run_seq(run_seq: Option<i64>, seq: Option<i64>) -> Option<Self> {
        run_seq.map(|run_seq| Self { run_seq, seq })
    }
}

/// What the earlier runs have used that answer the message of the run `chain`, as the run at `seat` does.
async fn used_before(connection: &mut Connection, seat: &Seat, chain: Option<i64>) -> Result<Used, Fault> {
    let Some(chain) = chain else { return Ok(Used::default()) };
    let (asked, called): (i64, i64) = sqlx::query_as(
        "SELECT CAST(COALESCE(SUM(asked), 0) AS BIGINT), CAST(COALESCE(SUM(called), 0) AS BIGINT) FROM runs
         WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND run_seq >= $4 AND run_seq < $5
             AND (run_seq = $4 OR chain_seq = $4)",
    )
    .bind_scope(&seat.place.scope)
    .bind(&seat.place.conversation)
    .bind(chain)
    .bind(seat.run_seq)
    .fetch_one(connection)
    .await?;
    let number = |count: i64| u32::try_from(count).unwrap_or(u32::MAX);
    Ok(Used { asked: number(asked), called: number(called) })
}

/// How many messages a user sees on the way to what a run goes on from.
async fn seen_before(
    connection: &mut Connection,
    place: &ConversationRow,
    parent: Option<Branch>,
) -> Result<i64, Fault> {
    match parent {
        Some(Branch { run_seq, seq }) => {
            seen::count_seen(connection, &place.scope, &place.conversation, (run_seq, seq)).await
        }
        None => Ok(0),
    }
}
