//! The state of every handler: reference data that never changes, and the records that do, behind one lock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::records::action_types::ActionTypes;
use super::records::all::Records;
use super::records::catalog::Catalog;
use super::records::people::People;
use super::records::reference::Reference;
use super::records::seed::Seed;
use super::records::stamp::Stamp;
use crate::agent::ports::clock::Clock;
use crate::agent::ports::identity::Authenticator;

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
