//! Deleting a conversation with everything of it.

use super::SqlStore;
use crate::chat::ids::{ConversationId, RunId};
use crate::store::fault::Fault;
use crate::store::scope::Scope;
use crate::store::transcript::RecordError;

impl SqlStore {
    pub(super) async fn try_delete(&self, scope: &Scope, id: &ConversationId) -> Result<Option<Vec<RunId>>, Fault> {
        let mut transaction = self.write().await?;
        // Held from here on: no run begins any more.
        let found: Option<String> = sqlx::query_scalar(concat!(
            "SELECT id FROM conversations WHERE tenant = $1 AND user_id = $2 AND id = $3",
            for_update!(),
        ))
        .bind(&scope.tenant)
        .bind(&scope.user)
        .bind(id.as_str())
        .fetch_optional(&mut *transaction)
        .await?;
        if found.is_none() {
            return Ok(None);
        }
        // Held before the conversation goes: whoever appends to one of them has it first and needs its conversation
        // afterwards.
        let runs: Vec<String> = sqlx::query_scalar(concat!(
            "SELECT id FROM runs WHERE tenant = $1 AND user_id = $2 AND conversation = $3 ORDER BY id",
            for_update!(),
        ))
        .bind(&scope.tenant)
        .bind(&scope.user)
        .bind(id.as_str())
        .fetch_all(&mut *transaction)
        .await?;
        for statement in [
            "DELETE FROM drafts WHERE tenant = $1 AND user_id = $2 AND conversation = $3",
            "DELETE FROM previews WHERE tenant = $1 AND user_id = $2 AND conversation = $3",
            "DELETE FROM chats WHERE tenant = $1 AND user_id = $2 AND conversation = $3",
            // Before the conversation too: whoever decides one has it first and needs its conversation afterwards.
            "DELETE FROM approvals WHERE tenant = $1 AND user_id = $2 AND conversation = $3",
            "DELETE FROM conversations WHERE tenant = $1 AND user_id = $2 AND id = $3",
        ] {
            sqlx::query(statement)
                .bind(&scope.tenant)
                .bind(&scope.user)
                .bind(id.as_str())
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        let runs = runs.iter().map(|run| RunId::parse(run)).collect::<Result<_, _>>();
        Ok(Some(runs.map_err(RecordError::from)?))
    }
}
