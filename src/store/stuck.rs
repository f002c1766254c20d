//! Runs that cannot be ended, remembered so that each is logged once, however often it is tried again.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::chat::ids::RunId;

/// How many are remembered: more than a few dozen mean that something else is wrong, and are logged again.
const REMEMBERED: usize = 1000;

/// The runs that were logged.
#[derive(Default)]
pub(super) struct Stuck(Mutex<HashSet<RunId>>);

impl Stuck {
    /// Notes a run that could not be ended; returns whether it is the first time.
    pub(super) fn is_new(&self, run: RunId) -> bool {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.len() >= REMEMBERED {
            logged.clear();
        }
        logged.insert(run)
    }
}
