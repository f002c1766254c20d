//! The pins' port: the definitions of servers' tools that were seen first, or that the operator has accepted since.
//! They belong to the deployment, and to no user: all replicas go by them, and they outlive every process.

use std::collections::HashMap;

use async_trait::async_trait;

use super::store_error::StoreError;

/// Keeps definitions by their digests.
#[async_trait]
pub trait PinStore: Send + Sync {
    /// Keeps the digest of each tool of `server` that has none yet, up to `most` in all, and returns all that are kept.
    /// Of two processes that see a tool first, one is first.
    ///
    /// # Errors
    /// When it could not be done; then nothing is kept.
    async fn keep_first(
        &self,
        server: &str,
        seen: &[(String, String)],
        most: usize,
    ) -> Result<HashMap<String, String>, StoreError>;

    /// Keeps these digests instead of those that were kept of `server`.
    ///
    /// # Errors
    /// When it could not be done; then those of before are kept.
    async fn accept(&self, server: &str, definitions: &[(String, String)]) -> Result<(), StoreError>;
}
