//! The rows as a queue: taken under a lease, noted before anything is sent, and ended once.

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::super::audit::NewLine;
use super::super::signals::NewSignals;
use super::super::{SqlStore, audit};
use super::change::{cancel, fact, reason, write};
use super::{Told, tell};
use crate::agent::ports::directive_queue::{AttemptDone, Claimed, Claiming, DirectiveQueue, Due, Fence, Settlement};
use crate::agent::ports::store_error::StoreError;
use crate::chat::audit::{Act, Fact};
use crate::chat::causes::Causes;
use crate::chat::day::rfc3339;
use crate::chat::directive::{CancelReason, Directive, DirectiveError, DirectiveStatus};
use crate::chat::fate::CallFate;
use crate::chat::ids::DirectiveId;
use crate::chat::signal::SignalFact;
use crate::store::database::Writing;
use crate::store::directive::{DirectiveRow, directive_columns};
use crate::store::fault::{Fault, attempt};
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope, storable};
use crate::store::statement::{Batch, Statement, query};

/// How long what runs with its caller's token may wait to be begun by the process that they asked, in milliseconds.
const CALLER_PATIENCE_MS: i64 = 60_000;

/// How long what was sent and left waits for a process that knows its command, in milliseconds: longer than a change of versions
/// takes. Others cannot tell whether it may be sent again.
const STRANGER_PATIENCE_MS: i64 = 3_600_000;

/// Rows that one tidying changes or removes of each kind.
const AT_ONCE: i64 = 200;

