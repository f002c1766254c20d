//! The ports of signals and of their deliveries to subscribers.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;

use super::pages::{Cursor, Page};
use super::store_error::StoreError;
use crate::chat::caller::{Caller, Owner};
use crate::chat::ids::{DeliveryId, SignalId};
use crate::chat::signal::{NamePattern, Signal, SignalFact};

/// Keeps signals.
#[async_trait]
pub trait SignalStore: Send + Sync {
    /// Writes a signal of the owner's tenant, or finds the one of the same key; whether it was written.
    ///
    /// # Errors
    /// See [`EmitError`].
    async fn emit(&self, owner: &Owner, fact: SignalFact) -> Result<(Signal, bool), EmitError>;

    /// The signal, where `caller` did it, or any of their tenant with `of_tenant`.
    ///
    /// # Errors
    /// When it could not be read.
    async fn signal(&self, caller: &Caller, id: SignalId, of_tenant: bool) -> Result<Option<Signal>, StoreError>;

    /// A page of signals.
    ///
    /// # Errors
    /// When they could not be read.
    async fn signals(&self, caller: &Caller, filter: &SignalFilter) -> Result<Page<Signal>, StoreError>;

    /// Queues signals of the owner's tenant again, to one subscriber or to all that hear of them.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn replay(&self, owner: &Owner, which: &Replay, subscriber: Option<&str>) -> Result<Replayed, StoreError>;
}

/// Keeps what has to be delivered.
#[async_trait]
pub trait DeliveryStore: Send + Sync {
    /// Takes what is due for a subscriber, oldest first, so that nobody else does while the lease lasts. Unless something is
    /// known to be due (`is_any`) it is looked for first: looking costs no writer its turn.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn claim_deliveries(
        &self,
        subscriber: &str,
        lease_ms: i64,
        most: u32,
        is_any: bool,
    ) -> Result<Vec<DueDelivery>, StoreError>;

    /// Ends attempts, of which those count that are still their holder's to end.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn settle_deliveries(&self, ended: &[EndedDelivery]) -> Result<(), StoreError>;

    /// A page of the deliveries of the caller's tenant, newest first.
    ///
    /// # Errors
    /// When they could not be read.
    async fn deliveries(&self, owner: &Owner, filter: &DeliveryFilter) -> Result<Page<Delivery>, StoreError>;

    /// Has a dead delivery of the owner's tenant tried again: `None` where there is none, `Some(false)` where it is not dead.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn retry_delivery(&self, owner: &Owner, id: DeliveryId) -> Result<Option<bool>, StoreError>;

    /// Removes signals and their deliveries that are older than they are kept; whether there may be more.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn tidy_signals(&self, kept_ms: Option<i64>) -> Result<bool, StoreError>;
}

/// Why a signal was not written.
#[derive(Debug, thiserror::Error)]
pub enum EmitError {
    /// A name in it is that of a secret.
    #[error("{0} is the name of a secret, which a signal must not have: refer to it by an id")]
    Secret(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Rings in this process when there is something new to deliver.
#[derive(Debug, Clone)]
pub struct Bell(Arc<watch::Sender<()>>);

impl Default for Bell {
    fn default() -> Self {
        Self(Arc::new(watch::channel(()).0))
    }
}

impl Bell {
    /// Rings.
    pub fn ring(&self) {
        self.0.send_replace(());
    }

    /// Hears it.
    pub fn listen(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }
}

/// Which signals are listed.
#[derive(Debug, Clone, Default)]
pub struct SignalFilter {
    /// Of this name, or with this beginning.
    pub name: Option<NamePattern>,
    /// About a thing of this kind.
    pub subject_kind: Option<String>,
    /// About the thing of this id.
    pub subject_id: Option<String>,
    /// That belong to this.
    pub correlation: Option<String>,
    /// That this caused.
    pub causation: Option<String>,
    /// All of the tenant.
    pub of_tenant: bool,
    /// Oldest first.
    pub ascending: bool,
    /// At most so many.
    pub limit: u32,
    /// Behind this `seq`.
    pub after: Option<i64>,
}

/// Which signals are queued again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replay {
    /// These.
    Ids(Vec<SignalId>),
    /// The newest of this name.
    Name(NamePattern, u32),
    /// The first that were written within these times, in milliseconds since the Unix epoch.
    Between(i64, i64, u32),
    /// The newest.
    Recent(u32),
}

/// What a replay has queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replayed {
    /// Signals that were meant.
    pub matched: u64,
    /// Deliveries that wait now.
    pub queued: u64,
}

/// A delivery whose time has come.
#[derive(Debug, Clone)]
pub struct DueDelivery {
    /// Its id.
    pub id: DeliveryId,
    /// What proves that it was taken.
    pub token: i64,
    /// Attempts before this one.
    pub attempts: u32,
    /// Whose signal it is; no user.
    pub owner: Owner,
    /// The signal.
    pub signal: Signal,
}

/// An attempt that is over.
#[derive(Debug)]
pub struct EndedDelivery {
    /// The delivery.
    pub id: DeliveryId,
    /// What proves that it was taken.
    pub token: i64,
    /// What came of it.
    pub outcome: Delivered,
}

/// What came of an attempt to deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivered {
    /// It was taken.
    Yes(u16),
    /// It is tried again after so many milliseconds.
    Later {
        /// The status, where one came.
        status: Option<u16>,
        /// Why, in our words.
        error: String,
        /// When.
        in_ms: i64,
    },
    /// It is given up.
    Dead {
        /// The status, where one came.
        status: Option<u16>,
        /// Why, in our words.
        error: String,
    },
}

/// Which deliveries are listed.
#[derive(Debug, Clone, Default)]
pub struct DeliveryFilter {
    /// In this status.
    pub status: Option<DeliveryStatus>,
    /// To this subscriber.
    pub subscriber: Option<String>,
    /// Of this signal.
    pub signal: Option<SignalId>,
    /// At most so many.
    pub limit: u32,
    /// Behind this one.
    pub after: Option<Cursor>,
}

/// Where a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryStatus {
    /// It is tried, or will be.
    Pending,
    /// Its subscriber has it.
    Delivered,
    /// It was given up.
    Dead,
}

impl DeliveryStatus {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Delivered, Self::Dead];

    /// Its name on every wire and in the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
        }
    }

    /// The status of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

/// A delivery as operators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its id.
    pub id: DeliveryId,
    /// The signal.
    pub signal: SignalId,
    /// The signal's name.
    pub name: String,
    /// To whom.
    pub subscriber: String,
    /// Where it stands.
    pub status: DeliveryStatus,
    /// Attempts so far.
    pub attempts: u32,
    /// When it was queued, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// When it is tried next, while it is pending.
    pub next_attempt_at_ms: Option<i64>,
    /// The status of the last answer.
    pub last_status: Option<u16>,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
    /// When its subscriber took it.
    pub delivered_at_ms: Option<i64>,
}
