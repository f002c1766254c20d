//! What is kept for a user and a tenant, and how much of it there may be. What is there is counted by the store with each row that
//! comes and goes; it is looked at before a run begins, so that runs under way may pass a quota by what they still say.

use async_trait::async_trait;

use super::store_error::StoreError;
use crate::chat::caller::Owner;

/// How much there may be; 0 means no limit. A tenant's is none for those whose tokens name no tenant: they share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quotas {
    /// Conversations that lists show, of a user.
    pub conversations_per_user: u64,
    /// The same of all users of a tenant.
    pub conversations_per_tenant: u64,
    /// Bytes of what was said, of payloads, of screen states and of answers, of a user.
    pub bytes_per_user: u64,
    /// The same of all users of a tenant.
    pub bytes_per_tenant: u64,
    /// Exports of conversations by a user on a day, in UTC.
    pub exports_per_user_day: u64,
    /// The same by all users of a tenant.
    pub exports_per_tenant_day: u64,
}

/// Whose limit is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Its user's.
    User,
    /// Its tenant's.
    Tenant,
}

impl Whose {
    /// For a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Tenant => "tenant",
        }
    }
}

/// A quota that is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OverQuota {
    /// As many conversations are there as may be.
    #[error("this {} has as many conversations as it may have; delete some that are not needed any more", _0.name())]
    Conversations(Whose),
    /// As much is kept as may be.
    #[error("as much is kept for this {} as may be; delete conversations that are not needed any more", _0.name())]
    Bytes(Whose),
    /// As many exports were made as may be on a day.
    #[error("this {} has exported as many conversations as it may on a day", _0.name())]
    Exports(Whose),
}

/// Counts exports; the other quotas are those of runs (`RunStore::has_room`).
#[async_trait]
pub trait QuotaStore: Send + Sync {
    /// Counts an export of the owner's. Days are the database's own.
    ///
    /// # Errors
    /// When it could not be committed; the inner one where as many were made as may.
    async fn take_export(&self, owner: &Owner, quotas: &Quotas) -> Result<Result<(), OverQuota>, StoreError>;
}