/// The directives whose process is gone, for a process that knows the commands of the first parameter and leaves the others alone
/// for the milliseconds of the second.
macro_rules! abandoned {
    ($names:literal, $patience:literal) => {
        concat!(
            "SELECT id FROM directives
             WHERE status = 'running' AND lease_until <= @now AND (sent_at IS NULL OR name @one_of(",
            $names,
            ") OR lease_until <= @now - ",
            $patience,
            ")"
        )
    };
}

#[async_trait]
impl DirectiveQueue for SqlStore {
    async fn claim_directives(&self, claiming: Claiming<'_>) -> Result<Vec<Claimed>, StoreError> {
        attempt("take directives", self.try_claim_directives(claiming)).await
    }

    async fn begin_attempts(&self, fences: &[Fence], lease_ms: i64) -> Result<Vec<Fence>, StoreError> {
        attempt("begin attempts", self.try_begin_attempts(fences, lease_ms)).await
    }

    async fn settle_attempts(&self, ended: &[(Fence, &Settlement)]) -> Result<Vec<Directive>, StoreError> {
        attempt("end attempts", self.try_settle_attempts(ended)).await
    }

    async fn renew_claims(&self, claims: &[DirectiveId], process: &str, lease_ms: i64) -> Result<(), StoreError> {
        attempt("renew claims of directives", self.try_renew_claims(claims, process, lease_ms)).await
    }

    async fn tidy_directives(&self, kept_ms: Option<i64>) -> Result<bool, StoreError> {
        attempt("tidy directives", self.try_tidy_directives(kept_ms)).await
    }
}

impl SqlStore {
    async fn try_claim_directives(&self, claiming: Claiming<'_>) -> Result<Vec<Claimed>, Fault> {
        let Claiming { process, lease_ms, most, what, names } = claiming;
        let names = serde_json::to_string(names).map_err(RecordError::json("list"))?;
        // Looking costs no writer its turn.
        let is_any: Option<String> = match what {
            Due::This(_) => Some(String::new()),
            Due::Now => {
                let due = query(
                    "SELECT id FROM directives
                     WHERE status = 'requested' AND due_at <= @now AND runs_as = 'service' AND name @one_of($1)
                     ORDER BY due_at LIMIT 1",
                );
                due.bind(&names).fetch_optional_value(&mut self.database.reading(Reach::All).await?).await?
            }
            Due::Abandoned => {
                let abandoned = query(concat!(abandoned!("$1", "$2"), " LIMIT 1"));
                let abandoned = abandoned.bind((&names, STRANGER_PATIENCE_MS));
                abandoned.fetch_optional_value(&mut self.database.reading(Reach::All).await?).await?
            }
        };
        if is_any.is_none() {
            return Ok(Vec::new());
        }
        let mut transaction = self.database.write(Reach::All).await?;
        let mut claim = claim(what).bind((storable(process), lease_ms)).bind(taken(what, most));
        claim = match what {
            Due::This(_) => claim,
            Due::Now => claim.bind(names),
            Due::Abandoned => claim.bind((names, STRANGER_PATIENCE_MS)),
        };
        let rows: Vec<DirectiveRow> = claim.fetch_all(&mut transaction).await?;
        let (mut batch, mut claimed) = (Batch::default(), Vec::with_capacity(rows.len()));
        for row in rows {
            let (scope, token, was_sent, in_doubt) = (row.scope(), row.token, row.sent_at.is_some(), row.in_doubt != 0);
            let id = row.id().to_owned();
            let directive = match row.into_directive() {
                Ok(directive) => directive,
                // Perhaps a newer version's. It is left to whoever can read it, and is in nobody's way.
                Err(error) => {
                    tracing::error!(directive.id = id, error = %Causes(&error), "a directive cannot be read");
                    continue;
                }
            };
            claimed.push((scope, Claimed { fence: Fence { id: directive.id, token }, directive, was_sent, in_doubt }));
        }
        if what != Due::Abandoned && !claimed.is_empty() {
            let mut signals = NewSignals::hold(&mut transaction, claimed.iter().map(|(scope, _)| scope)).await?;
            for (scope, Claimed { directive, .. }) in &claimed {
                let told = Told::new("started", &directive.owner.user);
                tell(&mut batch, (&self.subscriptions, &mut signals), scope, directive, told)?;
            }
            signals.keep(&mut batch)?;
        }
        batch.commit(transaction).await?;
        Ok(claimed.into_iter().map(|(_, claimed)| claimed).collect())
    }

    async fn try_begin_attempts(&self, fences: &[Fence], lease_ms: i64) -> Result<Vec<Fence>, Fault> {
        let mut transaction = self.database.write(Reach::All).await?;
        let rows: Vec<DirectiveRow> = query(concat!(
            "SELECT ",
            directive_columns!(),
            " FROM directives WHERE id @one_of($1) AND status = 'running' AND lease_until > @now AND sent_at IS NULL
             ORDER BY id @for_update",
        ))
        .bind(ids(fences)?)
        .fetch_all(&mut transaction)
        .await?;
        let (mut batch, mut lines, mut begun) = (Batch::default(), Vec::new(), Vec::with_capacity(rows.len()));
        for row in rows {
            let (scope, token) = (row.scope(), row.token);
            let directive = row.into_directive()?;
            let fence = Fence { id: directive.id, token };
            if !fences.contains(&fence) {
                continue;
            }
            let digest = directive.approval.as_ref().map(|approval| approval.digest.clone());
            let fact = fact(Act::WriteDispatched, &directive.owner.user, &scope, &directive);
            lines.push(audit::line(&scope, Fact { arguments: digest, ..fact }));
            begun.push(fence);
        }
        audit::write(&mut batch, lines);
        batch
            .change("directives", "UPDATE directives SET sent_at = @now, lease_until = @now + $2 WHERE id @one_of($1)")
            .bind((ids(&begun)?, lease_ms));
        batch.commit(transaction).await?;
        Ok(begun)
    }

    async fn try_settle_attempts(&self, ended: &[(Fence, &Settlement)]) -> Result<Vec<Directive>, Fault> {
        let fences: Vec<Fence> = ended.iter().map(|(fence, _)| *fence).collect();
        let mut transaction = self.database.write(Reach::All).await?;
        let rows: Vec<DirectiveRow> = query(concat!(
            "SELECT ",
            directive_columns!(),
            " FROM directives WHERE id @one_of($1) AND status = 'running' ORDER BY id @for_update",
        ))
        .bind(ids(&fences)?)
        .fetch_all(&mut transaction)
        .await?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let scopes: Vec<Scope> = rows.iter().map(DirectiveRow::scope).collect();
        let mut signals = NewSignals::hold(&mut transaction, &scopes).await?;
        let now = signals.now_ms;
        let (mut batch, mut lines) = (Batch::default(), Vec::new());
        let mut settled = Vec::with_capacity(rows.len());
        for (row, scope) in rows.into_iter().zip(scopes) {
            let (was_sent, token) = (row.sent_at.is_some(), row.token);
            let directive = row.into_directive()?;
            let fence = Fence { id: directive.id, token };
            let Some((_, settlement)) = ended.iter().find(|(of, _)| *of == fence) else { continue };
            let telling = (&mut batch, &mut signals, &mut lines);
            let (directive, in_doubt) = self.settle((directive, was_sent), settlement, now, &scope, telling)?;
            settled.push((scope, directive, in_doubt));
        }
        let changed: Vec<_> =
            settled.iter().map(|(scope, directive, in_doubt)| (scope, directive, *in_doubt)).collect();
        write(&mut batch, &changed)?;
        audit::write(&mut batch, lines);
        signals.keep(&mut batch)?;
        batch.commit(transaction).await?;
        Ok(settled.into_iter().map(|(_, directive, _)| directive).collect())
    }

    /// The directive behind the end of an attempt, and whether that is in doubt; what is told of it is added.
    fn settle(
        &self,
        (mut directive, was_sent): (Directive, bool),
        settlement: &Settlement,
        now: i64,
        scope: &Scope,
        (batch, signals, lines): (&mut Batch, &mut NewSignals, &mut Vec<NewLine>),
    ) -> Result<(Directive, Option<bool>), RecordError> {
        directive.updated_at_ms = now;
        let by = directive.owner.user.clone();
        let mut in_doubt = None;
        let (told, outcome) = match settlement {
            Settlement::Succeeded(AttemptDone { result, text, signals: of_domain }) => {
                end(&mut directive, DirectiveStatus::Succeeded, now);
                (directive.result, directive.text, directive.error) = (Some(result.clone()), text.clone(), None);
                for signal in of_domain {
                    signals.tell(&self.subscriptions, scope, &of_directive(signal, &directive, scope))?;
                }
                (Told::new("succeeded", &by), CallFate::Done)
            }
            Settlement::Failed(error) => {
                end(&mut directive, DirectiveStatus::Failed, now);
                directive.error = Some(error.clone());
                (Told { more: said(error), ..Told::new("failed", &by) }, CallFate::Failed)
            }
            Settlement::Unknown(error) => {
                end(&mut directive, DirectiveStatus::Unknown, now);
                directive.error = Some(error.clone());
                (Told { more: said(error), ..Told::new("unknown", &by) }, CallFate::Unknown)
            }
            Settlement::Again { error, in_ms, in_doubt: doubt } => {
                directive.status = DirectiveStatus::Requested;
                if !was_sent {
                    // It was none.
                    directive.max_attempts = directive.max_attempts.saturating_add(1);
                }
                directive.due_at_ms = now.saturating_add(*in_ms);
                directive.error = Some(error.clone());
                in_doubt = doubt.then_some(true);
                let mut more = said(error);
                more.insert("next_attempt_at".to_owned(), Value::from(rfc3339(directive.due_at_ms)));
                let fate = if *doubt { CallFate::Unknown } else { CallFate::Failed };
                (Told { more, ..Told::new("attempt_failed", &by) }, fate)
            }
            Settlement::CallerGone => {
                cancel(&mut directive, CancelReason::CallerGone, now);
                (Told { more: reason(CancelReason::CallerGone), ..Told::new("canceled", &by) }, CallFate::NotRun)
            }
        };
        tell(batch, (&self.subscriptions, signals), scope, &directive, told)?;
        if was_sent {
            let ended = fact(Act::WriteEnded, &by, scope, &directive);
            lines.push(audit::line(scope, Fact { outcome: Some(outcome.name()), ..ended }));
        }
        Ok((directive, in_doubt))
    }

    async fn try_renew_claims(&self, claims: &[DirectiveId], process: &str, lease_ms: i64) -> Result<(), Fault> {
        let ids: Vec<String> = claims.iter().map(ToString::to_string).collect();
        let ids = serde_json::to_string(&ids).map_err(RecordError::json("list"))?;
        let mut batch = Batch::default();
        let renew = "UPDATE directives SET lease_until = @now + $2
             WHERE status = 'running' AND lease_owner = $1 AND id @one_of($3)";
        batch.say(renew).bind((storable(process), lease_ms, ids));
        batch.commit(self.database.write(Reach::Leases).await?).await?;
        Ok(())
    }

    async fn try_tidy_directives(&self, kept_ms: Option<i64>) -> Result<bool, Fault> {
        let is_late = "SELECT id FROM directives WHERE status = 'pending_approval' AND expires_at <= @now
             UNION ALL SELECT id FROM directives
                 WHERE status = 'requested' AND runs_as = 'caller' AND updated_at <= @now - $1
             UNION ALL SELECT id FROM directives WHERE completed_at IS NOT NULL AND completed_at <= @now - $2 LIMIT 1";
        let kept = kept_ms.unwrap_or(i64::MAX / 2);
        let is_any: Option<String> = query(is_late)
            .bind((CALLER_PATIENCE_MS, kept))
            .fetch_optional_value(&mut self.database.reading(Reach::All).await?)
            .await?;
        if is_any.is_none() {
            return Ok(false);
        }
        let mut transaction = self.database.write(Reach::All).await?;
        let rows = late(&mut transaction).await?;
        let scopes: Vec<Scope> = rows.iter().map(DirectiveRow::scope).collect();
        let (mut batch, mut lines, most) = (Batch::default(), Vec::new(), AT_ONCE.unsigned_abs());
        let is_full = rows.len() as u64 >= most;
        let mut signals = NewSignals::hold(&mut transaction, &scopes).await?;
        let mut ended = Vec::with_capacity(rows.len());
        for (row, scope) in rows.into_iter().zip(&scopes) {
            let mut directive = row.into_directive()?;
            let why = match directive.status {
                DirectiveStatus::PendingApproval => CancelReason::Expired,
                _ => CancelReason::CallerGone,
            };
            cancel(&mut directive, why, signals.now_ms);
            let told = Told { more: reason(why), ..Told::new("canceled", &directive.owner.user) };
            tell(&mut batch, (&self.subscriptions, &mut signals), scope, &directive, told)?;
            if why == CancelReason::Expired {
                lines.push(audit::line(scope, fact(Act::ApprovalExpired, "", scope, &directive)));
            }
            ended.push(directive);
        }
        write(
            &mut batch,
            &scopes.iter().zip(&ended).map(|(scope, directive)| (scope, directive, None)).collect::<Vec<_>>(),
        )?;
        audit::write(&mut batch, lines);
        signals.keep(&mut batch)?;
        batch.commit(transaction).await?;
        let mut transaction = self.database.write(Reach::All).await?;
        let removed = query(
            "DELETE FROM directives WHERE id IN (
                 SELECT id FROM directives WHERE completed_at IS NOT NULL AND completed_at <= @now - $1
                 LIMIT $2 @skip_locked)",
        )
        .bind((kept, AT_ONCE))
        .execute(&mut transaction)
        .await?;
        transaction.commit().await?;
        Ok(is_full || removed >= most)
    }
}

/// What nobody decided in time, and what its caller has left before it was begun; held.
async fn late(transaction: &mut Writing) -> Result<Vec<DirectiveRow>, sqlx::Error> {
    let mut rows: Vec<DirectiveRow> = query(concat!(
        "SELECT ",
        directive_columns!(),
        " FROM directives WHERE status = 'pending_approval' AND expires_at <= @now LIMIT $1 @skip_locked",
    ))
    .bind(AT_ONCE)
    .fetch_all(transaction)
    .await?;
    let left: Vec<DirectiveRow> = query(concat!(
        "SELECT ",
        directive_columns!(),
        " FROM directives WHERE status = 'requested' AND runs_as = 'caller' AND updated_at <= @now - $1
         LIMIT $2 @skip_locked",
    ))
    .bind((CALLER_PATIENCE_MS, AT_ONCE))
    .fetch_all(transaction)
    .await?;
    rows.extend(left);
    Ok(rows)
}

/// The statement that takes what is meant, for the process `$1`, for `$2` milliseconds; see [`taken`].
fn claim(what: Due) -> Statement {
    query(match what {
        Due::Now => concat!(
            "UPDATE directives SET status = 'running', attempt = attempt + 1, token = token + 1, lease_owner = $1,
                 lease_until = @now + $2, sent_at = NULL, started_at = COALESCE(started_at, @now), updated_at = @now
             WHERE id @among SELECT id FROM directives
                 WHERE status = 'requested' AND due_at <= @now AND runs_as = 'service' AND name @one_of($4)
                 ORDER BY due_at, id LIMIT CAST($3 AS BIGINT) @skip_locked @end_among
             RETURNING ",
            directive_columns!()
        ),
        Due::This(_) => concat!(
            "UPDATE directives SET status = 'running', attempt = attempt + 1, token = token + 1, lease_owner = $1,
                 lease_until = @now + $2, sent_at = NULL, started_at = COALESCE(started_at, @now), updated_at = @now
             WHERE id = $3 AND status = 'requested' RETURNING ",
            directive_columns!()
        ),
        Due::Abandoned => concat!(
            "UPDATE directives SET token = token + 1, lease_owner = $1, lease_until = @now + $2
             WHERE id @among ",
            abandoned!("$4", "$5"),
            " ORDER BY lease_until LIMIT CAST($3 AS BIGINT) @skip_locked @end_among
             RETURNING ",
            directive_columns!()
        ),
    })
}

/// The third parameter of [`claim`]: which one, or how many.
fn taken(what: Due, most: u32) -> String {
    match what {
        Due::This(id) => id.to_string(),
        Due::Now | Due::Abandoned => most.to_string(),
    }
}

fn end(directive: &mut Directive, status: DirectiveStatus, now: i64) {
    (directive.status, directive.completed_at_ms) = (status, Some(now));
}

/// Their directives, as a list in a parameter.
fn ids(fences: &[Fence]) -> Result<String, RecordError> {
    let ids: Vec<String> = fences.iter().map(|fence| fence.id.to_string()).collect();
    serde_json::to_string(&ids).map_err(RecordError::json("list"))
}

/// What a signal says of an error.
fn said(error: &DirectiveError) -> Map<String, Value> {
    let told = json!({"code": error.code.name(), "message": error.message});
    Map::from_iter([("error".to_owned(), told)])
}

/// The signal of the domain as the directive's.
fn of_directive(signal: &SignalFact, directive: &Directive, scope: &Scope) -> SignalFact {
    let subject = signal.subject.clone().or_else(|| directive.subject.clone());
    let about = subject.as_ref().map(|subject| subject.id.as_str()).unwrap_or_default();
    SignalFact {
        correlation: Some(directive.correlation.clone()),
        causation: Some(directive.id.to_string()),
        actor: Some(directive.owner.user.clone()),
        dedupe_key: Some(format!("{}:{}:{about}:{}", signal.name, scope.tenant(), directive.id)),
        subject,
        ..signal.clone()
    }
}
