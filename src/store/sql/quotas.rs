//! How much is kept for users and tenants, in SQL. The database counts it by itself, in triggers (`stored_usage`), so
//! that no writer of a row has to: neither a program of another version, nor a cascade.

use async_trait::async_trait;

use super::SqlStore;
use crate::agent::ports::conversations::{
    ExportAt, ExportError, ExportPart, ExportStore, PageError, TranscriptAt, TranscriptPart,
};
use crate::agent::ports::quotas::{OverQuota, Quotas, Whose};
use crate::bounded::memory::Reservation;
use crate::chat::caller::Owner;
use crate::chat::ids::ConversationId;
use crate::store::database::{Connection, take_turns};
use crate::store::fault::{Undone, attempt};
use crate::store::record::column;
use crate::store::scope::{Reach, Scope};
use crate::store::statement::query;

#[async_trait]
impl ExportStore for SqlStore {
    async fn take_export(&self, owner: &Owner, quotas: &Quotas) -> Result<(), ExportError> {
        attempt("count an export", self.try_take_export(&owner.into(), quotas)).await
    }

    async fn export(
        &self,
        owner: &Owner,
        id: &ConversationId,
        at: ExportAt,
        held: &mut Reservation,
    ) -> Result<Option<ExportPart>, PageError> {
        attempt("export a conversation", self.try_export(&owner.into(), id, at, held)).await
    }

    async fn transcript(
        &self,
        owner: &Owner,
        id: &ConversationId,
        at: Option<TranscriptAt>,
        held: &mut Reservation,
    ) -> Result<Option<TranscriptPart>, PageError> {
        attempt("read a transcript", self.try_transcript(&owner.into(), id, at, held)).await
    }
}

impl SqlStore {
    async fn try_take_export(&self, scope: &Scope, quotas: &Quotas) -> Result<(), Undone<ExportError>> {
        let refused = |whose| Undone::Refused(OverQuota::Exports(whose).into());
        let Quotas { exports_per_user_day: of_user, exports_per_tenant_day: of_tenant, .. } = *quotas;
        if of_user == 0 && of_tenant == 0 {
            return Ok(());
        }
        let mut transaction = self.database.write(Reach::Tenant(scope)).await?;
        if of_tenant != 0 && scope.names_tenant() {
            // A count waits until the transaction that counted before has committed.
            take_turns(&mut transaction, "exports", &scope.of_all()).await?;
            let made: i64 = query(
                "SELECT CAST(COALESCE(SUM(exports), 0) AS BIGINT) FROM stored_usage
                 WHERE tenant = $1 AND export_day = @now / 86400000",
            )
            .bind(scope.tenant())
            .fetch_value(&mut transaction)
            .await?;
            if made >= column(of_tenant) {
                return Err(refused(Whose::Tenant));
            }
        }
        let taken = query(
            "INSERT INTO stored_usage (tenant, user_id, export_day, exports) VALUES ($1, $2, @now / 86400000, 1)
             ON CONFLICT (tenant, user_id) DO UPDATE SET
                 exports = CASE WHEN stored_usage.export_day = excluded.export_day THEN stored_usage.exports + 1 ELSE 1 END,
                 export_day = excluded.export_day
             WHERE $3 = 0 OR stored_usage.export_day <> excluded.export_day OR stored_usage.exports < $3",
        )
        .bind((scope, column(of_user)))
        .execute(&mut transaction)
        .await?;
        if taken == 0 {
            return Err(refused(Whose::User));
        }
        transaction.commit().await?;
        Ok(())
    }
}

/// The user's quota that is used up for one more run, if one is: they keep so many bytes and conversations, the run's own among
/// them or not.
pub(super) fn over_quota_of_user(quotas: &Quotas, kept: (i64, i64), is_there: bool) -> Option<OverQuota> {
    over((quotas.bytes_per_user, quotas.conversations_per_user), kept, is_there, Whose::User)
}

/// The tenant's quota that is used up for one more run, if one is.
///
/// # Errors
/// When it cannot be read.
pub(super) async fn over_quota_of_tenant(
    connection: &mut dyn Connection,
    scope: &Scope,
    quotas: &Quotas,
    is_there: bool,
) -> Result<Option<OverQuota>, sqlx::Error> {
    let of_tenant = (quotas.bytes_per_tenant, quotas.conversations_per_tenant);
    if of_tenant == (0, 0) || !scope.names_tenant() {
        return Ok(None);
    }
    let kept = query(
        "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT), CAST(COALESCE(SUM(conversations), 0) AS BIGINT)
         FROM stored_usage WHERE tenant = $1",
    )
    .bind(scope.tenant())
    .fetch_one(connection)
    .await?;
    Ok(over(of_tenant, kept, is_there, Whose::Tenant))
}

/// A conversation that is there goes on, however many there are.
fn over((bytes, conversations): (u64, u64), kept: (i64, i64), is_there: bool, whose: Whose) -> Option<OverQuota> {
    let is_over = |most: u64, kept: i64| most != 0 && kept >= column(most);
    match (is_over(bytes, kept.0), is_over(conversations, kept.1)) {
        (true, _) => Some(OverQuota::Bytes(whose)),
        (false, true) if !is_there => Some(OverQuota::Conversations(whose)),
        (false, _) => None,
    }
}
