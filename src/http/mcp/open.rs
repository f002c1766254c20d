//! The calls that this process is answering, for clients that call one off by the id of its request.
//!
//! **Invariant:** an entry lasts as long as its answer. Clients have no sessions, so that two of one user may give two calls the
//! same id: of those none is called off.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use axum::http::{HeaderMap, header};

use crate::chat::caller::Owner;
use crate::chat::ids::RunId;
use crate::dialect::mcp::Id;

/// Whose call it is, what it is named, and of which program, as far as that says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    owner: Owner,
    id: String,
    program: Option<Vec<u8>>,
}

impl Name {
    /// The name of the caller's request `id`.
    pub(super) fn new(owner: &Owner, id: &Id, headers: &HeaderMap) -> Self {
        let program = headers.get(header::USER_AGENT).map(|value| value.as_bytes().to_vec());
        Self { owner: owner.clone(), id: id.as_str().to_owned(), program }
    }
}

/// Calls that are open.
#[derive(Debug, Default)]
pub(super) struct OpenCalls(Mutex<Vec<(Name, Weak<OnceLock<RunId>>)>>);

impl OpenCalls {
    /// Notes a call. It is open until what is given here is dropped, and its run is to be set there.
    pub(super) fn open(&self, name: Name) -> Arc<OnceLock<RunId>> {
        let run = Arc::new(OnceLock::new());
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.retain(|(_, run)| run.strong_count() > 0);
        calls.push((name, Arc::downgrade(&run)));
        run
    }

    /// The run of the call of that name, where there is one such call.
    pub(super) fn run_of(&self, name: &Name) -> Option<RunId> {
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut open = calls.iter().filter(|(own, _)| own == name).filter_map(|(_, run)| run.upgrade());
        let (run, other) = (open.next()?, open.next());
        run.get().copied().filter(|_| other.is_none())
    }
}
