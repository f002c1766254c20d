//! Approvals in SQL: read by whoever may decide them, and the decision of a user with the role on another one's. They
//! are written with the end of their run, and taken with the beginning of the one that goes on (`runs/decided.rs`).
//!
//! **Invariant:** whether a call's time is over is for the database's clock to say. The process's only dates the notes.

use async_trait::async_trait;

use super::{SqlStore, audit};
use crate::agent::ports::approvals::{ApprovalStore, ApprovalView, GrantError};
use crate::agent::ports::store_error::StoreError;
use crate::chat::approval::{Approval, ApprovalState, Decision};
use crate::chat::audit::{Act, Fact};
use crate::chat::caller::{Caller, Owner};
use crate::chat::ids::{ApprovalId, ConversationId};
use crate::chat::trail::{ApprovalVerdict, TrailEvent};
use crate::store::approval::{ApprovalRow, approval_columns};
use crate::store::database::Connection;
use crate::store::fault::{Fault, Undone, attempt};
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope, original, storable};
use crate::store::statement::{Batch, query};
use crate::store::trail::encode_entry;

/// How many waiting approvals are listed: the port's promise.
const WAITING_LISTED: i64 = 100;

/// Expired approvals that one tidying notes: each is an entry of a trail.
const NOTED_AT_ONCE: i64 = 500;

#[async_trait]
impl ApprovalStore for SqlStore {
    async fn time(&self) -> Result<i64, StoreError> {
        attempt("ask for the time", self.try_time()).await
    }

    async fn waiting(&self, caller: &Caller) -> Result<Vec<ApprovalView>, StoreError> {
        attempt("list approvals", self.try_waiting(caller)).await
    }

    async fn waiting_in(&self, owner: &Owner, conversation: &ConversationId) -> Result<Vec<ApprovalView>, StoreError> {
        attempt("list a conversation's approvals", self.try_waiting_in(&owner.into(), conversation)).await
    }

    async fn approval(&self, caller: &Caller, id: ApprovalId) -> Result<Option<ApprovalView>, StoreError> {
        attempt("read an approval", self.try_approval(caller, id)).await
    }

    async fn grant(&self, caller: &Caller, id: ApprovalId, decision: &Decision) -> Result<ApprovalView, GrantError> {
        attempt("keep what was said to an approval", self.try_grant(caller, id, decision)).await
    }
}

impl SqlStore {
    async fn try_time(&self) -> Result<i64, Fault> {
        Ok(query("SELECT @now").fetch_value(&mut self.database.reading(Reach::All).await?).await?)
    }

    async fn try_waiting(&self, caller: &Caller) -> Result<Vec<ApprovalView>, Fault> {
        let scope = Scope::from(&caller.owner);
        let rows: Vec<ApprovalRow> = query(concat!(
            "SELECT ",
            approval_columns!(),
            " FROM approvals a WHERE a.tenant = $1 AND a.user_id = $2 AND a.decided_in IS NULL
                 AND a.state IN ('pending', 'granted') AND a.expires_at > @now
             UNION ALL
             SELECT ",
            approval_columns!(),
            " FROM approvals a WHERE a.tenant = $1 AND a.user_id <> $2 AND a.role @one_of($3)
                 AND a.state = 'pending' AND a.expires_at > @now
             ORDER BY created_at DESC, id DESC LIMIT $4",
        ))
        .bind((&scope, roles(caller)?, WAITING_LISTED))
        .fetch_all(&mut self.database.reading(Reach::Tenant(&scope)).await?)
        .await?;
        rows.into_iter().map(|row| Ok(row.into_view()?)).collect()
    }

