//! Every statement, by its subject, behind the ports of [`crate::agent::ports`].

mod approvals;
mod artifacts;
mod audit;
mod client_history;
mod data;
mod deliveries;
mod directives;
mod drafts;
mod feedback;
mod files;
mod names;
mod pages;
mod payloads;
mod pins;
mod places;
mod plans;
mod previews;
mod quotas;
mod ready;
mod runs;
mod schedules;
mod search;
mod seen;
mod signals;
mod titles;
mod usage;
mod users;
mod views;

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use super::database::Database;
use super::stuck::Stuck;
use crate::agent::ports::clock::Clock;
use crate::chat::signal::Subscriptions;

/// An open database behind all ports.
pub(super) struct SqlStore {
    database: Database,
    stuck: Stuck,
    clock: Arc<dyn Clock>,
    subscriptions: Arc<Subscriptions>,
    /// Up to which age the sweep of files has looked through those that were needed.
    files_looked_at: AtomicI64,
}

impl SqlStore {
    /// The store in `database`, which queues what `subscriptions` hear of.
    pub(super) fn new(database: Database, clock: Arc<dyn Clock>, subscriptions: Arc<Subscriptions>) -> Self {
        Self { database, stuck: Stuck::default(), clock, subscriptions, files_looked_at: AtomicI64::new(0) }
    }
}
