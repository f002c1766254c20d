//! How much the runs of long dialogs have told, so that what is older than the newest part of a dialog is not read again to be
//! counted. Only runs that have ended are kept: those before a run on its branch change no more.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, RunId};
use crate::dialect::smithy::history::Extent;

/// Runs of all dialogs that are kept at once: about 5 MB.
const MOST: usize = 100_000;

/// A dialog, and whether its reasoning is told.
pub(super) type Of = (Owner, ConversationId, bool);

/// A run, and how much it has told.
pub(super) type RunExtent = (RunId, Extent);

/// What is known of long dialogs.
#[derive(Default)]
pub struct Extents(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    dialogs: HashMap<Of, Vec<RunExtent>>,
    runs: usize,
}

impl Extents {
    /// The runs of a dialog before `run`, oldest first; `None` where that is not known.
    pub(super) fn before(&self, of: &Of, run: RunId) -> Option<Vec<RunExtent>> {
        let kept = self.kept();
        let runs = kept.dialogs.get(of)?;
        let at = runs.iter().position(|(known, _)| *known == run)?;
        Some(runs[..at].to_vec())
    }

    /// Keeps the runs of a dialog, oldest first, all of which have ended.
    pub(super) fn keep(&self, of: Of, runs: Vec<RunExtent>) {
        let mut kept = self.kept();
        let before = kept.dialogs.remove(&of).map_or(0, |runs| runs.len());
        kept.runs -= before;
        if kept.runs + runs.len() > MOST {
            *kept = Kept::default();
        }
        if runs.len() <= MOST {
            kept.runs += runs.len();
            kept.dialogs.insert(of, runs);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing that could panic half-way happens while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
