//! A directive is requested: found by its key or its live intent, or kept.

use super::super::SqlStore;
use super::super::signals::NewSignals;
use super::{Told, tell};
use crate::agent::ports::clock::ms;
use crate::agent::ports::directives::{
    CommandRule, LiveLimits, NewDirective, RequestError, RequestKey, Requested, Wanted,
};
use crate::chat::approval::Consent;
use crate::chat::caller::Owner;
use crate::chat::digest::sha256_hex;
use crate::chat::directive::{Directive, DirectiveApproval, DirectiveStatus};
use crate::chat::ids::{ConversationId, DirectiveId};
use crate::store::database::Connection;
use crate::store::directive::{DirectiveRow, directive_columns, encode_body};
use crate::store::fault::{Fault, Undone};
use crate::store::redact::a_secret;
use crate::store::scope::{Reach, Scope, storable};
use crate::store::statement::{Batch, query};

/// The longest intent that is kept as it is.
const INTENT_BYTES: usize = 512;

impl SqlStore {
    pub(super) async fn try_keep_directive(&self, new: NewDirective<'_>) -> Result<Requested, Undone<RequestError>> {
        let NewDirective { caller, wanted, rule, approval_ms, limits } = new;
        let scope = Scope::from(&caller.owner);
        if let Some(name) = a_secret(&wanted.prepared.payload) {
            return Err(Undone::Refused(RequestError::Secret(name)));
        }
        let request_key = wanted.key.as_ref().map(|key| (sha256_hex(key.as_kept().as_bytes()), key.asked().to_owned()));
        let mut transaction = self.database.write(Reach::Tenant(&scope)).await?;
        // Whoever else requests one in this tenant waits until this one is kept, and finds it then.
        let mut signals = NewSignals::hold(&mut transaction, [&scope]).await?;
        let now = signals.now_ms;
        if let Some((key, asked)) = &request_key
            && let Some((known, came_with)) = of_key(&mut transaction, &scope, key).await?
        {
            return match came_with == *asked {
                true => Ok(Requested { directive: known, created: false }),
                false => Err(Undone::Refused(RequestError::KeyMismatch)),
            };
        }
        if let Some(intent) = &wanted.prepared.intent
            && let Some(live) = of_intent(&mut transaction, &scope, rule, intent).await?
        {
            // The key stands for that one from now on, also when it is over.
            let mut batch = Batch::default();
            note_key(&mut batch, &scope, request_key.as_ref(), live.id);
            batch.commit(transaction).await?;
            return Ok(Requested { directive: live, created: false });
        }
        check_live(&mut transaction, &scope, limits).await?;
        let intent = wanted.prepared.intent.as_deref().map(kept_intent);
        let roles = caller.roles.clone();
        let directive = directive(caller.owner.clone(), roles, wanted, rule, (now, approval_ms));
        let approval = directive.approval.as_ref();
        let role = approval.and_then(|approval| match &approval.consent {
            Consent::Role { role, .. } => Some(storable(role).into_owned()),
            Consent::User | Consent::Auto => None,
        });
        let subject = directive.subject.as_ref();
        let mut batch = Batch::default();
        batch
            .change(
                "directives",
                "INSERT INTO directives (id, tenant, user_id, name, status, runs_as, conversation, subject_type, subject_id,
                     correlation, causation, intent, max_attempts, due_at, role, digest, expires_at, created_at, updated_at,
                     body)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $18, $19)",
            )
            .bind((directive.id.to_string(), &scope, directive.name.as_str(), directive.status.name()))
            .bind((directive.runs_as.name(), directive.conversation.as_ref().map(ConversationId::as_str)))
            .bind((
                subject.map(|subject| storable(&subject.kind)),
                subject.map(|subject| storable(&subject.id)),
                storable(&directive.correlation),
                directive.causation.as_deref().map(storable),
            ))
            .bind((intent, i64::from(directive.max_attempts), directive.due_at_ms))
            .bind((role, approval.map(|approval| approval.digest.as_str())))
            .bind((approval.map(|approval| approval.expires_at_ms), now, encode_body(&directive)?));
        note_key(&mut batch, &scope, request_key.as_ref(), directive.id);
        let told = Told::new("requested", &caller.owner.user);
        tell(&mut batch, (&self.subscriptions, &mut signals), &scope, &directive, told)?;
        signals.keep(&mut batch)?;
        batch.commit(transaction).await?;
        Ok(Requested { directive, created: true })
    }
}

