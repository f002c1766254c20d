//! The calls that this process is answering, for clients that call one off by the id of its request.
//!
//! **Invariant:** an entry lasts as long as its answer. A session is a name and no more: by it two clients of one user are told
//! apart. Calls of clients without one are in no list: theirs end with the connection. Where two calls have one name all the same,
//! none of them is called off.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderName};
use tokio_util::sync::CancellationToken;

use crate::chat::caller::Owner;
use crate::chat::ids::RunId;
use crate::dialect::mcp::Id;

/// The header by which a client with an `initialize` says which of them it is.
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// 128 bytes of a session's name: ours have 36.
const SESSION_BYTES: usize = 128;

/// 16 calls of one user that were called off before they came, for ten seconds: a request that is overtaken comes at once, and most
/// of what is called off without being open has ended.
const EARLY: usize = 16;
const EARLY_LIFE: Duration = Duration::from_secs(10);

/// Whose call it is, of which client, and what it is named there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    owner: Owner,
    session: Vec<u8>,
    id: String,
}

impl Name {
    /// The name of the caller's request `id`, of a client that says which one it is.
    pub(super) fn new(owner: &Owner, id: &Id, headers: &HeaderMap) -> Option<Self> {
        let session = headers.get(SESSION)?.as_bytes();
        let is_name = (1..=SESSION_BYTES).contains(&session.len());
        is_name.then(|| Self { owner: owner.clone(), session: session.to_vec(), id: id.as_str().to_owned() })
    }
}

/// A call that is open until `run` is dropped.
#[derive(Debug, Clone)]
pub(super) struct Open {
    /// Its run is set there when it has begun.
    pub(super) run: Arc<OnceLock<RunId>>,
    /// Whether it is called off.
    pub(super) off: CancellationToken,
}

impl Open {
    /// One that is in nobody's list.
    pub(super) fn never() -> Self {
        Self { run: Arc::default(), off: CancellationToken::new() }
    }
}

/// Calls that are open.
#[derive(Debug, Default)]
pub(super) struct OpenCalls(Mutex<Calls>);

#[derive(Debug, Default)]
struct Calls {
    open: Vec<(Name, Weak<OnceLock<RunId>>, CancellationToken)>,
    /// Those that were called off before they came, of clients that give no id twice.
    early: VecDeque<(Instant, Name)>,
}

impl Calls {
    /// What was called off and never came.
    fn forget(&mut self, now: Instant) {
        self.early.retain(|(at, _)| now.saturating_duration_since(*at) < EARLY_LIFE);
    }
}

impl OpenCalls {
    /// Notes a call, if it has a name.
    pub(super) fn open(&self, name: Option<Name>) -> Open {
        self.open_at(name, Instant::now())
    }

    fn open_at(&self, name: Option<Name>, now: Instant) -> Open {
        let open = Open::never();
        let Some(name) = name else { return open };
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.open.retain(|(_, run, _)| run.strong_count() > 0);
        calls.forget(now);
        if let Some(at) = calls.early.iter().position(|(_, early)| *early == name) {
            calls.early.remove(at);
            open.off.cancel();
        }
        calls.open.push((name, Arc::downgrade(&open.run), open.off.clone()));
        open
    }

    /// Calls off the call of that name, where there is one such call, or will be; the run that it has, which is to be cancelled.
    pub(super) fn call_off(&self, name: Name) -> Option<RunId> {
        self.call_off_at(name, Instant::now())
    }

    fn call_off_at(&self, name: Name, now: Instant) -> Option<RunId> {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let named = calls.open.iter().filter(|(own, ..)| *own == name);
        let named: Vec<_> = named.filter_map(|(_, run, off)| Some((run.upgrade()?, off.clone()))).collect();
        match &named[..] {
            [] => {
                calls.forget(now);
                let mut of_owner = calls.early.iter().filter(|(_, early)| early.owner == name.owner);
                if of_owner.clone().count() < EARLY && of_owner.all(|(_, early)| *early != name) {
                    calls.early.push_back((now, name));
                }
                None
            }
            [(run, off)] => {
                // First: who has begun a run looks here once it is set.
                off.cancel();
                run.get().copied()
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use serde_json::value::RawValue;

    use super::*;

    fn name(user: &str, id: &str, session: &'static str) -> Name {
        let owner = Owner { tenant: String::new(), user: user.to_owned() };
        let raw = RawValue::from_string(id.to_owned()).unwrap();
        let headers = HeaderMap::from_iter([(SESSION, HeaderValue::from_static(session))]);
        Name::new(&owner, &Id::read(&raw).unwrap(), &headers).unwrap()
    }

    #[test]
    fn a_call_is_called_off_by_its_own_client_whether_it_has_a_run_or_not() {
        let calls = OpenCalls::default();
        let open = calls.open(Some(name("ada", "7", "one")));
        for other in
            [name("ada", "7", "two"), name("ada", "8", "one"), name("bob", "7", "one"), name("ada", "\"7\"", "one")]
        {
            assert_eq!((calls.call_off(other), open.off.is_cancelled()), (None, false));
        }
        assert_eq!(
            (calls.call_off(name("ada", "7", "one")), open.off.is_cancelled()),
            (None, true),
            "it has no run yet"
        );
        let open = calls.open(Some(name("ada", "9", "one")));
        let run = RunId::fresh();
        open.run.set(run).unwrap();
        assert_eq!(calls.call_off(name("ada", "9", "one")), Some(run));
    }

    #[test]
    fn a_call_that_comes_behind_its_end_is_called_off_for_a_while() {
        let calls = OpenCalls::default();
        let now = Instant::now();
        for wait in [0, 9, 11] {
            assert_eq!(calls.call_off_at(name("ada", "7", "one"), now), None);
            let open = calls.open_at(Some(name("ada", "7", "one")), now + Duration::from_secs(wait));
            assert_eq!(open.off.is_cancelled(), wait < 10, "{wait}");
            assert!(!calls.open(Some(name("ada", "7", "one"))).off.is_cancelled(), "once");
        }
        (0..=EARLY).for_each(|id| assert_eq!(calls.call_off(name("ada", &id.to_string(), "one")), None));
        assert!(!calls.open(Some(name("ada", &EARLY.to_string(), "one"))).off.is_cancelled(), "so many are not kept");
        assert_eq!(calls.call_off(name("bob", "0", "one")), None);
        assert!(calls.open(Some(name("bob", "0", "one"))).off.is_cancelled(), "those of others are");
    }

    #[test]
    fn of_two_calls_with_one_name_none_is_called_off() {
        let calls = OpenCalls::default();
        let (first, second) = (calls.open(Some(name("ada", "7", "one"))), calls.open(Some(name("ada", "7", "one"))));
        assert_eq!(calls.call_off(name("ada", "7", "one")), None);
        assert!(!first.off.is_cancelled() && !second.off.is_cancelled());
    }
}
