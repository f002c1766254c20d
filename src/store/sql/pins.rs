//! Pins in SQL: the first of those who see a tool says what it is.

use std::collections::HashMap;

use async_trait::async_trait;

use super::SqlStore;
use crate::agent::ports::pins::PinStore;
use crate::agent::ports::store_error::StoreError;
use crate::store::database::Connection;
use crate::store::fault::{Fault, attempt};
use crate::store::scope::{Reach, original, storable};
use crate::store::statement::query;

#[async_trait]
impl PinStore for SqlStore {
    async fn keep_first(
        &self,
        server: &str,
        seen: &[(String, String)],
        most: usize,
    ) -> Result<HashMap<String, String>, StoreError> {
        attempt("keep definitions of tools", self.try_keep_first(server, seen, most)).await
    }

    async fn accept(&self, server: &str, definitions: &[(String, String)]) -> Result<(), StoreError> {
        attempt("accept definitions of tools", self.try_accept(server, definitions)).await
    }
}

impl SqlStore {
    async fn try_keep_first(
        &self,
        server: &str,
        seen: &[(String, String)],
        most: usize,
    ) -> Result<HashMap<String, String>, Fault> {
        let kept = kept(&mut self.database.reading(Reach::All).await?, server).await?;
        let unknown = seen.iter().filter(|(tool, _)| !kept.contains_key(tool));
        let new: Vec<_> = unknown.take(most.saturating_sub(kept.len())).collect();
        if new.is_empty() {
            return Ok(kept);
        }
        let mut transaction = self.database.write(Reach::All).await?;
        for (tool, digest) in new {
            insert(&mut transaction, (server, tool, digest)).await?;
        }
        let kept = self::kept(&mut transaction, server).await?;
        transaction.commit().await?;
        Ok(kept)
    }

    async fn try_accept(&self, server: &str, definitions: &[(String, String)]) -> Result<(), Fault> {
        let mut transaction = self.database.write(Reach::All).await?;
        query("DELETE FROM tool_pins WHERE server = $1").bind(storable(server)).execute(&mut transaction).await?;
        for (tool, digest) in definitions {
            insert(&mut transaction, (server, tool, digest)).await?;
        }
        transaction.commit().await?;
        Ok(())
    }
}

async fn kept(connection: &mut dyn Connection, server: &str) -> Result<HashMap<String, String>, Fault> {
    let rows: Vec<(String, String)> = query("SELECT tool, digest FROM tool_pins WHERE server = $1")
        .bind(storable(server))
        .fetch_all(connection)
        .await?;
    Ok(rows.into_iter().map(|(tool, digest)| (original(&tool).into_owned(), digest)).collect())
}

/// Keeps a definition, unless there is one.
async fn insert(connection: &mut dyn Connection, (server, tool, digest): (&str, &str, &str)) -> Result<(), Fault> {
    query(
        "INSERT INTO tool_pins (server, tool, digest, seen_at) VALUES ($1, $2, $3, @now)
         ON CONFLICT (server, tool) DO NOTHING",
    )
    .bind((storable(server), storable(tool), digest))
    .execute(connection)
    .await?;
    Ok(())
}
