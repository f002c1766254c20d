//! Runs in SQL: how they begin, their commits, how they end, and their leases.
//!
//! **Invariant:** whatever changes a run that has begun first changes or holds its row, and demands that it is live; so
//! a change after the end fails, however late it comes. **Invariant:** a run that another process than its owner has
//! ended names no process any more (`replica`): its `last_event_id` is not the owner's last one.

mod answered;
mod append;
mod begin;
mod decided;
mod details;
mod earlier;
mod ending;
mod history;
mod joined;
mod leases;
mod pending_limits;
mod promote;
mod question;
mod reap;
mod request;

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;

use super::{
    SqlStore, approvals, artifacts, audit, client_history, data, drafts, files, payloads, places, plans, quotas, seen,
    usage,
};
use crate::agent::ports::quotas::Quotas;
use crate::agent::ports::store::{
    BeginError, Begun, Commit, MostRuns, NewRun, RequestKey, RunCommits, RunEnd, RunRecords, RunStart, RunStarts, Used,
};
use crate::agent::ports::store_error::StoreError;
use crate::agent::ports::summaries::HistoryBound;
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::run::{CancelledBy, RunRecord};
use crate::chat::tool::ToolCall;
use crate::chat::unfinished::Unfinished;
use crate::store::database::Connection;
use crate::store::fault::{Fault, Undone, attempt};
use crate::store::scope::Scope;
use crate::store::statement::query;

#[async_trait]
impl RunStarts for SqlStore {
    async fn begin_run(&self, run: NewRun<'_>) -> Result<Begun, BeginError> {
        let may_have_begun = AtomicBool::new(false);
        match attempt("begin a run", self.try_begin_run(run, &may_have_begun)).await {
            // The same request again would find it by its key.
            Err(BeginError::Store(error)) if may_have_begun.load(Ordering::Relaxed) && run.key.is_none() => {
                Err(BeginError::Unconfirmed(error))
            }
            begun => begun,
        }
    }

    async fn promote(&self, run: RunId, history: HistoryBound) -> Result<Option<RunStart>, StoreError> {
        attempt("promote a run", self.try_promote(run, history)).await
    }

    async fn knows_request(&self, owner: &Owner, keys: &[String]) -> Result<bool, StoreError> {
        attempt("look for a request", self.try_knows_request(&owner.into(), keys)).await
    }

    async fn find_request(&self, owner: &Owner, key: RequestKey<'_>) -> Result<Option<RunRecord>, BeginError> {
        attempt("find a request", self.try_find_request(&owner.into(), key)).await
    }

    async fn check_pending_limit(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        most: MostRuns,
        quotas: &Quotas,
    ) -> Result<(), BeginError> {
        attempt("count live runs", self.try_check_pending_limit(owner, conversation, most, quotas)).await
    }
}

#[async_trait]
impl RunCommits for SqlStore {
    async fn dispatch(&self, run: RunId, call: &ToolCall, turn: &Unfinished) -> Result<(), StoreError> {
        attempt("note a dispatch", self.try_dispatch(run, call, turn)).await
    }

    async fn append(&self, run: RunId, commit: Commit<'_>) -> Result<(), StoreError> {
        attempt("append messages", self.try_append(run, commit)).await
    }

    async fn finish_run(&self, run: RunId, commit: Commit<'_>, end: RunEnd<'_>) -> Result<(), StoreError> {
        attempt("finish a run", self.try_finish_run(run, commit, end)).await
    }
}

#[async_trait]
impl RunRecords for SqlStore {
    async fn find_run(&self, owner: &Owner, run: RunId) -> Result<Option<RunRecord>, StoreError> {
        attempt("find a run", self.try_find_run(&owner.into(), run)).await
    }

    async fn went_on(&self, owner: &Owner, run: RunId) -> Result<Vec<RunRecord>, StoreError> {
        attempt("find the runs behind a run", self.try_went_on(&owner.into(), run)).await
    }

    async fn live_runs(&self, owner: &Owner, conversation: &ConversationId) -> Result<Vec<RunId>, StoreError> {
        attempt("find live runs", self.try_live_runs(&owner.into(), conversation)).await
    }

    async fn request_cancel(
        &self,
        owner: &Owner,
        run: RunId,
        by: CancelledBy,
    ) -> Result<Option<RunRecord>, StoreError> {
        attempt("cancel a run", self.try_request_cancel(&owner.into(), run, by)).await
    }
}

/// Why a run did not begin.
type NotBegun = Undone<BeginError>;

/// A conversation.
struct ConversationRow {
    scope: Scope,
    id: String,
}

/// A run's number in its conversation, read from its row.
struct Seat {
    conversation: ConversationRow,
    run_seq: i64,
}

/// The columns of a [`Seat`].
type SeatRow = (String, String, String, i64);

impl From<SeatRow> for Seat {
    fn from((tenant, user, conversation, run_seq): SeatRow) -> Self {
        Self { conversation: ConversationRow { scope: Scope::of_row(tenant, user), id: conversation }, run_seq }
    }
}

/// The columns of a [`Seat`], and how much of what the run has spent is charged.
type ChargedSeatRow = (String, String, String, i64, i64);

fn charged_seat((tenant, user, conversation, run_seq, charged): ChargedSeatRow) -> (Seat, i64) {
    (Seat::from((tenant, user, conversation, run_seq)), charged)
}

/// The branch that a run goes on from: another run, up to and including its message `seq`; without one, all of that
/// run.
#[derive(Clone, Copy)]
struct Branch {
    run_seq: i64,
    seq: Option<i64>,
}

impl Branch {
    /// From the columns.
    fn from_run_seq(run_seq: Option<i64>, seq: Option<i64>) -> Option<Self> {
        run_seq.map(|run_seq| Self { run_seq, seq })
    }
}

/// The use of the earlier runs that answer the message of the run `chain`, as the run at `seat` does.
async fn used_before(connection: &mut dyn Connection, seat: &Seat, chain: Option<i64>) -> Result<Used, Fault> {
    let Some(chain) = chain else { return Ok(Used::default()) };
    let (model_calls, tool_calls): (i64, i64) = query(
        "SELECT CAST(COALESCE(SUM(asked), 0) AS BIGINT), CAST(COALESCE(SUM(called), 0) AS BIGINT) FROM runs
         WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND run_seq >= $4 AND run_seq < $5
             AND (run_seq = $4 OR chain_seq = $4)",
    )
    .bind((&seat.conversation.scope, &seat.conversation.id, chain, seat.run_seq))
    .fetch_one(connection)
    .await?;
    let number = |count: i64| u32::try_from(count).unwrap_or(u32::MAX);
    Ok(Used { model_calls: number(model_calls), tool_calls: number(tool_calls) })
}

/// How many messages a user sees on the way to what a run goes on from.
async fn seen_before(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    parent: Option<Branch>,
) -> Result<i64, Fault> {
    match parent {
        Some(Branch { run_seq, seq }) => {
            seen::count_seen(connection, &conversation.scope, &conversation.id, (run_seq, seq)).await
        }
        None => Ok(0),
    }
}
