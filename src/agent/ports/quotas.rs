//! Quotas: how much is kept for a user and a tenant, and how much may be. The store counts with each row that comes and
//! goes; the counts are checked before a run begins, so that runs under way may pass a quota by what they still add.

/// How much there may be; 0 means no limit. A tenant's is none for those whose tokens name no tenant: they share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quotas {
    /// Conversations that lists show, of a user.
    pub conversations_per_user: u64,
    /// The same of all users of a tenant.
    pub conversations_per_tenant: u64,
    /// Bytes of messages, of payloads, of screen states and of answers, of a user.
    pub bytes_per_user: u64,
    /// The same of all users of a tenant.
    pub bytes_per_tenant: u64,
    /// Exports of conversations by a user on a day, in UTC.
    pub exports_per_user_day: u64,
    /// The same by all users of a tenant.
    pub exports_per_tenant_day: u64,
}

/// The owner of the limit that is met.
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
