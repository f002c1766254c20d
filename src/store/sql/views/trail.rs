//! The trail of a conversation, as it was kept.

use serde_json::value::RawValue;

use super::SqlStore;
use crate::agent::ports::conversations::{Paged, TrailItem};
use crate::chat::ids::{ConversationId, RunId};
use crate::store::database::Connection;
use crate::store::fault::Fault;
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope};
use crate::store::statement::query;

/// An entry: its number among all, time, kind, run, body.
pub(super) type Row = (i64, i64, String, Option<String>, String);

impl SqlStore {
    pub(super) async fn try_trail(
        &self,
        scope: &Scope,
        id: &ConversationId,
        after: i64,
        limit: u32,
    ) -> Result<Option<Paged<TrailItem>>, Fault> {
        let mut transaction = self.database.read(Reach::User(scope)).await?;
        let there: i64 = query("SELECT COUNT(*) FROM conversations WHERE tenant = $1 AND user_id = $2 AND id = $3")
            .bind((scope, id.as_str()))
            .fetch_value(&mut transaction)
            .await?;
        if there == 0 {
            return Ok(None);
        }
        let mut rows = rows(&mut transaction, scope, id, after, i64::from(limit) + 1).await?;
        let has_more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let next = rows.last().filter(|_| has_more).map(|(id, ..)| id.to_string());
        let items = rows.into_iter().map(item).collect::<Result<_, _>>()?;
        Ok(Some(Paged { items, next }))
    }
}

async fn rows(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &ConversationId,
    after: i64,
    limit: i64,
) -> Result<Vec<Row>, sqlx::Error> {
    query(
        "SELECT id, at, kind, run_id, body FROM trail
         WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND id > $4 ORDER BY id LIMIT $5",
    )
    .bind((scope, id.as_str(), after, limit))
    .fetch_all(connection)
    .await
}

/// The entry of a row.
///
/// # Errors
/// When it is not what we write.
pub(super) fn item((_, at_ms, kind, run, body): Row) -> Result<TrailItem, Fault> {
    let run = run.map(|run| RunId::parse(&run)).transpose().map_err(RecordError::from)?;
    let body = RawValue::from_string(body).map_err(RecordError::json("trail entry"))?;
    Ok(TrailItem { at_ms, kind, run, body })
}
