//! Previews in SQL: pending, claimed while it is being decided, sending while a save is under way, then accepted,
//! rejected, or superseded by a newer one, for good.
//!
//! **Invariant:** the database's time decides, and the token of a claim, which grows with each: only its holder goes
//! on. Rows of the version before this one have neither an end nor a subject, and their claims are known by their time
//! alone.

use async_trait::async_trait;

use super::{SqlStore, audit};
use crate::agent::ports::previews::{
    ClaimError, ClaimToken, Claimed, NewPreview, PreviewClaims, PreviewStore, RecordError as NotRecorded,
    WaitingPreview,
};
use crate::agent::ports::store_error::StoreError;
use crate::chat::audit::{Act, Fact};
use crate::chat::caller::Owner;
use crate::chat::digest::sha256_hex;
use crate::chat::fate::CallFate;
use crate::chat::ids::{ConversationId, PreviewId};
use crate::chat::preview::{Base, Change, Decided, Origin, Preview, Verdict};
use crate::chat::trail::TrailEvent;
use crate::store::change::{
    decode_change, decode_current, decode_decided, encode_change, encode_current, encode_decided, subject,
};
use crate::store::database::{Connection, take_turns};
use crate::store::fault::{Fault, Undone, attempt};
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope, original, storable};
use crate::store::statement::{Batch, query};
use crate::store::trail::encode_entry;

/// A claim's life in milliseconds: a minute, the port's promise.
const CLAIM_MS: i64 = 60 * 1000;

/// A preview's life in milliseconds where its row does not say: a day.
const LIFE_MS: i64 = 24 * 3600 * 1000;

/// How long a late decision gets an answer that says so, in milliseconds: a day. Then the row goes.
const KEPT_MS: i64 = 24 * 3600 * 1000;

/// Rows that one tidying removes.
const REMOVED_AT_ONCE: i64 = 500;

/// How many accepted changes are read: more than a conversation's tools look back on.
const ACCEPTED_AT_ONCE: i64 = 50;

/// How many previews that wait are listed: the port's promise.
const WAITING_LISTED: i64 = 100;

#[async_trait]
impl PreviewStore for SqlStore {
    async fn record_preview(&self, new: NewPreview<'_>) -> Result<PreviewId, NotRecorded> {
        attempt("record a preview", self.try_record_preview(new)).await
    }

    async fn accepted_changes(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
    ) -> Result<Vec<(Change, Decided)>, StoreError> {
        attempt("read accepted changes", self.try_accepted_changes(&owner.into(), conversation)).await
    }
}

#[async_trait]
impl PreviewClaims for SqlStore {
    async fn claim_preview(&self, owner: &Owner, id: PreviewId) -> Result<Claimed, ClaimError> {
        attempt("claim a preview", self.try_claim_preview(&owner.into(), id)).await
    }

    async fn begin_save(&self, owner: &Owner, id: PreviewId, token: ClaimToken) -> Result<(), ClaimError> {
        attempt("begin a save", self.try_begin_save(&owner.into(), id, token)).await
    }

    async fn settle_preview(
        &self,
        owner: &Owner,
        id: PreviewId,
        token: ClaimToken,
        decided: &Decided,
    ) -> Result<(), ClaimError> {
        attempt("settle a preview", self.try_settle_preview(&owner.into(), id, token, decided)).await
    }

    async fn release_preview(&self, owner: &Owner, id: PreviewId, token: ClaimToken) -> Result<(), StoreError> {
        attempt("release a preview", self.try_release_preview(&owner.into(), id, token)).await
    }

    async fn waiting_previews(&self, owner: &Owner, id: Option<PreviewId>) -> Result<Vec<WaitingPreview>, StoreError> {
        attempt("list previews", self.try_waiting_previews(&owner.into(), id)).await
    }
}

/// The row of a claim.
#[derive(sqlx::FromRow)]
struct ClaimedRow {
    conversation: String,
    change: String,
    claim_token: i64,
    sends: i64,
    #[sqlx(flatten)]
    origin: OriginRow,
    reader: Option<String>,
    base_digest: Option<String>,
}

/// Who made it.
#[derive(sqlx::FromRow)]
struct OriginRow {
    context_type: Option<String>,
    tool: Option<String>,
}

/// A preview that waits.
#[derive(sqlx::FromRow)]
struct WaitingRow {
    id: String,
    conversation: String,
    change: String,
    current: Option<String>,
    sends: i64,
    #[sqlx(flatten)]
    origin: OriginRow,
    created_at: i64,
    expires_at: i64,
}

impl From<OriginRow> for Origin {
    fn from(row: OriginRow) -> Self {
        let own = |text: Option<String>| text.map(|text| original(&text).into_owned());
        Self { context_type: own(row.context_type), tool: own(row.tool) }
    }
}