    async fn try_waiting_in(&self, scope: &Scope, conversation: &ConversationId) -> Result<Vec<ApprovalView>, Fault> {
        let rows: Vec<ApprovalRow> = query(concat!(
            "SELECT ",
            approval_columns!(),
            " FROM approvals a WHERE a.tenant = $1 AND a.user_id = $2 AND a.conversation = $3 AND a.decided_in IS NULL
                 AND a.state IN ('pending', 'granted') AND a.expires_at > @now ORDER BY a.created_at, a.id LIMIT $4"
        ))
        .bind((scope, conversation.as_str(), WAITING_LISTED))
        .fetch_all(&mut self.database.reading(Reach::User(scope)).await?)
        .await?;
        rows.into_iter().map(|row| Ok(row.into_view()?)).collect()
    }

    async fn try_approval(&self, caller: &Caller, id: ApprovalId) -> Result<Option<ApprovalView>, Fault> {
        let scope = Scope::from(&caller.owner);
        let row: Option<ApprovalRow> = query(concat!(
            "SELECT ",
            approval_columns!(),
            " FROM approvals a WHERE a.tenant = $1 AND a.id = $2 AND (a.user_id = $3 OR a.role @one_of($4))"
        ))
        .bind((scope.tenant(), id.to_string(), scope.user(), roles(caller)?))
        .fetch_optional(&mut self.database.reading(Reach::Tenant(&scope)).await?)
        .await?;
        Ok(row.map(ApprovalRow::into_view).transpose()?)
    }

    async fn try_grant(
        &self,
        caller: &Caller,
        id: ApprovalId,
        decision: &Decision,
    ) -> Result<ApprovalView, Undone<GrantError>> {
        let scope = Scope::from(&caller.owner);
        let now = self.clock.now_ms();
        let comment = comment(decision)?;
        let mut transaction = self.database.write(Reach::Tenant(&scope)).await?;
        let row: Option<ApprovalRow> = query(concat!(
            "SELECT ",
            approval_columns!(),
            " FROM approvals a WHERE a.tenant = $1 AND a.user_id <> $2 AND a.id = $3 AND a.role @one_of($4) @for_update"
        ))
        .bind((&scope, id.to_string(), roles(caller)?))
        .fetch_optional(&mut transaction)
        .await?;
        let Some(mut view) = row.map(ApprovalRow::into_view).transpose()? else {
            return Err(Undone::Refused(GrantError::NotFound));
        };
        match view.standing.state {
            ApprovalState::Pending if view.standing.has_expired() => return Err(Undone::Refused(GrantError::Expired)),
            ApprovalState::Pending => {}
            ApprovalState::Granted | ApprovalState::Approved | ApprovalState::Rejected => {
                return Err(Undone::Refused(GrantError::AlreadyDecided));
            }
        }
        let (state, verdict) = match decision.approve {
            true => (ApprovalState::Granted, ApprovalVerdict::Granted),
            false => (ApprovalState::Rejected, ApprovalVerdict::Rejected),
        };
        query(
            "UPDATE approvals SET state = $1, decided_at = $2, decided_by = $3, comment = $4
             WHERE tenant = $5 AND id = $6",
        )
        .bind((state.name(), now, scope.user(), comment, scope.tenant(), id.to_string()))
        .execute(&mut transaction)
        .await?;
        let what = TrailEvent::ApprovalDecided {
            approval: id,
            tool: view.approval.tool.clone(),
            verdict,
            by: Some(caller.owner.user.clone()),
            comment: decision.comment.clone(),
        };
        let of = Scope::from(&view.owner);
        tell(&mut transaction, (&of, view.approval.conversation.as_str()), now, &what).await?;
        let act = match decision.approve {
            true => Act::ApprovalGranted,
            false => Act::ApprovalRejected,
        };
        let mut batch = Batch::default();
        audit::tell(&mut batch, &of, decided(Fact::new(act, scope.user(), of.user()), &view.approval));
        batch.commit(transaction).await?;
        view.standing.state = state;
        Ok(view)
    }

