//! People change directives: they let one through or turn it down, cancel it, or have it run again.

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::super::signals::NewSignals;
use super::super::{SqlStore, audit};
use super::{Told, roles, tell};
use crate::agent::ports::directives::{
    Access, Change, ChangeError, Decided, DirectiveStore, NewDirective, RequestError, Requested,
};
use crate::chat::approval::Consent;
use crate::chat::audit::{Act, Fact};
use crate::chat::caller::{Caller, Owner};
use crate::chat::directive::{CancelReason, Directive, DirectiveDecision, DirectiveStatus, RunsAs};
use crate::chat::ids::{ConversationId, DirectiveId};
use crate::store::database::{Connection, Writing};
use crate::store::directive::{DirectiveRow, directive_columns, encode_body};
use crate::store::fault::{Fault, Undone, attempt};
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope, storable};
use crate::store::statement::{Batch, query};

#[async_trait]
impl DirectiveStore for SqlStore {
    async fn keep_directive(&self, new: NewDirective<'_>) -> Result<Requested, RequestError> {
        attempt("keep a directive", self.try_keep_directive(new)).await
    }

    async fn decide_directive(
        &self,
        caller: &Caller,
        id: DirectiveId,
        access: Access,
        decision: &Decided,
    ) -> Result<Directive, ChangeError> {
        attempt("decide a directive", self.try_decide_directive(caller, id, access, decision)).await
    }

    async fn change_directive(
        &self,
        caller: &Caller,
        id: DirectiveId,
        access: Access,
        change: Change,
    ) -> Result<Directive, ChangeError> {
        attempt("change a directive", self.try_change_directive(caller, id, access, change)).await
    }
}

impl SqlStore {
    async fn try_decide_directive(
        &self,
        caller: &Caller,
        id: DirectiveId,
        access: Access,
        decision: &Decided,
    ) -> Result<Directive, Undone<ChangeError>> {
        let (transaction, mut signals, mut directive, scope) = self.held(caller, id, access).await?;
        let now = signals.now_ms;
        let Some(approval) = directive.approval.as_mut() else {
            return Err(Undone::Refused(ChangeError::AlreadyDecided));
        };
        if !may_decide(caller, &directive.owner, &approval.consent) {
            return Err(Undone::Refused(ChangeError::RoleRequired));
        }
        match directive.status {
            DirectiveStatus::PendingApproval if approval.expires_at_ms <= now => {
                return Err(Undone::Refused(ChangeError::Expired));
            }
            DirectiveStatus::PendingApproval => {}
            DirectiveStatus::Canceled if directive.reason == Some(CancelReason::Expired) => {
                return Err(Undone::Refused(ChangeError::Expired));
            }
            _ => return Err(Undone::Refused(ChangeError::AlreadyDecided)),
        }
        if decision.digest.as_ref().is_some_and(|digest| *digest != approval.digest) {
            return Err(Undone::Refused(ChangeError::DigestMismatch));
        }
        let by = caller.owner.user.clone();
        approval.decided = Some(DirectiveDecision { by: by.clone(), at_ms: now, comment: decision.comment.clone() });
        let (digest, is_own) = (approval.digest.clone(), by == directive.owner.user);
        let (what, act) = match (decision.approve, is_own) {
            (true, true) => ("approved", Act::ApprovalApproved),
            (true, false) => ("approved", Act::ApprovalGranted),
            (false, _) => ("rejected", Act::ApprovalRejected),
        };
        match decision.approve {
            true => directive.status = DirectiveStatus::Requested,
            false => cancel(&mut directive, CancelReason::Rejected, now),
        }
        directive.updated_at_ms = now;
        let mut batch = Batch::default();
        write(&mut batch, &[(&scope, &directive, None)])?;
        tell(&mut batch, (&self.subscriptions, &mut signals), &scope, &directive, Told::new(what, &by))?;
        let fact = Fact { arguments: Some(digest), ..fact(act, &by, &scope, &directive) };
        audit::tell(&mut batch, &scope, fact);
        signals.keep(&mut batch)?;
        batch.commit(transaction).await?;
        Ok(directive)
    }

    pub(in crate::store::sql) async fn try_change_directive(
        &self,
        caller: &Caller,
        id: DirectiveId,
        access: Access,
        change: Change,
    ) -> Result<Directive, Undone<ChangeError>> {
        let (mut transaction, mut signals, mut directive, scope) = self.held(caller, id, access).await?;
        let now = signals.now_ms;
        let by = caller.owner.user.clone();
        let (act, told) = match change {
            Change::Cancel => {
                if !access.operates && directive.owner != caller.owner {
                    // Whoever may decide it may not cancel it.
                    return Err(Undone::Refused(ChangeError::NotFound));
                }
                match directive.status {
                    DirectiveStatus::Running => return Err(Undone::Refused(ChangeError::Running)),
                    status if status.is_over() => return Ok(directive),
                    _ => {}
                }
                cancel(&mut directive, CancelReason::Canceled, now);
                let told = Told { what: "canceled", by: &by, more: reason(CancelReason::Canceled) };
                (Act::DirectiveCanceled, told)
            }
            Change::Rerun => {
                if !access.operates {
                    return Err(Undone::Refused(ChangeError::RoleRequired));
                }
                let may = matches!(directive.status, DirectiveStatus::Failed | DirectiveStatus::Unknown)
                    && directive.runs_as == RunsAs::Service;
                if !may || is_live_again(&mut transaction, &scope, id).await? {
                    return Err(Undone::Refused(ChangeError::NotRerunnable));
                }
                directive.status = DirectiveStatus::Requested;
                directive.max_attempts = directive.attempt.saturating_add(1);
                (directive.due_at_ms, directive.completed_at_ms) = (now, None);
                // What went wrong is in its history; this attempt has gone wrong in nothing yet.
                directive.error = None;
                (Act::DirectiveRerun, Told::new("rerun", &by))
            }
        };
        directive.updated_at_ms = now;
        let mut batch = Batch::default();
        write(&mut batch, &[(&scope, &directive, Some(false))])?;
        tell(&mut batch, (&self.subscriptions, &mut signals), &scope, &directive, told)?;
        audit::tell(&mut batch, &scope, fact(act, &by, &scope, &directive));
        signals.keep(&mut batch)?;
        batch.commit(transaction).await?;
        Ok(directive)
    }
}

