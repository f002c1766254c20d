//! The names of things in SQL: written with the end of a run, the newest of each conversation.

use async_trait::async_trait;
use serde_json::json;

use super::SqlStore;
use crate::agent::ports::names::{MOST_NAMES, Name, NameStore};
use crate::agent::ports::store_error::StoreError;
use crate::chat::caller::Owner;
use crate::chat::ids::ConversationId;
use crate::store::fault::{Fault, attempt};
use crate::store::scope::{Reach, Scope, original, storable};
use crate::store::statement::{Batch, query};

#[async_trait]
impl NameStore for SqlStore {
    async fn name_of(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        id: &str,
    ) -> Result<Option<String>, StoreError> {
        attempt("read a name", self.try_name_of(&owner.into(), conversation, id)).await
    }
}

impl SqlStore {
    async fn try_name_of(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
        id: &str,
    ) -> Result<Option<String>, Fault> {
        let name: Option<String> = query(
            "SELECT name FROM conversation_names
             WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND thing = $4",
        )
        .bind((scope, conversation.as_str(), storable(id)))
        .fetch_optional_value(&mut self.database.reading(Reach::User(scope)).await?)
        .await?;
        Ok(name.map(|name| original(&name).into_owned()))
    }
}

/// Keeps the names that a run has heard; of those of its conversation the oldest go. What was heard in the last hour is
/// not written again.
pub(super) fn keep_names(batch: &mut Batch, scope: &Scope, conversation: &str, names: &[Name], now: i64) {
    if names.is_empty() {
        return;
    }
    let row = |Name { id, name }: &Name| json!({"id": storable(id), "name": storable(name)});
    let rows: serde_json::Value = names.iter().map(row).collect();
    let insert = batch.say(
        "INSERT INTO conversation_names (tenant, user_id, conversation, noted_at, thing, name)
         SELECT $1, $2, $3, $4, n.id, n.name FROM @names($5) WHERE n.id IS NOT NULL
         ON CONFLICT (tenant, user_id, conversation, thing)
         DO UPDATE SET name = excluded.name, noted_at = excluded.noted_at
         WHERE conversation_names.name <> excluded.name OR conversation_names.noted_at < excluded.noted_at - 3600000",
    );
    insert.bind((scope, conversation, now, rows.to_string()));
    let most = i64::try_from(MOST_NAMES).unwrap_or(i64::MAX);
    // No run adds more than there may be.
    let prune = batch.say(
        "DELETE FROM conversation_names WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND thing IN (
             SELECT thing FROM conversation_names WHERE tenant = $1 AND user_id = $2 AND conversation = $3
             ORDER BY noted_at DESC, thing LIMIT $4 OFFSET $4)",
    );
    prune.bind((scope, conversation, most));
}