    /// Tells the trail of approvals whose time is over, and whether there may be more of them. Names no owner: it looks
    /// at nothing but the time.
    pub(super) async fn try_note_expired(&self) -> Result<bool, Fault> {
        let now = self.clock.now_ms();
        let mut transaction = self.database.write(Reach::All).await?;
        let rows: Vec<(String, String, String, String, String)> = query(
            "UPDATE approvals SET expired = 1 WHERE id IN (
                 SELECT id FROM approvals
                 WHERE expired = 0 AND state IN ('pending', 'granted') AND expires_at <= @now
                 ORDER BY expires_at LIMIT $1 @skip_locked)
             RETURNING tenant, user_id, conversation, id, tool",
        )
        .bind(NOTED_AT_ONCE)
        .fetch_all(&mut transaction)
        .await?;
        let is_more_left = rows.len() >= NOTED_AT_ONCE as usize;
        let mut batch = Batch::default();
        for (tenant, user, conversation, id, tool) in rows {
            let what = TrailEvent::ApprovalDecided {
                approval: ApprovalId::parse(&id).map_err(RecordError::from)?,
                tool: original(&tool).into_owned(),
                verdict: ApprovalVerdict::Expired,
                by: None,
                comment: None,
            };
            let scope = Scope::of_row(tenant, user);
            tell(&mut transaction, (&scope, &conversation), now, &what).await?;
            let fact = Fact {
                conversation: Some(&conversation),
                tool: Some(&tool),
                subject: Some(id),
                ..Fact::new(Act::ApprovalExpired, "", scope.user())
            };
            audit::tell(&mut batch, &scope, fact);
        }
        batch.commit(transaction).await?;
        Ok(is_more_left)
    }
}

/// At most `limit` approvals of a conversation behind the one that was requested at a time and has an id, oldest first.
pub(super) async fn approvals_behind(
    connection: &mut dyn Connection,
    scope: &Scope,
    conversation: &str,
    (at_ms, id): (i64, &str),
    limit: i64,
) -> Result<Vec<ApprovalView>, Fault> {
    let rows: Vec<ApprovalRow> = query(concat!(
        "SELECT ",
        approval_columns!(),
        " FROM approvals a WHERE a.tenant = $1 AND a.user_id = $2 AND a.conversation = $3
             AND (a.created_at, a.id) > ($4, $5) ORDER BY a.created_at, a.id LIMIT $6",
    ))
    .bind((scope, conversation, at_ms, id, limit))
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(|row| Ok(row.into_view()?)).collect()
}

/// The caller's roles as a JSON list, as the column holds them.
fn roles(caller: &Caller) -> Result<String, RecordError> {
    let roles: Vec<_> = caller.roles.iter().map(|role| storable(role)).collect();
    serde_json::to_string(&roles).map_err(RecordError::json("list"))
}

/// A decision's comment as JSON text, which every database takes whatever is in it.
pub(super) fn comment(decision: &Decision) -> Result<Option<String>, RecordError> {
    decision.comment.as_ref().map(serde_json::to_string).transpose().map_err(RecordError::json("comment"))
}

/// The audit record's fact of a decision on `approval`.
pub(super) fn decided<'a>(fact: Fact<'a>, approval: &'a Approval) -> Fact<'a> {
    Fact {
        run: Some(approval.run),
        call: approval.call.as_deref(),
        tool: Some(&approval.tool),
        subject: Some(approval.id.to_string()),
        arguments: Some(approval.digest.clone()),
        ..fact.within(&approval.conversation)
    }
}

/// Writes an entry that belongs to no run into the trail of a conversation that is there.
pub(super) async fn tell(
    connection: &mut dyn Connection,
    (scope, conversation): (&Scope, &str),
    now: i64,
    what: &TrailEvent,
) -> Result<(), Fault> {
    query(
        "INSERT INTO trail (tenant, user_id, conversation, at, kind, body)
         SELECT tenant, user_id, id, $4, $5, $6 FROM conversations WHERE tenant = $1 AND user_id = $2 AND id = $3",
    )
    .bind((scope, conversation, now, what.kind(), encode_entry(what)?))
    .execute(connection)
    .await?;
    Ok(())
}
