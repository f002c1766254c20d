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

use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex};

use super::database::Database;
use super::stuck::Stuck;
use crate::agent::ports::clock::Clock;
use crate::chat::ids::RunId;
use crate::chat::signal::Subscriptions;

/// An open database behind all ports.
pub(super) struct SqlStore {
    database: Database,
    stuck: Stuck,
    clock: Arc<dyn Clock>,
    subscriptions: Arc<Subscriptions>,
    /// The last run that a reaping has tried to end, where there were more than it had time for.
    reaped_to: Mutex<Option<RunId>>,
    /// Up to which age the sweep of files has looked through those that were needed.
    files_looked_at: AtomicI64,
}

impl SqlStore {
    /// The store in `database`, which queues what `subscriptions` hear of.
    pub(super) fn new(database: Database, clock: Arc<dyn Clock>, subscriptions: Arc<Subscriptions>) -> Self {
        let (stuck, reaped_to, files_looked_at) = (Stuck::default(), Mutex::default(), AtomicI64::new(0));
        Self { database, stuck, clock, subscriptions, reaped_to, files_looked_at }
    }
}
