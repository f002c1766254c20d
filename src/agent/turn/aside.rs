//! What helpers of a run leave to it: what they have used, what their tools have made, and the writes that they have sent.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::pending::Paused;
use crate::agent::recap::Mentions;
use crate::chat::approval::Approval;
use crate::chat::artifact::CallArtifact;
use crate::chat::cost::{Cost, Sum};
use crate::chat::event::AgentEvent;
use crate::chat::payload::Payload;
use crate::chat::place::Place;
use crate::chat::stream::{Spent, Usage};
use crate::chat::trail::TrailEvent;

/// What was left and not taken over yet.
#[derive(Default)]
pub(super) struct Aside(Mutex<Left>);

/// The same, as it is.
#[derive(Default)]
pub(super) struct Left {
    pub(super) usage: Usage,
    pub(super) cost: Sum,
    pub(super) spent: Vec<Spent>,
    /// What the budgets have not heard of.
    pub(super) uncounted: Vec<(Usage, Option<Cost>)>,
    pub(super) payloads: Vec<Arc<Payload>>,
    /// What their tools have made for the client's screen.
    pub(super) artifacts: Vec<CallArtifact>,
    pub(super) writes: Vec<TrailEvent>,
    /// Their calls that wait for a person.
    pub(super) approvals: Vec<Approval>,
    /// The plan that waits with them.
    pub(super) paused: Option<Paused>,
    /// The ends of their calls that were told and broken off.
    pub(super) broken_off: Vec<AgentEvent>,
    /// What their results told of.
    pub(super) mentions: Vec<Mentions>,
    /// Where the conversation was moved, by the last that did.
    pub(super) moved: Option<Place>,
    /// The same, where that is kept and readers were told.
    pub(super) told: Option<Arc<Place>>,
}

impl Aside {
    pub(super) fn lock(&self) -> MutexGuard<'_, Left> {
        // Nothing that could panic half-way happens while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
