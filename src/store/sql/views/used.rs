//! What the runs of conversations have used.

use super::heads::titles_of;
use super::{SqlStore, SumRow};
use crate::agent::ports::usage::{Used, UsedInConversation};
use crate::chat::day::Days;
use crate::chat::ids::ConversationId;
use crate::store::database::Connection;
use crate::store::fault::Fault;
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope};
use crate::store::statement::query;

/// The sums of a group of runs.
macro_rules! run_sums {
    () => {
        "CAST(COUNT(*) AS BIGINT) AS runs, CAST(COALESCE(SUM(turns), 0) AS BIGINT) AS turns,
         CAST(COALESCE(SUM(input_tokens), 0) AS BIGINT) AS input_tokens,
         CAST(COALESCE(SUM(output_tokens), 0) AS BIGINT) AS output_tokens,
         CAST(COALESCE(SUM(cached_input_tokens), 0) AS BIGINT) AS cached_input_tokens,
         CAST(COALESCE(SUM(nano_usd), 0) AS BIGINT) AS nano_usd"
    };
}

/// What all runs of a conversation have used.
pub(super) async fn used_by_runs(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &ConversationId,
) -> Result<Used, sqlx::Error> {
    let row: SumRow =
        query(concat!("SELECT ", run_sums!(), " FROM runs WHERE tenant = $1 AND user_id = $2 AND conversation = $3"))
            .bind((scope, id.as_str()))
            .fetch_one(connection)
            .await?;
    Ok(row.into())
}

#[derive(sqlx::FromRow)]
struct ConversationSumRow {
    conversation: String,
    #[sqlx(flatten)]
    sum: SumRow,
}

impl SqlStore {
    pub(in crate::store::sql) async fn try_used_by_conversation(
        &self,
        scope: &Scope,
        days: Days,
        most: u32,
    ) -> Result<Vec<UsedInConversation>, Fault> {
        let mut transaction = self.database.read(Reach::User(scope)).await?;
        let rows: Vec<ConversationSumRow> = query(concat!(
            "SELECT conversation, ",
            run_sums!(),
            " FROM runs WHERE tenant = $1 AND user_id = $2 AND started_at >= $3 AND started_at < $4
                 AND EXISTS (SELECT 1 FROM conversations c WHERE c.tenant = $1 AND c.user_id = $2
                     AND c.id = runs.conversation AND c.unlisted = 0 AND c.updated_at >= $3)
             GROUP BY conversation ORDER BY COALESCE(SUM(nano_usd), 0) DESC, SUM(input_tokens + output_tokens) DESC, conversation
             LIMIT $5",
        ))
        .bind((scope, days.from.begins_ms(), days.to.plus(1).begins_ms(), i64::from(most)))
        .fetch_all(&mut transaction)
        .await?;
        let ids: Vec<&str> = rows.iter().map(|row| row.conversation.as_str()).collect();
        let mut titles = titles_of(&mut transaction, scope, &ids).await?;
        let mut used = Vec::with_capacity(rows.len());
        for ConversationSumRow { conversation, sum } in rows {
            if let Some(title) = titles.remove(&conversation) {
                let conversation = ConversationId::parse(&conversation).map_err(RecordError::from)?;
                used.push(UsedInConversation { conversation, title, used: sum.into() });
            }
        }
        Ok(used)
    }
}
