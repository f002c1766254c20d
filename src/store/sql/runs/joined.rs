//! Decisions on further calls of a turn, taken for the run that goes on behind the first of them.
//!
//! **Invariant:** whoever takes one for a run holds that run's row, as does the run when it takes no more: so each is read by
//! the run, or is not taken for it.

use async_trait::async_trait;

use super::decided::{note_decision, words};
use super::details::context_of;
use super::{ConversationRow, NotBegun, SqlStore};
use crate::agent::ports::decisions::{Decisions, Gathered};
use crate::agent::ports::store::{BeginError, DecidedCall};
use crate::agent::ports::store_error::StoreError;
use crate::chat::approval::{ApprovalState, Decision};
use crate::chat::caller::Owner;
use crate::chat::ids::{ApprovalId, ConversationId, RunId};
use crate::chat::message::{Author, UserMessage};
use crate::store::approval::{ApprovalRow, approval_columns, approved_call, turned_down};
use crate::store::database::Connection;
use crate::store::fault::{Fault, attempt};
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope};
use crate::store::statement::{Batch, query};

/// A call as it stands: its run, its plan, the run that its decision was taken for, and the number of that one's message.
type Standing = (String, Option<String>, String, Option<String>, Option<i64>);

#[async_trait]
impl Decisions for SqlStore {
    async fn hand_over(
        &self,
        (owner, conversation): (&Owner, &ConversationId),
        approval: ApprovalId,
        decision: &Decision,
        is_repeated: bool,
    ) -> Result<Option<RunId>, BeginError> {
        let conversation = ConversationRow { scope: owner.into(), id: conversation.to_string() };
        let handed = self.try_hand_over(&conversation, (approval, decision), is_repeated);
        attempt("take a decision for a run", handed).await
    }

    async fn take(
        &self,
        (owner, conversation): (&Owner, &ConversationId),
        run: RunId,
        seq: u32,
        last: bool,
    ) -> Result<Gathered, StoreError> {
        let conversation = ConversationRow { scope: owner.into(), id: conversation.to_string() };
        attempt("look for decisions", self.try_take_joined(&conversation, run, seq, last)).await
    }
}

impl SqlStore {
    async fn try_hand_over(
        &self,
        conversation: &ConversationRow,
        (id, decision): (ApprovalId, &Decision),
        is_repeated: bool,
    ) -> Result<Option<RunId>, NotBegun> {
        let scope = &conversation.scope;
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        let standing: Option<Standing> = query(
            "SELECT run_id, plan_id, state, decided_in, joined FROM approvals
             WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND id = $4",
        )
        .bind((scope, &conversation.id, id.to_string()))
        .fetch_optional(&mut transaction)
        .await?;
        let Some((asking, None, state, taken_for, joined)) = standing else { return Ok(None) };
        if let (Some(run), Some(_)) = (taken_for, joined) {
            let is_same = is_repeated && (state == "approved") == decision.approve;
            return Ok(is_same.then(|| RunId::parse(&run)).transpose().map_err(RecordError::from)?);
        }
        if matches!(ApprovalState::parse(&state), Some(ApprovalState::Approved | ApprovalState::Rejected)) {
            // With it a run has begun, which the same request finds by its key.
            return Ok(None);
        }
        let run: Option<String> = query(
            "SELECT id FROM runs WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND state = 'running'
                 AND gathers = 1 AND continues = $4 @for_update",
        )
        .bind((scope, &conversation.id, asking))
        .fetch_optional_value(&mut transaction)
        .await?;
        let Some(run) = run else { return Ok(None) };
        let run = RunId::parse(&run).map_err(RecordError::from)?;
        let now = self.clock.now_ms();
        note_decision(&mut transaction, conversation, run, (id, decision, Some(0)), now).await?;
        transaction.commit().await?;
        Ok(Some(run))
    }