impl SqlStore {
    /// The directive that the caller can see, held until the transaction ends, with its owner.
    async fn held(
        &self,
        caller: &Caller,
        id: DirectiveId,
        access: Access,
    ) -> Result<(Writing, NewSignals, Directive, Scope), Undone<ChangeError>> {
        let scope = Scope::from(&caller.owner);
        let mut transaction = self.database.write(Reach::Tenant(&scope)).await?;
        let row: Option<DirectiveRow> = query(concat!(
            "SELECT ",
            directive_columns!(),
            " FROM directives WHERE tenant = $1 AND id = $2 AND ($3 <> 0 OR user_id = $4 OR role @one_of($5)) @for_update",
        ))
        .bind((scope.tenant(), id.to_string(), i64::from(access.reads), scope.user(), roles(caller)?))
        .fetch_optional(&mut transaction)
        .await?;
        let Some(row) = row else { return Err(Undone::Refused(ChangeError::NotFound)) };
        let owner = row.scope();
        let signals = NewSignals::hold(&mut transaction, [&owner]).await?;
        Ok((transaction, signals, row.into_directive()?, owner))
    }
}

/// Whether the caller may decide what needs this consent.
fn may_decide(caller: &Caller, owner: &Owner, consent: &Consent) -> bool {
    match consent {
        Consent::Auto | Consent::User => caller.owner == *owner,
        Consent::Role { role, not_requester } => caller.has_role(role) && !(*not_requester && caller.owner == *owner),
    }
}

/// Ends a directive that was not done.
pub(super) fn cancel(directive: &mut Directive, reason: CancelReason, now: i64) {
    (directive.status, directive.reason) = (DirectiveStatus::Canceled, Some(reason));
    (directive.updated_at_ms, directive.completed_at_ms) = (now, Some(now));
}

/// What a signal says of the reason.
pub(super) fn reason(reason: CancelReason) -> Map<String, Value> {
    Map::from_iter([("reason".to_owned(), Value::from(reason.name()))])
}

/// Whether another directive of the same intent is live; nobody else requests one in this tenant meanwhile.
async fn is_live_again(connection: &mut dyn Connection, scope: &Scope, id: DirectiveId) -> Result<bool, Fault> {
    let live: i64 = query(
        "SELECT COUNT(*) FROM directives d JOIN directives o ON o.tenant = d.tenant AND o.name = d.name AND o.intent = d.intent
         WHERE d.tenant = $1 AND d.id = $2 AND o.id <> d.id AND o.status IN ('pending_approval', 'requested', 'running')",
    )
    .bind((scope.tenant(), id.to_string()))
    .fetch_value(connection)
    .await?;
    Ok(live > 0)
}

/// Adds the change of a row that is held: its claim is over. `in_doubt` is noted where it is said.
pub(super) fn write(batch: &mut Batch, changed: &[(&Scope, &Directive, Option<bool>)]) -> Result<(), RecordError> {
    if changed.is_empty() {
        return Ok(());
    }
    let rows = changed.iter().map(|(scope, directive, in_doubt)| {
        let decided = directive.approval.as_ref().and_then(|approval| approval.decided.as_ref());
        Ok(json!({
            "id": directive.id.to_string(),
            "tenant": scope.tenant(),
            "user_id": scope.user(),
            "status": directive.status.name(),
            "reason": directive.reason.map(CancelReason::name),
            "max_attempts": directive.max_attempts,
            "due_at": directive.due_at_ms,
            "updated_at": directive.updated_at_ms,
            "completed_at": directive.completed_at_ms,
            "decided_by": decided.map(|decided| storable(&decided.by)),
            "decided_at": decided.map(|decided| decided.at_ms),
            "in_doubt": in_doubt.map(i64::from),
            "body": encode_body(directive)?,
        }))
    });
    let rows = rows.collect::<Result<Value, RecordError>>()?;
    let ids: Value = changed.iter().map(|(_, directive, _)| directive.id.to_string()).collect();
    batch
        .change(
            "directives",
            "UPDATE directives SET status = n.status, reason = n.reason, max_attempts = n.max_attempts, due_at = n.due_at,
                 updated_at = n.updated_at, completed_at = n.completed_at, decided_by = n.decided_by,
                 decided_at = n.decided_at, in_doubt = COALESCE(n.in_doubt, directives.in_doubt), body = n.body,
                 lease_owner = NULL, lease_until = NULL, sent_at = NULL
             FROM @changed($1)
             WHERE directives.tenant = n.tenant AND directives.user_id = n.user_id AND directives.id = n.id
                 AND directives.id @one_of($2)",
        )
        .bind((rows.to_string(), ids.to_string()));
    Ok(())
}

/// The audit record's fact of an act on a directive.
pub(super) fn fact<'a>(act: Act, by: &'a str, scope: &'a Scope, directive: &'a Directive) -> Fact<'a> {
    Fact {
        tool: Some(directive.name.as_str()),
        call: directive.causation.as_deref(),
        conversation: directive.conversation.as_ref().map(ConversationId::as_str),
        subject: Some(directive.id.to_string()),
        ..Fact::new(act, by, scope.user())
    }
}
