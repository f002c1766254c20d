//! The state of every handler: reference data that never changes, and the records that do, behind one lock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Mutex as AsyncMutex;

use super::doors::Doors;
use super::records::action_types::ActionTypes;
use super::records::all::Records;
use super::records::answers::Answers;
use super::records::catalog::Catalog;
use super::records::people::People;
use super::records::reference::Reference;
use super::records::seed::Seed;
use super::records::stamp::Stamp;
use crate::agent::ports::clock::Clock;

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
    /// Knows who asks.
    pub doors: Doors,
    /// What was answered to writes with a key. Held while one is made.
    pub answers: AsyncMutex<Answers>,
    clock: Arc<dyn Clock>,
    // A std mutex: it is held for a few copies and never across an await.
    records: Mutex<Records>,
}

impl Demo {
    /// The demo as it starts.
    pub fn new(seed: Seed, doors: Doors, clock: Arc<dyn Clock>) -> Self {
        let Seed { action_types, reference, people, catalog, records } = seed;
        let (answers, records) = (AsyncMutex::default(), Mutex::new(records));
        Self { action_types, reference, people, catalog, doors, answers, clock, records }
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
