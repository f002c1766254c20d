//! Everything the demo knows: reference data that never changes, and the records that do, behind one lock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::action_types::ActionTypes;
use super::alerts::Alert;
use super::introspection::Catalog;
use super::people::People;
use super::reference::Reference;
use super::research::Research;
use super::rules::Rule;
use super::seed::Seed;
use super::stamp::Stamp;
use super::tables::TableConfig;
use crate::agent::ports::clock::Clock;
use crate::agent::ports::identity::Authenticator;

/// Each of rules and table configs: far more than a demo needs, little enough to keep in memory.
pub const MAX_RECORDS: usize = 1000;

/// The state of every handler.
pub struct Demo {
    /// Action types, which also decide what is a valid rule.
    pub action_types: ActionTypes,
    /// Triggers and entities.
    pub reference: Reference,
    /// Users and roles.
    pub people: People,
    /// The database's schemas.
    pub catalog: Catalog,
    /// Verifies bearers.
    pub auth: Arc<dyn Authenticator>,
    clock: Arc<dyn Clock>,
    // A std mutex: it is held for a few copies and never across an await.
    records: Mutex<Records>,
}

/// What requests can change.
#[derive(Debug)]
pub struct Records {
    /// All rules, active or not.
    pub rules: Vec<Rule>,
    /// All alerts.
    pub alerts: Vec<Alert>,
    /// All table configs.
    pub configs: Vec<TableConfig>,
    /// The research desk.
    pub research: Research,
}

impl Demo {
    /// The demo as it starts.
    pub fn new(seed: Seed, auth: Arc<dyn Authenticator>, clock: Arc<dyn Clock>) -> Self {
        let Seed { action_types, reference, people, catalog, records } = seed;
        Self { action_types, reference, people, catalog, auth, clock, records: Mutex::new(records) }
    }

    /// The records. A handler that panicked leaves them whole, since each change is one assignment.
    pub fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present.
    pub fn now(&self) -> Stamp {
        Stamp::now(self.clock.as_ref())
    }
}
