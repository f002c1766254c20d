//! What one user may hold of this process at once: requests that are being answered, and bytes of bodies and exports. And
//! which users get `Server-Timing`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::ServerConfig;
use super::problem::Problem;
use crate::chat::caller::{Caller, Owner};

/// The shares of all users.
#[derive(Clone)]
pub(super) struct Shares(Arc<Table>);

struct Table {
    requests: usize,
    bytes: usize,
    timing: Timing,
    held: Mutex<HashMap<Owner, Held>>,
}

/// Who gets `Server-Timing`.
enum Timing {
    Everybody,
    Roles(Vec<String>),
}

/// What one user holds.
#[derive(Default)]
struct Held {
    requests: usize,
    bytes: usize,
}

impl Shares {
    /// Those of `config`; in `dev` mode every user gets `Server-Timing`.
    pub(super) fn from_config(config: &ServerConfig, is_dev: bool) -> Self {
        let no_limit = |most: usize| if most == 0 { usize::MAX } else { most };
        let timing = if is_dev { Timing::Everybody } else { Timing::Roles(config.timing_roles.clone()) };
        let (requests, bytes) = (no_limit(config.requests_per_user), no_limit(config.bytes_per_user));
        Self(Arc::new(Table { requests, bytes, timing, held: Mutex::default() }))
    }

    /// An empty slot, which is filled when a request's caller is known.
    pub(super) fn slot(&self) -> Slot {
        Slot { shares: self.clone(), request: Arc::default() }
    }

    /// Takes so many requests and bytes of `owner`; whether they were free.
    fn take(&self, owner: &Owner, requests: usize, bytes: usize) -> bool {
        let mut held = self.0.held.lock().unwrap_or_else(PoisonError::into_inner);
        let own = held.entry(owner.clone()).or_default();
        let is_free =
            own.requests.saturating_add(requests) <= self.0.requests && own.bytes.saturating_add(bytes) <= self.0.bytes;
        if is_free {
            own.requests += requests;
            own.bytes += bytes;
        } else if own.requests == 0 && own.bytes == 0 {
            held.remove(owner);
        }
        is_free
    }

    fn give_back(&self, owner: &Owner, requests: usize, bytes: usize) {
        let mut held = self.0.held.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(own) = held.get_mut(owner) else { return };
        own.requests = own.requests.saturating_sub(requests);
        own.bytes = own.bytes.saturating_sub(bytes);
        if own.requests == 0 && own.bytes == 0 {
            held.remove(owner);
        }
    }
}

/// A request's caller, once that is known. It travels with the request and then with its answer, and what the caller holds
/// for it is given back with the last of them.
#[derive(Clone)]
pub(super) struct Slot {
    shares: Shares,
    request: Arc<OnceLock<RequestSlot>>,
}

/// A request of a known caller.
struct RequestSlot {
    shares: Shares,
    owner: Owner,
    may_see_timing: bool,
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        self.shares.give_back(&self.owner, 1, 0);
    }
}

impl Slot {
    /// Counts the request as one of `caller`.
    ///
    /// # Errors
    /// When they have as many as they may.
    pub(super) fn take(&self, caller: &Caller) -> Result<(), Problem> {
        if self.request.get().is_some() {
            return Ok(());
        }
        if !self.shares.take(&caller.owner, 1, 0) {
            return Err(Problem::too_many_requests("as many requests of yours are being answered as may be"));
        }
        let may_see_timing = match &self.shares.0.timing {
            Timing::Everybody => true,
            Timing::Roles(roles) => roles.iter().any(|role| caller.has_role(role)),
        };
        let request = RequestSlot { shares: self.shares.clone(), owner: caller.owner.clone(), may_see_timing };
        // Where the slot is filled already, this one is given back as it is dropped.
        drop(self.request.set(request));
        Ok(())
    }

    /// Whether the caller may see where the time of the answer went.
    pub(super) fn may_see_timing(&self) -> bool {
        match &self.shares.0.timing {
            Timing::Everybody => true,
            Timing::Roles(_) => self.request.get().is_some_and(|request| request.may_see_timing),
        }
    }

    /// Takes so many bytes of the caller's.
    ///
    /// # Errors
    /// When they hold as many as they may.
    pub(super) fn bytes(&self, bytes: usize) -> Result<Bytes, Problem> {
        // Without a known caller no body is read here: strangers' are their connection's (`body::of_stranger`).
        let Some(request) = self.request.get() else { return Ok(Bytes { of: None, bytes: 0 }) };
        let mut taken = Bytes { of: Some((self.shares.clone(), request.owner.clone())), bytes: 0 };
        taken.grow(bytes)?;
        Ok(taken)
    }

    /// Takes so many bytes of the caller's, or all that they may have where those are fewer: what is larger goes out alone.
    ///
    /// # Errors
    /// When they hold too many.
    pub(super) fn bytes_or_all(&self, bytes: usize) -> Result<Bytes, Problem> {
        self.bytes(bytes.min(self.shares.0.bytes))
    }
}

/// Bytes counted for a user, until this is dropped.
pub(super) struct Bytes {
    of: Option<(Shares, Owner)>,
    bytes: usize,
}

impl Bytes {
    /// Takes so many more.
    ///
    /// # Errors
    /// When they hold as many as they may.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), Problem> {
        let Some((shares, owner)) = &self.of else { return Ok(()) };
        if !shares.take(owner, 0, bytes) {
            return Err(Problem::too_many_requests("as many bytes of your requests are in memory as may be"));
        }
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        if let Some((shares, owner)) = &self.of {
            shares.give_back(owner, 0, self.bytes);
        }
    }
}
