//! Deleting a user: which conversations are theirs, and what there is beside them.

use async_trait::async_trait;

use super::{SqlStore, usage};
use crate::agent::ports::directives::{Access, Change, ChangeError};
use crate::agent::ports::store_error::StoreError;
use crate::agent::ports::users::{DeletedRest, UserStore};
use crate::chat::caller::{Caller, Owner};
use crate::chat::ids::{ConversationId, DirectiveId};
use crate::store::fault::{Fault, Undone, attempt};
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope};
use crate::store::statement::query;

/// Directives of one part that are cancelled: each is a transaction of its own.
const CANCELLED_AT_ONCE: usize = 100;

/// Directives of one part that are deleted: they go in one statement.
const DELETED_AT_ONCE: u64 = 1000;

#[async_trait]
impl UserStore for SqlStore {
    async fn conversations_of(&self, owner: &Owner, most: u32) -> Result<Vec<ConversationId>, StoreError> {
        attempt("look for a user's conversations", self.try_conversations_of(&owner.into(), most)).await
    }

    async fn delete_rest(&self, by: &Caller, owner: &Owner) -> Result<DeletedRest, StoreError> {
        attempt("delete a user", self.try_delete_rest(by, &owner.into())).await
    }
}

impl SqlStore {
    async fn try_conversations_of(&self, scope: &Scope, most: u32) -> Result<Vec<ConversationId>, Fault> {
        let ids: Vec<String> = query("SELECT id FROM conversations WHERE tenant = $1 AND user_id = $2 LIMIT $3")
            .bind((scope, i64::from(most)))
            .fetch_values(&mut self.database.reading(Reach::User(scope)).await?)
            .await?;
        Ok(ids.iter().map(|id| ConversationId::parse(id)).collect::<Result<_, _>>().map_err(RecordError::from)?)
    }

    async fn try_delete_rest(&self, by: &Caller, scope: &Scope) -> Result<DeletedRest, Fault> {
        let mut part = self.delete_directives(by, scope).await?;
        if !part.has_more {
            part.files = self.delete_what_is_no_conversations(scope).await?;
            part.has_more = part.running_directives > 0;
        }
        Ok(part)
    }

    /// Cancels those that wait, and deletes those that are over.
    async fn delete_directives(&self, by: &Caller, scope: &Scope) -> Result<DeletedRest, Fault> {
        let waiting: Vec<String> = query(
            "SELECT id FROM directives WHERE tenant = $1 AND user_id = $2 AND status IN ('pending_approval', 'requested') LIMIT $3",
        )
        .bind((scope, CANCELLED_AT_ONCE as i64))
        .fetch_values(&mut self.database.reading(Reach::User(scope)).await?)
        .await?;
        let has_more_waiting = waiting.len() == CANCELLED_AT_ONCE;
        for id in waiting {
            let id = DirectiveId::parse(&id).map_err(RecordError::from)?;
            match self.try_change_directive(by, id, Access { reads: true, operates: true }, Change::Cancel).await {
                // It has begun, or somebody else has deleted it: what is left is counted below.
                Ok(_) | Err(Undone::Refused(ChangeError::Running | ChangeError::NotFound)) => {}
                Err(Undone::Refused(refused)) => {
                    tracing::warn!(error = %refused, directive.id = %id, "directive not cancelled")
                }
                Err(Undone::Failed(fault)) => return Err(fault),
            }
        }
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        let directives = query(
            "DELETE FROM directives WHERE tenant = $1 AND user_id = $2 AND id IN (
                 SELECT id FROM directives WHERE tenant = $1 AND user_id = $2 AND completed_at IS NOT NULL LIMIT $3)",
        )
        .bind((scope, DELETED_AT_ONCE as i64))
        .execute(&mut transaction)
        .await?;
        let left: i64 =
            query("SELECT COUNT(*) FROM directives WHERE tenant = $1 AND user_id = $2 AND completed_at IS NULL")
                .bind(scope)
                .fetch_value(&mut transaction)
                .await?;
        transaction.commit().await?;
        Ok(DeletedRest {
            files: 0,
            directives,
            running_directives: u64::try_from(left).unwrap_or_default(),
            has_more: has_more_waiting || directives == DELETED_AT_ONCE,
        })
    }

    /// What belongs to no conversation, in one transaction; how many files it were. Their bytes go with the next sweep, as those of
    /// conversations.
    async fn delete_what_is_no_conversations(&self, scope: &Scope) -> Result<u64, Fault> {
        // The sums of the tenant are of no user.
        let mut transaction = self.database.write(Reach::Tenant(scope)).await?;
        let files = query("DELETE FROM files WHERE tenant = $1 AND user_id = $2");
        let files = files.bind(scope).execute(&mut transaction).await?;
        for statement in [
            // Opened before a first message.
            "DELETE FROM conversation_state WHERE tenant = $1 AND user_id = $2",
            "DELETE FROM data_changes WHERE tenant = $1 AND user_id = $2",
            // Behind the others: what goes there is taken off it.
            "DELETE FROM stored_usage WHERE tenant = $1 AND user_id = $2",
        ] {
            query(statement).bind(scope).execute(&mut transaction).await?;
        }
        // Last, as runs do it.
        usage::leave_to_tenant(&mut transaction, scope).await?;
        transaction.commit().await?;
        self.database.forget_deleted().await;
        Ok(files)
    }
}
