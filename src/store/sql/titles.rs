//! What conversations are called, in SQL.

use async_trait::async_trait;

use super::SqlStore;
use crate::agent::ports::store_error::StoreError;
use crate::agent::ports::titles::TitleStore;
use crate::chat::caller::Owner;
use crate::chat::ids::ConversationId;
use crate::store::fault::{Fault, attempt};
use crate::store::scope::{Reach, Scope, storable};
use crate::store::statement::query;

#[async_trait]
impl TitleStore for SqlStore {
    async fn is_titled(&self, owner: &Owner, conversation: &ConversationId) -> Result<bool, StoreError> {
        attempt("look for a title", self.try_is_titled(&owner.into(), conversation)).await
    }

    async fn entitle(&self, owner: &Owner, conversation: &ConversationId, title: &str) -> Result<bool, StoreError> {
        attempt("give a title", self.try_entitle(&owner.into(), conversation, title)).await
    }
}

impl SqlStore {
    async fn try_is_titled(&self, scope: &Scope, id: &ConversationId) -> Result<bool, Fault> {
        let titled: i64 = query(
            "SELECT COUNT(*) FROM conversations
             WHERE tenant = $1 AND user_id = $2 AND id = $3 AND (title IS NOT NULL OR unlisted = 1)",
        )
        .bind((scope, id.as_str()))
        .fetch_value(&mut self.database.reading(Reach::User(scope)).await?)
        .await?;
        Ok(titled > 0)
    }

    async fn try_entitle(&self, scope: &Scope, id: &ConversationId, title: &str) -> Result<bool, Fault> {
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        // One statement: of two that come at once, the second finds the title of the first.
        let given = query(
            "UPDATE conversations SET title = $1, title_indexed = 0
             WHERE tenant = $2 AND user_id = $3 AND id = $4 AND title IS NULL AND unlisted = 0",
        );
        let given = given.bind((storable(title), scope, id.as_str())).execute(&mut transaction).await?;
        transaction.commit().await?;
        Ok(given == 1)
    }
}
