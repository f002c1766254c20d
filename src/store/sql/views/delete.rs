//! Deleting a conversation with everything of it.

use super::SqlStore;
use crate::chat::ids::{ConversationId, RunId};
use crate::store::database::Connection;
use crate::store::fault::Fault;
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope};
use crate::store::sql::files::delete_unused;
use crate::store::statement::query;

/// Conversations that one tidying deletes: a fraction of a second's work.
const UNLISTED_AT_ONCE: usize = 100;

impl SqlStore {
    pub(super) async fn try_delete(&self, scope: &Scope, id: &ConversationId) -> Result<Option<Vec<RunId>>, Fault> {
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        // Held from here on: no run begins any more.
        let found: Option<String> =
            query("SELECT id FROM conversations WHERE tenant = $1 AND user_id = $2 AND id = $3 @for_update")
                .bind((scope, id.as_str()))
                .fetch_optional_value(&mut transaction)
                .await?;
        if found.is_none() {
            let unused = query(
                "DELETE FROM conversation_state WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND unused = 1",
            );
            let gone = unused.bind((scope, id.as_str())).execute(&mut transaction).await?;
            transaction.commit().await?;
            return Ok((gone != 0).then(Vec::new));
        }
        let runs = delete_held(&mut transaction, scope, id.as_str()).await?;
        transaction.commit().await?;
        self.database.forget_deleted().await;
        let runs = runs.iter().map(|run| RunId::parse(run)).collect::<Result<_, _>>();
        Ok(Some(runs.map_err(RecordError::from)?))
    }

    /// Deletes conversations that no list shows and in which nothing has begun since `before_ms` and nothing lives, some
    /// of them; whether there are more. Names no owner: it looks at nothing but the time.
    pub(in crate::store) async fn try_delete_unlisted(&self, before_ms: i64) -> Result<bool, Fault> {
        let old: Vec<(String, String, String)> = query(
            "SELECT tenant, user_id, id FROM conversations WHERE unlisted = 1 AND updated_at < $1 ORDER BY updated_at LIMIT $2",
        )
        .bind((before_ms, UNLISTED_AT_ONCE as i64))
        .fetch_all(&mut self.database.reading(Reach::All).await?)
        .await?;
        let (found_old, mut deleted) = (old.len(), 0);
        for (tenant, user, id) in old {
            let scope = Scope::of_row(tenant, user);
            let mut transaction = self.database.write(Reach::User(&scope)).await?;
            // There may be a new message meanwhile; a holder of the row is not waited for.
            let found: Option<String> = query(
                "SELECT id FROM conversations c WHERE tenant = $1 AND user_id = $2 AND id = $3 AND updated_at < $4
                     AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.tenant = c.tenant AND r.user_id = c.user_id
                         AND r.conversation = c.id AND r.state IN ('queued', 'running')) @skip_locked",
            )
            .bind((&scope, &id, before_ms))
            .fetch_optional_value(&mut transaction)
            .await?;
            if found.is_some() {
                delete_held(&mut transaction, &scope, &id).await?;
                transaction.commit().await?;
                deleted += 1;
            }
        }
        // What could not be deleted now comes again with the next tidying.
        Ok(found_old == UNLISTED_AT_ONCE && deleted > 0)
    }
}

/// Deletes a conversation whose row is held, with everything of it; its runs.
async fn delete_held(connection: &mut dyn Connection, scope: &Scope, id: &str) -> Result<Vec<String>, Fault> {
    // Held before the conversation goes: whoever appends to one of them has it first and needs its conversation
    // afterwards.
    let runs: Vec<String> =
        query("SELECT id FROM runs WHERE tenant = $1 AND user_id = $2 AND conversation = $3 ORDER BY id @for_update")
            .bind((scope, id))
            .fetch_values(&mut *connection)
            .await?;
    for statement in [
        "DELETE FROM drafts WHERE tenant = $1 AND user_id = $2 AND conversation = $3",
        "DELETE FROM previews WHERE tenant = $1 AND user_id = $2 AND conversation = $3",
        "DELETE FROM conversation_state WHERE tenant = $1 AND user_id = $2 AND conversation = $3",
        "DELETE FROM feedback WHERE tenant = $1 AND user_id = $2 AND conversation = $3",
        "DELETE FROM search_texts WHERE tenant = $1 AND user_id = $2 AND conversation = $3",
        "DELETE FROM chats WHERE tenant = $1 AND user_id = $2 AND conversation = $3",
        // Before the conversation too: whoever decides one has it first and needs its conversation afterwards.
        "DELETE FROM approvals WHERE tenant = $1 AND user_id = $2 AND conversation = $3",
        // In one statement, which counts them once, and not run by run.
        "DELETE FROM messages WHERE tenant = $1 AND user_id = $2 AND conversation = $3",
        "DELETE FROM conversations WHERE tenant = $1 AND user_id = $2 AND id = $3",
    ] {
        query(statement).bind((scope, id)).execute(&mut *connection).await?;
    }
    // Its files, but for those that another one needs too, and those that have a time of their own.
    let unused: Vec<String> = query(
        "SELECT id FROM files WHERE tenant = $1 AND user_id = $2 AND used = 1 AND expires_at IS NULL
             AND NOT EXISTS (SELECT 1 FROM file_uses u WHERE u.tenant = files.tenant AND u.user_id = files.user_id
                 AND u.file_id = files.id) ORDER BY id @for_update",
    )
    .bind(scope)
    .fetch_values(&mut *connection)
    .await?;
    delete_unused(&mut *connection, unused).await?;
    Ok(runs)
}