    async fn try_take_joined(
        &self,
        conversation: &ConversationRow,
        run: RunId,
        seq: u32,
        last: bool,
    ) -> Result<Gathered, Fault> {
        let scope = &conversation.scope;
        if !last {
            // Most looks find nothing, and only read.
            let mut reading = self.database.reading(Reach::User(scope)).await?;
            let taken: i64 = query(
                "SELECT COUNT(*) FROM approvals WHERE tenant = $1 AND user_id = $2 AND decided_in = $3 AND joined = 0",
            )
            .bind((scope, run.to_string()))
            .fetch_value(&mut reading)
            .await?;
            if taken == 0 {
                return Ok(gathered(&mut reading, scope, run).await?);
            }
        }
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        if last {
            query("UPDATE runs SET gathers = 0 WHERE tenant = $1 AND user_id = $2 AND id = $3")
                .bind((scope, run.to_string()))
                .execute(&mut transaction)
                .await?;
        }
        let row: Option<ApprovalRow> = query(concat!(
            "SELECT ",
            approval_columns!(),
            " FROM approvals a WHERE a.tenant = $1 AND a.user_id = $2 AND a.decided_in = $3 AND a.joined = 0
             ORDER BY a.decided_at, a.created_at, a.id LIMIT 1"
        ))
        .bind((scope, run.to_string()))
        .fetch_optional(&mut transaction)
        .await?;
        let Some(row) = row else {
            let gathered = gathered(&mut transaction, scope, run).await?;
            transaction.commit().await?;
            return Ok(gathered);
        };
        let approval = row.into_view()?.approval;
        let (state, comment): (String, Option<String>) = query(
            "UPDATE approvals SET joined = $4 WHERE tenant = $1 AND user_id = $2 AND id = $3
             RETURNING state, CASE WHEN decided_by IS NULL THEN comment END",
        )
        .bind((scope, approval.id.to_string(), i64::from(seq)))
        .fetch_one(&mut transaction)
        .await?;
        let comment = comment.map(|text| serde_json::from_str(&text)).transpose();
        let comment = comment.map_err(RecordError::json("comment"))?;
        let decision = Decision { approve: state == "approved", comment };
        let message = UserMessage::by(Author::Decision, words(&approval.tool, &decision));
        let decided = match decision.approve {
            true => {
                let asking: i64 = query("SELECT run_seq FROM runs WHERE tenant = $1 AND user_id = $2 AND id = $3")
                    .bind((scope, approval.run.to_string()))
                    .fetch_value(&mut transaction)
                    .await?;
                let context = context_of(&mut transaction, conversation, asking).await?;
                DecidedCall::Approved(approved_call(approval, context)?)
            }
            false => DecidedCall::TurnedDown(turned_down(approval)),
        };
        transaction.commit().await?;
        Ok(Gathered::Decision(Box::new((decided, message))))
    }
}

/// Whether a decision may still come for `run`, where none is there.
async fn gathered(connection: &mut dyn Connection, scope: &Scope, run: RunId) -> Result<Gathered, sqlx::Error> {
    let waits: i64 = query(
        "SELECT COUNT(*) FROM approvals a JOIN runs r ON r.id = $3 AND a.run_id = r.continues
         WHERE a.tenant = $1 AND a.user_id = $2 AND a.decided_in IS NULL AND a.plan_id IS NULL
             AND (a.state = 'granted' OR a.state = 'pending' AND a.role IS NULL) AND a.expires_at > @now",
    )
    .bind((scope, run.to_string()))
    .fetch_value(connection)
    .await?;
    Ok(if waits > 0 { Gathered::NotYet } else { Gathered::Nothing })
}

/// Takes back what was decided for the run `run` and it ends without having made or told: such a call waits again, or its
/// refusal is told later. What was sent is not sent again. Call it behind the rows of the run's end.
pub(super) fn give_back_joined(batch: &mut Batch, scope: &Scope, run: RunId) {
    let give_back = batch.say(
        "UPDATE approvals SET
             state = CASE WHEN state = 'rejected' THEN state WHEN decided_by IS NULL THEN 'pending' ELSE 'granted' END,
             decided_at = CASE WHEN state <> 'rejected' AND decided_by IS NULL THEN NULL ELSE decided_at END,
             comment = CASE WHEN state <> 'rejected' AND decided_by IS NULL THEN NULL ELSE comment END,
             decided_in = NULL, joined = NULL
         WHERE tenant = $2 AND user_id = $3 AND decided_in = $1 AND joined IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM dispatches d
                 WHERE d.run_id = $1 AND d.call LIKE 'call_' || REPLACE(approvals.id, '-', '') || '%')
             AND (joined = 0 OR NOT EXISTS (
                 SELECT 1 FROM runs r JOIN messages m ON m.tenant = r.tenant AND m.user_id = r.user_id
                     AND m.conversation = r.conversation AND m.run_seq = r.run_seq
                 WHERE r.id = $1 AND m.seq >= approvals.joined))",
    );
    give_back.bind((run.to_string(), scope));
}

/// The number of the last message with what came of decisions that were taken for `run`: of a call that was let through, its
/// result is two messages behind that about the decision. `None` where none was.
pub(super) async fn last_joined(
    connection: &mut dyn Connection,
    scope: &Scope,
    run: RunId,
) -> Result<Option<i64>, sqlx::Error> {
    let last: (Option<i64>,) = query(
        "SELECT MAX(CASE state WHEN 'approved' THEN joined + 2 ELSE joined END) FROM approvals
         WHERE tenant = $1 AND user_id = $2 AND decided_in = $3 AND joined > 0",
    )
    .bind((scope, run.to_string()))
    .fetch_one(connection)
    .await?;
    Ok(last.0)
}
