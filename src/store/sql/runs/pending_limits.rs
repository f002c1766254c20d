//! The limit of live runs, of a user and of their tenant.

use super::NotBegun;
use super::quotas::{over_quota_of_tenant, over_quota_of_user};
use super::{ConversationRow, SqlStore};
use crate::agent::ports::quotas::Quotas;
use crate::agent::ports::quotas::Whose;
use crate::agent::ports::store::{BeginError, MostRuns};
use crate::chat::caller::Owner;
use crate::chat::ids::ConversationId;
use crate::store::database::{Connection, take_turns};
use crate::store::scope::{Reach, Scope};
use crate::store::statement::query;

/// How many runs of the tenant live, and how many of those are the user's, but for those of the conversation `$3`. Each half has
/// an index that holds nothing but such runs.
macro_rules! live {
    () => {
        "SELECT COUNT(*) AS of_tenant, COUNT(CASE WHEN user_id = $2 THEN 1 END) AS of_user FROM (
             SELECT user_id FROM runs WHERE tenant = $1 AND state = 'running'
                 AND NOT (user_id = $2 AND conversation = $3) AND lease_until > @now
             UNION ALL
             SELECT user_id FROM runs WHERE tenant = $1 AND state = 'queued'
                 AND NOT (user_id = $2 AND conversation = $3) AND lease_until > @now) AS each_half"
    };
}

impl SqlStore {
    pub(super) async fn try_check_pending_limit(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        most: MostRuns,
        quotas: &Quotas,
    ) -> Result<(), NotBegun> {
        let conversation = ConversationRow { scope: Scope::from(owner), id: conversation.to_string() };
        let most = of_whom(&conversation.scope, most);
        if most == MostRuns::default() && *quotas == Quotas::default() {
            return Ok(());
        }
        let mut reading = self.database.reading(Reach::Tenant(&conversation.scope)).await?;
        // One statement for what is asked before each run.
        let standing: (i64, i64, i64, i64, i64) = query(concat!(
            "SELECT live.of_tenant, live.of_user, COALESCE(u.bytes, 0), COALESCE(u.conversations, 0),
                 (SELECT COUNT(*) FROM conversations c WHERE c.tenant = $1 AND c.user_id = $2 AND c.id = $3)
             FROM (",
            live!(),
            ") AS live LEFT JOIN stored_usage u ON u.tenant = $1 AND u.user_id = $2",
        ))
        .bind((&conversation.scope, &conversation.id))
        .fetch_one(&mut reading)
        .await?;
        let (of_tenant, of_user, bytes, conversations, is_there) = standing;
        if let Some(over) = over_quota_of_user(quotas, (bytes, conversations), is_there != 0) {
            return Err(NotBegun::Refused(over.into()));
        }
        if let Some(over) = over_quota_of_tenant(&mut reading, &conversation.scope, quotas, is_there != 0).await? {
            return Err(NotBegun::Refused(over.into()));
        }
        refuse_over(most, (of_tenant, of_user))
    }

    /// Whether its owner and their tenant may have one more run. A count waits until the transaction that counted
    /// before has committed. The transaction touches the user's rows, before and behind this.
    pub(super) async fn check_limits_in(
        &self,
        connection: &mut dyn Connection,
        conversation: &ConversationRow,
        most: MostRuns,
    ) -> Result<(), NotBegun> {
        let most = of_whom(&conversation.scope, most);
        if most == MostRuns::default() {
            return Ok(());
        }
        if most.per_tenant == 0 {
            take_turns(connection, "runs of a user", &conversation.scope).await?;
            return refuse_over(most, live(connection, &conversation.scope).await?);
        }
        take_turns(connection, "runs of a tenant", &conversation.scope.of_all()).await?;
        self.database.narrow(connection, Reach::Tenant(&conversation.scope)).await?;
        let live = live(connection, &conversation.scope).await?;
        self.database.narrow(connection, Reach::User(&conversation.scope)).await?;
        refuse_over(most, live)
    }
}

/// The part of `most` that counts for this owner.
fn of_whom(scope: &Scope, most: MostRuns) -> MostRuns {
    match scope.names_tenant() {
        true => most,
        false => MostRuns { per_tenant: 0, ..most },
    }
}

fn refuse_over(most: MostRuns, (of_tenant, of_user): (i64, i64)) -> Result<(), NotBegun> {
    let is_over = |most: u32, live: i64| most != 0 && live >= i64::from(most);
    let whose = match (is_over(most.per_user, of_user), is_over(most.per_tenant, of_tenant)) {
        (true, _) => Whose::User,
        (false, true) => Whose::Tenant,
        (false, false) => return Ok(()),
    };
    Err(NotBegun::Refused(BeginError::TooMany(whose)))
}

/// How many runs of the tenant live, and how many of those are the user's.
async fn live(connection: &mut dyn Connection, scope: &Scope) -> Result<(i64, i64), sqlx::Error> {
    query(live!()).bind((scope, "")).fetch_one(connection).await
}