/// The directive that is requested at the time `now`.
fn directive(
    owner: Owner,
    roles: Vec<String>,
    wanted: Wanted<'_>,
    rule: &CommandRule,
    (now, approval_ms): (i64, i64),
) -> Directive {
    let Wanted { name: _, prepared, correlation, call, is_approved, key, scheduled_at_ms } = wanted;
    let approval = match &rule.consent {
        Consent::Auto => None,
        Consent::User | Consent::Role { .. } if is_approved => None,
        consent @ (Consent::User | Consent::Role { .. }) => Some(DirectiveApproval {
            consent: consent.clone(),
            digest: prepared.digest,
            expires_at_ms: now.saturating_add(approval_ms),
            decided: None,
        }),
    };
    let delay_ms = ms(rule.delay);
    Directive {
        id: DirectiveId::fresh(),
        owner,
        name: rule.name.clone(),
        status: match approval {
            Some(_) => DirectiveStatus::PendingApproval,
            None => DirectiveStatus::Requested,
        },
        reason: None,
        runs_as: rule.runs_as,
        payload: prepared.payload,
        subject: prepared.subject,
        roles,
        correlation,
        causation: call.map(|(call, _)| call.as_str().to_owned()),
        conversation: call.map(|(_, conversation)| conversation.clone()),
        idempotency_key: key.and_then(|key| match key {
            RequestKey::Client { key, .. } => Some(key),
            RequestKey::Call(_) => None,
        }),
        attempt: 0,
        max_attempts: rule.max_attempts,
        created_at_ms: now,
        updated_at_ms: now,
        due_at_ms: scheduled_at_ms.unwrap_or(now).max(now.saturating_add(delay_ms)),
        started_at_ms: None,
        completed_at_ms: None,
        result: None,
        text: None,
        error: None,
        approval,
    }
}

/// Adds that this key, which came with that digest, stands for a directive from now on.
fn note_key(batch: &mut Batch, scope: &Scope, key: Option<&(String, String)>, id: DirectiveId) {
    let Some((key, asked)) = key else { return };
    batch
        .change(
            "directive_keys",
            "INSERT INTO directive_keys (tenant, user_id, request_key, came_with, directive_id)
             VALUES ($1, $2, $3, $4, $5)",
        )
        .bind((scope, key.as_str(), asked.as_str(), id.to_string()));
}

/// The directive for which the owner's key stands, with the digest of what it came with.
async fn of_key(
    connection: &mut dyn Connection,
    scope: &Scope,
    key: &str,
) -> Result<Option<(Directive, String)>, Fault> {
    #[derive(sqlx::FromRow)]
    struct Keyed {
        #[sqlx(flatten)]
        row: DirectiveRow,
        came_with: String,
    }
    let keyed: Option<Keyed> = query(concat!(
        "SELECT ",
        directive_columns!(),
        ", came_with FROM directives JOIN (
                 SELECT directive_id, came_with FROM directive_keys WHERE tenant = $1 AND user_id = $2 AND request_key = $3
             ) known ON known.directive_id = directives.id
             WHERE tenant = $1"
    ))
    .bind((scope, key))
    .fetch_optional(connection)
    .await?;
    keyed.map(|Keyed { row, came_with }| Ok((row.into_directive()?, came_with))).transpose()
}

/// An intent as it is kept: a long one by its digest, since an index takes no more than 2.7 KB.
fn kept_intent(intent: &str) -> String {
    match intent.len() <= INTENT_BYTES {
        true => storable(intent).into_owned(),
        false => format!("sha256:{}", sha256_hex(intent.as_bytes())),
    }
}

/// The tenant's live directive of that intent.
async fn of_intent(
    connection: &mut dyn Connection,
    scope: &Scope,
    rule: &CommandRule,
    intent: &str,
) -> Result<Option<Directive>, Fault> {
    let row: Option<DirectiveRow> = query(concat!(
        "SELECT ",
        directive_columns!(),
        " FROM directives WHERE tenant = $1 AND name = $2 AND intent = $3
             AND status IN ('pending_approval', 'requested', 'running')",
    ))
    .bind((scope.tenant(), rule.name.as_str(), kept_intent(intent)))
    .fetch_optional(connection)
    .await?;
    Ok(row.map(DirectiveRow::into_directive).transpose()?)
}

/// Checks that one more may be live.
async fn check_live(
    connection: &mut dyn Connection,
    scope: &Scope,
    LiveLimits { per_user, per_tenant }: LiveLimits,
) -> Result<(), Undone<RequestError>> {
    if per_user == 0 && per_tenant == 0 {
        return Ok(());
    }
    let (of_user, of_tenant): (i64, i64) = query(
        "SELECT CAST(COALESCE(SUM(CASE WHEN user_id = $2 THEN 1 ELSE 0 END), 0) AS BIGINT), COUNT(*) FROM directives
         WHERE tenant = $1 AND status IN ('pending_approval', 'requested', 'running')",
    )
    .bind(scope)
    .fetch_one(connection)
    .await?;
    let is_over = |most: u32, live: i64| most != 0 && live >= i64::from(most);
    match (is_over(per_user, of_user), is_over(per_tenant, of_tenant) && scope.names_tenant()) {
        (true, _) => Err(Undone::Refused(RequestError::TooMany("user"))),
        (false, true) => Err(Undone::Refused(RequestError::TooMany("tenant"))),
        (false, false) => Ok(()),
    }
}
