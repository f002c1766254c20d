//! The calls that this process is answering, for clients that call one off by the id of its request.
//!
//! **Invariant:** an entry lasts as long as its answer. A session is a name and no more: by it two clients of one user are told
//! apart, and of one that has none the program. Where two calls have one name all the same, none of them is called off.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use axum::http::{HeaderMap, HeaderName, header};
use tokio_util::sync::CancellationToken;

use crate::chat::caller::Owner;
use crate::chat::ids::RunId;
use crate::dialect::mcp::Id;

/// The header by which a client with an `initialize` says which of them it is.
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// 128 bytes of a session's name: ours have 36.
const SESSION_BYTES: usize = 128;

/// 256 calls that were called off before they came; of more the oldest are forgotten.
const EARLY: usize = 256;

/// Whose call it is, what it is named, and of which client, as far as that says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    owner: Owner,
    id: String,
    client: Client,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Client {
    /// No other has this name.
    Session(Vec<u8>),
    /// Any of this program.
    Program(Option<Vec<u8>>),
}

impl Name {
    /// The name of the caller's request `id`.
    pub(super) fn new(owner: &Owner, id: &Id, headers: &HeaderMap) -> Self {
        let text = |name: HeaderName| headers.get(name).map(|value| value.as_bytes().to_vec());
        let session = text(SESSION).filter(|session| (1..=SESSION_BYTES).contains(&session.len()));
        let client = session.map_or_else(|| Client::Program(text(header::USER_AGENT)), Client::Session);
        Self { owner: owner.clone(), id: id.as_str().to_owned(), client }
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
    early: VecDeque<Name>,
}

impl OpenCalls {
    /// Notes a call.
    pub(super) fn open(&self, name: Name) -> Open {
        let open = Open::never();
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.open.retain(|(_, run, _)| run.strong_count() > 0);
        if let Some(at) = calls.early.iter().position(|early| *early == name) {
            calls.early.remove(at);
            open.off.cancel();
        }
        calls.open.push((name, Arc::downgrade(&open.run), open.off.clone()));
        open
    }

    /// Calls off the call of that name, where there is one such call, or will be; the run that it has, which is to be cancelled.
    pub(super) fn call_off(&self, name: Name) -> Option<RunId> {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let named = calls.open.iter().filter(|(own, ..)| *own == name);
        let named: Vec<_> = named.filter_map(|(_, run, off)| Some((run.upgrade()?, off.clone()))).collect();
        match &named[..] {
            [] => {
                if let Client::Session(_) = name.client {
                    calls.early.push_back(name);
                    let too_many = calls.early.len().saturating_sub(EARLY);
                    calls.early.drain(..too_many);
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

    fn name(user: &str, id: &str, (header, value): &(HeaderName, &'static str)) -> Name {
        let owner = Owner { tenant: String::new(), user: user.to_owned() };
        let raw = RawValue::from_string(id.to_owned()).unwrap();
        let headers = HeaderMap::from_iter([(header.clone(), HeaderValue::from_static(value))]);
        Name::new(&owner, &Id::read(&raw).unwrap(), &headers)
    }

    #[test]
    fn a_call_is_called_off_by_its_own_client_whether_it_has_a_run_or_not() {
        let calls = OpenCalls::default();
        let (one, two) = (&(SESSION, "one"), &(SESSION, "two"));
        let open = calls.open(name("ada", "7", one));
        for other in [name("ada", "7", two), name("ada", "8", one), name("bob", "7", one), name("ada", "\"7\"", one)] {
            assert_eq!((calls.call_off(other), open.off.is_cancelled()), (None, false));
        }
        assert_eq!((calls.call_off(name("ada", "7", one)), open.off.is_cancelled()), (None, true), "it has no run yet");
        let open = calls.open(name("ada", "9", one));
        let run = RunId::fresh();
        open.run.set(run).unwrap();
        assert_eq!(calls.call_off(name("ada", "9", one)), Some(run));
    }

    #[test]
    fn a_call_that_comes_behind_its_end_is_called_off_where_no_other_has_its_name() {
        let calls = OpenCalls::default();
        for (client, is_off) in [(&(SESSION, "one"), true), (&(header::USER_AGENT, "one"), false)] {
            assert_eq!(calls.call_off(name("ada", "7", client)), None);
            assert_eq!(calls.open(name("ada", "7", client)).off.is_cancelled(), is_off, "{client:?}");
            assert!(!calls.open(name("ada", "7", client)).off.is_cancelled(), "once");
        }
        let session = &(SESSION, "one");
        (0..=EARLY).for_each(|id| assert_eq!(calls.call_off(name("ada", &id.to_string(), session)), None));
        assert!(!calls.open(name("ada", "0", session)).off.is_cancelled(), "so many are not kept");
        assert!(calls.open(name("ada", "1", session)).off.is_cancelled());
    }

    #[test]
    fn of_two_calls_with_one_name_none_is_called_off() {
        let calls = OpenCalls::default();
        let program = &(header::USER_AGENT, "one");
        let (first, second) = (calls.open(name("ada", "7", program)), calls.open(name("ada", "7", program)));
        assert_eq!(calls.call_off(name("ada", "7", program)), None);
        assert!(!first.off.is_cancelled() && !second.off.is_cancelled());
        drop(first);
        calls.call_off(name("ada", "7", program));
        assert!(second.off.is_cancelled());
    }
}
