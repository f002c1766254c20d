//! Every statement, by its subject, behind the ports of [`crate::agent::ports`].

mod approvals;
mod audit;
mod client_history;
mod data;
mod drafts;
mod names;
mod payloads;
mod pins;
mod places;
mod plans;
mod previews;
mod quotas;
mod ready;
mod runs;
mod seen;
mod usage;
mod views;

use std::sync::Arc;

use super::database::Database;
use super::stuck::Stuck;
use crate::agent::ports::clock::Clock;

/// An open database behind all ports.
pub(super) struct SqlStore {
    database: Database,
    stuck: Stuck,
    clock: Arc<dyn Clock>,
}

impl SqlStore {
    /// The store in `database`.
    pub(super) fn new(database: Database, clock: Arc<dyn Clock>) -> Self {
        Self { database, stuck: Stuck::default(), clock }
    }
}
