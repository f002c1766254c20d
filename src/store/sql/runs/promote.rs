//! How a queued run becomes the running one, when its turn has come.

use super::answered::answered_of;
use super::begin::is_taken;
use super::decided::call_of;
use super::details::context_of;
use super::history::{earlier, question};
use super::places::{Arrival, FoundState, find_state, keep_place};
use super::{Branch, Seat, SqlStore, seen_before, used_before};
use crate::agent::ports::store::RunStart;
use crate::agent::ports::summaries::HistoryBound;
use crate::chat::ids::RunId;
use crate::chat::message::Message;
use crate::store::fault::{Fault, SqlxError};
use crate::store::place::{decode_update, encode_place};
use crate::store::record_error::RecordError;
use crate::store::scope::Reach;
use crate::store::statement::{Batch, query};

/// Whether a run is before the run `r` in its conversation: it runs, or it was queued earlier.
macro_rules! has_to_wait {
    () => {
        "(EXISTS (SELECT 1 FROM runs o WHERE o.tenant = r.tenant AND o.user_id = r.user_id
              AND o.conversation = r.conversation AND o.state = 'running')
          OR EXISTS (SELECT 1 FROM runs o WHERE o.tenant = r.tenant AND o.user_id = r.user_id
              AND o.conversation = r.conversation AND o.state = 'queued' AND o.run_seq < r.run_seq))"
    };
}

/// A run's row: its seat, its parent and its chain, and where it goes.
type Row = (String, String, String, i64, Option<i64>, Option<i64>, Option<i64>, String, Option<String>);

impl SqlStore {
    pub(super) async fn try_promote(&self, run: RunId, history: HistoryBound) -> Result<Option<RunStart>, Fault> {
        // Called several times a second while it waits, so without the right to write.
        let waits: Option<(Option<String>, bool)> =
            query(concat!("SELECT r.state, ", has_to_wait!(), " FROM runs r WHERE r.id = $1"))
                .bind(run.to_string())
                .fetch_optional(&mut self.database.reading(Reach::All).await?)
                .await?;
        match waits {
            Some((Some(state), true)) if state == "queued" => return Ok(None),
            Some((Some(state), _)) if matches!(&*state, "queued" | "running") => {}
            Some(_) | None => return Err(Fault::RunEnded),
        }
        match self.take_turn(run, history).await {
            // Another process was quicker.
            Err(Fault::Database(SqlxError(error))) if is_taken(&error) => Ok(None),
            taken => taken,
        }
    }

    /// Takes its turn. A run that has taken it already, and whose owner has not heard of it, gets it again.
    async fn take_turn(&self, run: RunId, history: HistoryBound) -> Result<Option<RunStart>, Fault> {
        let mut transaction = self.database.write(Reach::All).await?;
        query(concat!(
            "UPDATE runs SET state = 'running' WHERE id = $1 AND state = 'queued'
                 AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = $1 AND ",
            has_to_wait!(),
            ")",
        ))
        .bind(run.to_string())
        .execute(&mut transaction)
        .await?;
        let row: Option<(Option<String>,)> = query("SELECT state FROM runs WHERE id = $1")
            .bind(run.to_string())
            .fetch_optional(&mut transaction)
            .await?;
        match row.and_then(|(state,)| state).as_deref() {
            Some("running") => {}
            Some("queued") => return Ok(None),
            Some(_) | None => return Err(Fault::RunEnded),
        }
        let (tenant, user, conversation, run_seq, parent_run_seq, parent_seq, chain, context_type, arrives): Row = query(
            "SELECT tenant, user_id, conversation, run_seq, parent_run_seq, parent_seq, chain_seq, context_type, arrives
             FROM runs WHERE id = $1",
        )
        .bind(run.to_string())
        .fetch_one(&mut transaction)
        .await?;
        let seat = Seat::from((tenant, user, conversation, run_seq));
        self.database.narrow(&mut transaction, Reach::User(&seat.conversation.scope)).await?;
        let used = used_before(&mut transaction, &seat, chain).await?;
        let Seat { conversation, run_seq } = seat;
        let parent = Branch::from_run_seq(parent_run_seq, parent_seq);
        let before = seen_before(&mut transaction, &conversation, parent).await?;
        query("UPDATE runs SET seen_before = $2 WHERE id = $1")
            .bind((run.to_string(), before))
            .execute(&mut transaction)
            .await?;
        let past = earlier(&mut transaction, &conversation, parent, history).await?;
        let Message::User(message) = question(&mut transaction, &conversation, run_seq).await? else {
            return Err(RecordError::Kind.into());
        };
        let context = context_of(&mut transaction, &conversation, run_seq).await?;
        let decided = call_of(&mut transaction, &conversation, run).await?;
        let answered = answered_of(&mut transaction, &conversation, run_seq).await?;
        let left = find_state(&mut transaction, &conversation.scope, &conversation.id).await?;
        let left = left.on_branch(parent.map(|parent| (parent.run_seq, parent.seq)));
        let FoundState { place, recap, clarification, .. } = left;
        let Arrival { place, is_moved, is_refocused } = match arrives.as_deref().map(decode_update).transpose()? {
            Some(update) => Arrival::new(place, &update, &context_type),
            None => Arrival { place, is_moved: false, is_refocused: false },
        };
        let mut batch = Batch::default();
        if let Some(place) = place.as_ref().filter(|_| is_moved) {
            let now = self.clock.now_ms();
            keep_place(&mut batch, &conversation.scope, &conversation.id, encode_place(place)?, now);
        }
        batch.commit(transaction).await?;
        Ok(Some(RunStart {
            past,
            message,
            answered,
            decided,
            context,
            place,
            recap,
            clarification,
            is_moved,
            is_refocused,
            used,
        }))
    }
}