/// The database's time, in milliseconds. Read first in a transaction: what is waited for afterwards makes it only older, so that
/// nothing is taken too early.
async fn database_now(connection: &mut dyn Connection) -> Result<i64, sqlx::Error> {
    query("SELECT @now").fetch_value(connection).await
}

impl SqlStore {
    async fn try_record_preview(&self, new: NewPreview<'_>) -> Result<PreviewId, Undone<NotRecorded>> {
        let id = PreviewId::fresh();
        let scope = Scope::from(new.owner);
        let (current, change, subject) = (encode_current(new.change), encode_change(new.change)?, subject(new.change));
        let made = Fact {
            subject: Some(id.to_string()),
            arguments: Some(sent(new.change)),
            ..by_user(Act::PreviewMade, &scope)
        };
        let mut transaction = self.database.write(Reach::User(&scope)).await?;
        take_turns(&mut transaction, "previews", &scope).await?;
        let now = database_now(&mut transaction).await?;
        query(
            "UPDATE previews SET state = 'superseded', claimed_at = NULL, decided_at = $5
             WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND subject = $4
                 AND (state = 'pending' OR (state IN ('claimed', 'sending') AND claimed_at < $6))",
        )
        .bind((&scope, new.conversation.as_str(), &subject, now, now.saturating_sub(CLAIM_MS)))
        .execute(&mut transaction)
        .await?;
        let waiting: i64 = query(
            "SELECT COUNT(*) FROM previews
             WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND state IN ('pending', 'claimed', 'sending')
                 AND COALESCE(expires_at, created_at + $4) > $5",
        )
        .bind((&scope, new.conversation.as_str(), LIFE_MS, now))
        .fetch_value(&mut transaction)
        .await?;
        if new.most != 0 && usize::try_from(waiting).is_ok_and(|waiting| waiting >= new.most) {
            return Err(Undone::Refused(NotRecorded::Full));
        }
        query(
            "INSERT INTO previews (id, tenant, user_id, conversation, change, state, created_at, current,
                 context_type, tool, subject, reader, base_digest, expires_at)
             VALUES ($1, $2, $3, $4, $5, 'pending', $6, $7,
                 (SELECT NULLIF(context_type, '') FROM runs WHERE tenant = $2 AND user_id = $3 AND id = $8),
                 $9, $10, $11, $12, $13)",
        )
        .bind((
            id.to_string(),
            &scope,
            new.conversation.as_str(),
            change,
            self.clock.now_ms(),
            current,
            new.run.to_string(),
            storable(new.tool),
            subject,
            storable(&new.base.reader),
            new.base.digest.as_ref(),
            now.saturating_add(new.life_ms),
        ))
        .execute(&mut transaction)
        .await?;
        let mut batch = Batch::default();
        audit::tell(&mut batch, &scope, made.within(new.conversation));
        batch.commit(transaction).await?;
        Ok(id)
    }

    async fn try_claim_preview(&self, scope: &Scope, id: PreviewId) -> Result<Claimed, Undone<ClaimError>> {
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        let now = database_now(&mut transaction).await?;
        let claimed: Option<ClaimedRow> = query(
            "UPDATE previews SET state = 'claimed', claimed_at = $1, claim_token = claim_token + 1
             WHERE tenant = $2 AND user_id = $3 AND id = $4 AND COALESCE(expires_at, created_at + $5) > $1
                 AND (state = 'pending' OR (state IN ('claimed', 'sending') AND claimed_at < $6))
             RETURNING conversation, change, claim_token, sends, context_type, tool, reader, base_digest",
        )
        .bind((now, scope, id.to_string(), LIFE_MS, now.saturating_sub(CLAIM_MS)))
        .fetch_optional(&mut transaction)
        .await?;
        let Some(row) = claimed else { return Err(Undone::Refused(why_not(&mut transaction, scope, id, now).await?)) };
        let conversation = ConversationId::parse(&row.conversation).map_err(RecordError::from)?;
        let change = decode_change(&row.change)?;
        let base = row.reader.map(|reader| Base { reader: original(&reader).into_owned(), digest: row.base_digest });
        let claimed = Claimed {
            preview: Preview { id, conversation, change },
            token: ClaimToken(row.claim_token),
            base,
            origin: row.origin.into(),
            may_be_saved: row.sends > 0,
        };
        transaction.commit().await?;
        Ok(claimed)
    }

    /// While the claim is still that of `token`: the save goes out under it then, and it lasts another minute.
    async fn try_begin_save(&self, scope: &Scope, id: PreviewId, token: ClaimToken) -> Result<(), Undone<ClaimError>> {
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        let now = database_now(&mut transaction).await?;
        let begun: Option<String> = query(
            "UPDATE previews SET state = 'sending', claimed_at = $1, sends = sends + 1
             WHERE tenant = $2 AND user_id = $3 AND id = $4 AND state = 'claimed' AND claim_token = $5 AND claimed_at >= $6
             RETURNING conversation",
        )
        .bind((now, scope, id.to_string(), token.0, now.saturating_sub(CLAIM_MS)))
        .fetch_optional_value(&mut transaction)
        .await?;
        let Some(conversation) = begun else { return Err(Undone::Refused(ClaimError::Lost)) };
        let mut batch = Batch::default();
        let accepted = Fact { subject: Some(id.to_string()), ..by_user(Act::PreviewAccepted, scope) };
        audit::tell(&mut batch, scope, Fact { conversation: Some(&conversation), ..accepted });
        batch.commit(transaction).await?;
        Ok(())
    }

    /// Ends a claim with a decision, if it is still that of `token`. A decision that is there already may be written again, so
    /// that whoever did not hear of its commit can repeat it.
    async fn try_settle_preview(
        &self,
        scope: &Scope,
        id: PreviewId,
        token: ClaimToken,
        decided: &Decided,
    ) -> Result<(), Undone<ClaimError>> {
        let decision = encode_decided(decided)?;
        let state = match decided.verdict {
            Verdict::Accept => "accepted",
            Verdict::Reject => "rejected",
        };
        let what = TrailEvent::PreviewDecided(decided.clone());
        let entry = encode_entry(&what)?;
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        let now = database_now(&mut transaction).await?;
        // Of a conversation's decisions each is later than the one before it, whatever the clock does: the newest one counts.
        let settled: Option<String> = query(
            "UPDATE previews SET state = $1, decision = $2, claimed_at = NULL, decided_at = (
                 SELECT CASE WHEN MAX(p.decided_at) >= $3 THEN MAX(p.decided_at) + 1 ELSE $3 END FROM previews p
                 WHERE p.tenant = $4 AND p.user_id = $5 AND p.conversation = previews.conversation)
             WHERE tenant = $4 AND user_id = $5 AND id = $6 AND state IN ('claimed', 'sending') AND claim_token = $7
             RETURNING conversation",
        )
        .bind((state, &decision, now, scope, id.to_string(), token.0))
        .fetch_optional_value(&mut transaction)
        .await?;
        let Some(conversation) = settled else {
            let same: i64 = query(
                "SELECT COUNT(*) FROM previews
                 WHERE tenant = $1 AND user_id = $2 AND id = $3 AND decision = $4 AND claim_token = $5",
            )
            .bind((scope, id.to_string(), &decision, token.0))
            .fetch_value(&mut transaction)
            .await?;
            return if same == 0 { Err(Undone::Refused(ClaimError::Lost)) } else { Ok(()) };
        };
        // A tool may keep a preview before the first message, and then there is no conversation yet.
        query(
            "INSERT INTO trail (tenant, user_id, conversation, at, kind, body)
             SELECT tenant, user_id, id, $4, $5, $6 FROM conversations WHERE tenant = $1 AND user_id = $2 AND id = $3",
        )
        .bind((scope, &conversation, self.clock.now_ms(), what.kind(), entry))
        .execute(&mut transaction)
        .await?;
        let (act, outcome) = match decided.verdict {
            Verdict::Accept => (Act::PreviewEnded, Some(CallFate::Done.name())),
            Verdict::Reject => (Act::PreviewRejected, None),
        };
        let fact = by_user(act, scope);
        let fact = Fact { conversation: Some(&conversation), subject: Some(id.to_string()), outcome, ..fact };
        let mut batch = Batch::default();
        audit::tell(&mut batch, scope, fact);
        batch.commit(transaction).await?;
        Ok(())
    }

    /// Ends a claim without a decision, and takes back what it noted as sent; a claim that has ended already stays ended.
    async fn try_release_preview(&self, scope: &Scope, id: PreviewId, token: ClaimToken) -> Result<(), Fault> {
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        let sent: Option<String> = query(
            "UPDATE previews SET state = 'pending', claimed_at = NULL, sends = sends - 1
             WHERE tenant = $1 AND user_id = $2 AND id = $3 AND state = 'sending' AND claim_token = $4
             RETURNING conversation",
        )
        .bind((scope, id.to_string(), token.0))
        .fetch_optional_value(&mut transaction)
        .await?;
        let Some(conversation) = sent else {
            query(
                "UPDATE previews SET state = 'pending', claimed_at = NULL
                 WHERE tenant = $1 AND user_id = $2 AND id = $3 AND state = 'claimed' AND claim_token = $4",
            )
            .bind((scope, id.to_string(), token.0))
            .execute(&mut transaction)
            .await?;
            transaction.commit().await?;
            return Ok(());
        };
        let mut batch = Batch::default();
        let outcome = Some(CallFate::Failed.name());
        let ended = Fact { subject: Some(id.to_string()), outcome, ..by_user(Act::PreviewEnded, scope) };
        audit::tell(&mut batch, scope, Fact { conversation: Some(&conversation), ..ended });
        batch.commit(transaction).await?;
        Ok(())
    }

    /// One that is just being decided waits until it is decided. What is changed is read for one alone: of a hundred it could
    /// be more than memory should hold.
    async fn try_waiting_previews(&self, scope: &Scope, id: Option<PreviewId>) -> Result<Vec<WaitingPreview>, Fault> {
        let rows: Vec<WaitingRow> = query(
            "SELECT id, conversation, change, sends, context_type, tool, created_at,
                 COALESCE(expires_at, created_at + $5) AS expires_at,
                 CASE WHEN CAST($3 AS TEXT) IS NULL THEN NULL ELSE current END AS current
             FROM previews
             WHERE tenant = $1 AND user_id = $2 AND state IN ('pending', 'claimed', 'sending')
                 AND (CAST($3 AS TEXT) IS NULL OR id = $3) AND COALESCE(expires_at, created_at + $5) > @now
             ORDER BY created_at DESC, id DESC LIMIT $4",
        )
        .bind((scope, id.map(|id| id.to_string()), WAITING_LISTED, LIFE_MS))
        .fetch_all(&mut self.database.reading(Reach::User(scope)).await?)
        .await?;
        let waiting = |row: WaitingRow| {
            let id = PreviewId::parse(&row.id).map_err(RecordError::from)?;
            let conversation = ConversationId::parse(&row.conversation).map_err(RecordError::from)?;
            let current = row.current.as_deref().map(decode_current).transpose()?;
            let change = Change { current, ..decode_change(&row.change)? };
            Ok(WaitingPreview {
                preview: Preview { id, conversation, change },
                origin: row.origin.into(),
                may_be_saved: row.sends > 0,
                created_at_ms: row.created_at,
                expires_at_ms: row.expires_at,
            })
        };
        rows.into_iter().map(waiting).collect()
    }

    /// Removes previews that cannot be decided any more, a day after that; whether there may be more. Names no owner:
    /// it looks at nothing but the time.
    pub(super) async fn try_remove_previews(&self) -> Result<bool, Fault> {
        let mut transaction = self.database.write(Reach::All).await?;
        let now = database_now(&mut transaction).await?;
        let removed = query(
            "DELETE FROM previews WHERE id IN (
                 SELECT id FROM previews
                 WHERE state IN ('pending', 'claimed', 'sending', 'superseded') AND COALESCE(expires_at, created_at + $2) < $1
                 LIMIT $3 @skip_locked)",
        )
        .bind((now.saturating_sub(KEPT_MS), LIFE_MS, REMOVED_AT_ONCE))
        .execute(&mut transaction)
        .await?;
        transaction.commit().await?;
        Ok(removed >= REMOVED_AT_ONCE.unsigned_abs())
    }

    async fn try_accepted_changes(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
    ) -> Result<Vec<(Change, Decided)>, Fault> {
        let rows: Vec<(String, String)> = query(
            "SELECT change, decision FROM previews
             WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND state = 'accepted'
             ORDER BY decided_at DESC, id DESC LIMIT $4",
        )
        .bind((scope, conversation.as_str(), ACCEPTED_AT_ONCE))
        .fetch_all(&mut self.database.reading(Reach::User(scope)).await?)
        .await?;
        rows.iter().map(|(change, decision)| Ok((decode_change(change)?, decode_decided(decision)?))).collect()
    }
}

/// Why a preview could not be claimed.
async fn why_not(connection: &mut dyn Connection, scope: &Scope, id: PreviewId, now: i64) -> Result<ClaimError, Fault> {
    let row: Option<(String, i64)> = query(
        "SELECT state, COALESCE(expires_at, created_at + $4) FROM previews WHERE tenant = $1 AND user_id = $2 AND id = $3",
    )
    .bind((scope, id.to_string(), LIFE_MS))
    .fetch_optional(connection)
    .await?;
    Ok(match row {
        None => ClaimError::NotFound,
        Some((state, _)) if state == "superseded" => ClaimError::Superseded,
        Some((state, _)) if state == "accepted" || state == "rejected" => ClaimError::AlreadyDecided,
        Some((_, expires_at)) if expires_at <= now => ClaimError::Expired,
        Some(_) => ClaimError::AlreadyDecided,
    })
}

/// An act of the owner.
fn by_user(act: Act, scope: &Scope) -> Fact<'_> {
    Fact::new(act, scope.user(), scope.user())
}

/// A digest of what saving the change sends.
fn sent(change: &Change) -> String {
    sha256_hex(change.body.to_string().as_bytes())
}
