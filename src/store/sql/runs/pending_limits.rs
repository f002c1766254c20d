//! Room for one more run: how many live already, of its user and of their tenant.

use super::not_begun::{NotBegun, split_fault};
use super::quotas::over_quota;
use super::{Connection, ConversationRow, SqlStore, take_turns};
use crate::agent::ports::quotas::Quotas;
use crate::agent::ports::quotas::Whose;
use crate::agent::ports::store::{BeginError, MostRuns};
use crate::chat::caller::Owner;
use crate::chat::ids::ConversationId;
use crate::store::fault::Fault;
use crate::store::scope::{BindScope, Reach, Scope};

impl SqlStore {
    pub(super) async fn try_check_pending_limit(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        most: MostRuns,
        quotas: &Quotas,
    ) -> Result<Result<(), BeginError>, Fault> {
        let place = ConversationRow { scope: Scope::from(owner), conversation: conversation.to_string() };
        let most = of_whom(&place.scope, most);
        if most == MostRuns::default() && *quotas == Quotas::default() {
            return Ok(Ok(()));
        }
        let mut reading = self.reading(Reach::Tenant(&place.scope)).await?;
        if let Some(over) = over_quota(&mut reading, &place.scope, &place.conversation, quotas).await? {
            return Ok(Err(over.into()));
        }
        if most == MostRuns::default() {
            return Ok(Ok(()));
        }
        let live = live(&mut reading, &place, &place.conversation).await?;
        split_fault(refuse_over(most, live))
    }

    /// Whether its owner and their tenant may have one more run. Whoever counts comes after whoever counted before has
    /// committed. The transaction touches the user's rows, before and behind this.
    pub(super) async fn has_room_in(
        &self,
        connection: &mut Connection,
        place: &ConversationRow,
        most: MostRuns,
    ) -> Result<(), NotBegun> {
        let most = of_whom(&place.scope, most);
        if most == MostRuns::default() {
            return Ok(());
        }
        if most.per_tenant == 0 {
            take_turns(connection, "runs of a user", &place.scope).await?;
            return refuse_over(most, live(connection, place, "").await?);
        }
        // A tenant without users stands for all of its users.
        let tenant = Scope::of_row(place.scope.tenant().to_owned(), String::new());
        take_turns(connection, "runs of a tenant", &tenant).await?;
        self.narrow(connection, Reach::Tenant(&place.scope)).await?;
        let live = live(connection, place, "").await?;
        self.narrow(connection, Reach::User(&place.scope)).await?;
        refuse_over(most, live)
    }
}

/// What of `most` counts for this owner. Those whose tokens name no tenant share one, which is the whole deployment: with a
/// bound of it, any of them could shut out all others.
fn of_whom(scope: &Scope, most: MostRuns) -> MostRuns {
    match scope.tenant().is_empty() {
        true => MostRuns { per_tenant: 0, ..most },
        false => most,
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

/// How many runs of the tenant live, and how many of those are the user's, but for those of the conversation `except`.
async fn live(connection: &mut Connection, place: &ConversationRow, except: &str) -> Result<(i64, i64), sqlx::Error> {
    sqlx::query_as(concat!(
        "SELECT COUNT(*), COUNT(CASE WHEN user_id = $2 THEN 1 END) FROM runs
         WHERE tenant = $1 AND state IN ('queued', 'running')
             AND NOT (user_id = $2 AND conversation = $3) AND lease_until > ",
        database_now!(),
    ))
    .bind_scope(&place.scope)
    .bind(except)
    .fetch_one(connection)
    .await
}
