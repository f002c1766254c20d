//! The calls that an AG-UI client knows, and the parts that each of them still lacks.

use crate::chat::ids::ApprovalId;

/// The calls of one of our runs, by the ids that the client knows.
#[derive(Default)]
pub(super) struct Calls {
    own: Vec<Call>,
    /// Calls of earlier runs that this one makes.
    decided: Vec<Decided>,
    /// Calls that wait for a person.
    held: Vec<(ApprovalId, String)>,
}

/// A call of this run that the client knows.
struct Call {
    id: String,
    /// Whether its arguments are complete.
    is_whole: bool,
    /// Whether it has its result.
    is_answered: bool,
}

/// A call of an earlier run, which was decided.
struct Decided {
    /// How this run calls it.
    runs_as: String,
    /// How the client does.
    requested_as: String,
    is_answered: bool,
}

impl Calls {
    /// A call begins; false if the client knows it already.
    pub(super) fn begin(&mut self, id: &str) -> bool {
        let is_known = self.decided.iter().any(|call| call.runs_as == id) || self.own.iter().any(|call| call.id == id);
        if !is_known {
            self.own.push(Call { id: id.to_owned(), is_whole: false, is_answered: false });
        }
        !is_known
    }

    /// Its arguments are there; false if they were before, or it is none of this run's.
    pub(super) fn complete(&mut self, id: &str) -> bool {
        let call = self.own.iter_mut().find(|call| call.id == id && !call.is_whole);
        call.map(|call| call.is_whole = true).is_some()
    }

    /// The client gets its result.
    pub(super) fn answered(&mut self, id: &str) {
        for call in self.own.iter_mut().filter(|call| call.id == id) {
            (call.is_whole, call.is_answered) = (true, true);
        }
        for call in self.decided.iter_mut().filter(|call| call.requested_as == id) {
            call.is_answered = true;
        }
    }

    /// A call of this run waits for a person.
    pub(super) fn hold(&mut self, approval: ApprovalId, id: &str) {
        let known_as = self.known_as(id);
        self.held.push((approval, known_as));
    }

    /// This run makes a call of an earlier one.
    pub(super) fn decide(&mut self, runs_as: &str, requested_as: &str) {
        let (runs_as, requested_as) = (runs_as.to_owned(), requested_as.to_owned());
        self.decided.push(Decided { runs_as, requested_as, is_answered: false });
    }

    /// The client's id of a call of this run.
    pub(super) fn known_as(&self, id: &str) -> String {
        let decided = self.decided.iter().find(|call| call.runs_as == id);
        decided.map_or(id, |call| &call.requested_as).to_owned()
    }

    /// Whether the client knows a call, of this run or of an earlier one.
    pub(super) fn knows(&self, id: &str) -> bool {
        self.own.iter().any(|call| call.id == id) || self.decided.iter().any(|call| call.runs_as == id)
    }

    /// A call does not wait any more, and nobody can decide it.
    pub(super) fn take_back(&mut self, id: &str) {
        self.held.retain(|(_, held)| held != id);
    }

    /// Whether a call waits for a person.
    pub(super) fn is_held(&self, id: &str) -> bool {
        self.held.iter().any(|(_, held)| held == id)
    }

    /// The call that waits for this approval.
    pub(super) fn held_for(&self, approval: &str) -> Option<String> {
        self.held.iter().find(|(held, _)| held.to_string() == approval).map(|(_, call)| call.clone())
    }

    /// Those without complete arguments, and so without a result; each with whether it is whole.
    pub(super) fn begun(&self) -> Vec<(String, bool)> {
        self.open(|call| !call.is_whole)
    }

    /// Those without a result.
    pub(super) fn unanswered(&self) -> Vec<(String, bool)> {
        self.open(|_| true)
    }

    /// Those without a result that wait for no person.
    pub(super) fn given_up(&self) -> Vec<(String, bool)> {
        self.open(|call| !self.is_held(&call.id))
    }

    /// Decided calls without a result.
    pub(super) fn undone(&self) -> Vec<String> {
        self.decided.iter().filter(|call| !call.is_answered).map(|call| call.requested_as.clone()).collect()
    }

    fn open(&self, is_meant: impl Fn(&Call) -> bool) -> Vec<(String, bool)> {
        let open = self.own.iter().filter(|call| !call.is_answered && is_meant(call));
        open.map(|call| (call.id.clone(), call.is_whole)).collect()
    }
}
