//! A circuit breaker: a model that failed several times in a row gets no calls for a while, so that no run waits for it
//! and it gets no load it cannot bear. Then one call finds out whether it answers again. Where a request has no other model,
//! being spared is no use to its user: there one call finds out much sooner, and still one at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::config;
use crate::agent::ports::llm::ProviderErrorKind;
use crate::chat::message::ModelOrigin;
use crate::observe::metrics::{self, BreakerState};

/// A year stands for times that no clock reaches.
const NEVER: Duration = Duration::from_secs(31_536_000);

/// The breaker of one model.
#[derive(Debug)]
pub(super) struct Breaker {
    /// Its model; for the log.
    origin: Arc<ModelOrigin>,
    /// Failures in a row that open it; 0 is never.
    failures: u32,
    /// How long it stays open at least.
    open: Duration,
    /// The same for requests that have no other model.
    last_open: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Calls go through; so many of the newest have failed in a row.
    Closed { failures: u32 },
    /// No call goes through until then, because of this; of requests without another model one does from `last` on.
    Open { until: Instant, last: Instant, kind: ProviderErrorKind },
    /// One call is finding out. If it does not come to anything for as long as the breaker stays open, another one may.
    Probing { until: Instant, kind: ProviderErrorKind },
}

/// Leave for one call. It tells the breaker how the call went; dropped without a word it tells nothing.
#[derive(Debug)]
pub(super) struct Permit {
    breaker: Arc<Breaker>,
    /// Of the call that finds out: the state before it.
    probe: Option<State>,
}

/// No call goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Open {
    /// Until one may.
    pub(super) left: Duration,
    /// How the last call failed.
    pub(super) kind: ProviderErrorKind,
}

/// Whether a request has another model behind this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behind {
    /// It has.
    Another,
    /// It has none.
    Nobody,
}

impl Breaker {
    /// A closed breaker.
    pub(super) fn new(origin: Arc<ModelOrigin>, config: config::Breaker) -> Arc<Self> {
        let state = Mutex::new(State::Closed { failures: 0 });
        metrics::breaker(&origin.provider, &origin.model, BreakerState::Closed);
        let open = Duration::from_secs(config.open_s);
        let last_open = Duration::from_secs(config.last_open_s).min(open);
        Arc::new(Self { origin, failures: config.failures, open, last_open, state })
    }

    /// Leave for a call of a request that has so much behind it.
    pub(super) fn admit(self: &Arc<Self>, now: Instant, behind: Behind) -> Result<Permit, Open> {
        let mut state = self.state();
        let leaves = match (*state, behind) {
            (State::Closed { .. }, _) => None,
            (State::Open { last, kind, .. }, Behind::Nobody) => Some((last, kind)),
            (State::Open { until, kind, .. }, Behind::Another) | (State::Probing { until, kind }, _) => {
                Some((until, kind))
            }
        };
        let probe = match leaves {
            None => None,
            Some((until, kind)) => {
                if now < until {
                    return Err(Open { left: until.duration_since(now), kind });
                }
                let before = std::mem::replace(&mut *state, State::Probing { until: later(now, self.open), kind });
                self.show(BreakerState::Probing);
                Some(before)
            }
        };
        Ok(Permit { breaker: Arc::clone(self), probe })
    }

    /// Its state.
    pub(super) fn state_now(&self) -> BreakerState {
        match *self.state() {
            State::Closed { .. } => BreakerState::Closed,
            State::Open { .. } => BreakerState::Open,
            State::Probing { .. } => BreakerState::Probing,
        }
    }

    fn show(&self, state: BreakerState) {
        metrics::breaker(&self.origin.provider, &self.origin.model, state);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened(&self, now: Instant, kind: ProviderErrorKind) -> State {
        // A vendor with a `Retry-After` gets no call before that time.
        let demanded = kind.retry_after().unwrap_or_default();
        let (open, last_open) = (self.open.max(demanded), self.last_open.max(demanded));
        tracing::warn!(
            gen_ai.provider.name = self.origin.provider,
            gen_ai.request.model = self.origin.model,
            error.code = kind.code().name(),
            wait_ms = u64::try_from(open.as_millis()).unwrap_or(u64::MAX),
            "the model keeps failing and is left alone"
        );
        self.show(BreakerState::Open);
        State::Open { until: later(now, open), last: later(now, last_open), kind }
    }
}

fn later(now: Instant, wait: Duration) -> Instant {
    now + wait.min(NEVER)
}

impl Permit {
    /// The model has begun to answer, or has refused the question: it is there.
    pub(super) fn answering(&mut self) {
        if self.probe.take().is_some() {
            let Breaker { origin, .. } = &*self.breaker;
            tracing::info!(
                gen_ai.provider.name = origin.provider,
                gen_ai.request.model = origin.model,
                "the model answers again"
            );
            self.breaker.show(BreakerState::Closed);
            *self.breaker.state() = State::Closed { failures: 0 };
        }
    }

    /// The model has answered to the end.
    pub(super) fn answered(mut self) {
        self.answering();
        let mut state = self.breaker.state();
        if let State::Closed { failures } = &mut *state {
            *failures = 0;
        }
    }

    /// The model failed as `kind`, before its answer or in the middle of it.
    pub(super) fn failed(mut self, now: Instant, kind: ProviderErrorKind) {
        let was_probe = self.probe.take().is_some();
        let mut state = self.breaker.state();
        match &mut *state {
            State::Closed { failures } => {
                *failures = failures.saturating_add(1);
                if self.breaker.failures != 0 && *failures >= self.breaker.failures {
                    *state = self.breaker.opened(now, kind);
                }
            }
            State::Probing { .. } if was_probe => *state = self.breaker.opened(now, kind),
            // Another call decides.
            State::Probing { .. } | State::Open { .. } => {}
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(before) = self.probe else { return };
        let mut state = self.breaker.state();
        // The caller is gone: the next call finds out, unless another one has meanwhile.
        if let State::Probing { .. } = *state {
            *state = before;
            // It was open until a call could find out.
            self.breaker.show(BreakerState::Open);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: Duration = Duration::from_secs(30);
    const DOWN: ProviderErrorKind = ProviderErrorKind::Unavailable { retry_after: None };

    fn breaker(failures: u32) -> Arc<Breaker> {
        let origin = ModelOrigin { provider: "p".to_owned(), model: "m".to_owned() };
        Breaker::new(Arc::new(origin), config::Breaker { failures, open_s: 30, last_open_s: 2 })
    }

    /// A breaker that has just opened, and the time when it lets a call through again.
    fn opened() -> (Arc<Breaker>, Instant) {
        let (breaker, now) = (breaker(2), Instant::now());
        for _ in 0..2 {
            breaker.admit(now, Behind::Another).unwrap().failed(now, DOWN);
        }
        (breaker, now + OPEN)
    }

    #[test]
    fn it_opens_after_so_many_failures_in_a_row_and_no_others() {
        let (breaker, now) = (breaker(2), Instant::now());
        breaker.admit(now, Behind::Another).unwrap().failed(now, DOWN);
        breaker.admit(now, Behind::Another).unwrap().answered();
        breaker.admit(now, Behind::Another).unwrap().failed(now, DOWN);
        drop(breaker.admit(now, Behind::Another).unwrap());
        breaker.admit(now, Behind::Another).unwrap().failed(now, ProviderErrorKind::Unauthorized);
        let open = Open { left: OPEN, kind: ProviderErrorKind::Unauthorized };
        assert_eq!(breaker.admit(now, Behind::Another).unwrap_err(), open, "with the reason of the last failure");
    }

    #[test]
    fn a_vendor_that_asks_for_more_time_gets_it() {
        let (breaker, now) = (breaker(1), Instant::now());
        let limited = |seconds| ProviderErrorKind::RateLimited { retry_after: Some(Duration::from_secs(seconds)) };
        breaker.admit(now, Behind::Another).unwrap().failed(now, limited(100));
        assert_eq!(breaker.admit(now, Behind::Another).unwrap_err().left, Duration::from_secs(100));
        breaker.admit(now + 4 * OPEN, Behind::Another).unwrap().failed(now, limited(u64::MAX));
        assert_eq!(breaker.admit(now, Behind::Another).unwrap_err().left, NEVER);
    }

    #[test]
    fn one_call_finds_out_whether_the_model_is_back() {
        let (breaker, later) = opened();
        let mut probe = breaker.admit(later, Behind::Another).unwrap();
        assert_eq!(breaker.admit(later, Behind::Another).unwrap_err(), Open { left: OPEN, kind: DOWN });
        probe.answering();
        breaker.admit(later, Behind::Another).unwrap().answered();
        // The probe's answer broke off later: that is one failure, not the second.
        probe.failed(later, DOWN);
        drop(breaker.admit(later, Behind::Another).unwrap());
    }

    #[test]
    fn a_request_without_another_model_finds_out_sooner_and_one_at_a_time() {
        let (breaker, until) = opened();
        let opened_at = until - OPEN;
        let soon = opened_at + Duration::from_secs(2);
        let refused = |left| Open { left: Duration::from_secs(left), kind: DOWN };
        assert_eq!(breaker.admit(opened_at, Behind::Nobody).unwrap_err(), refused(2));
        assert_eq!(breaker.admit(soon, Behind::Another).unwrap_err(), refused(28));
        let probe = breaker.admit(soon, Behind::Nobody).unwrap();
        assert_eq!(breaker.admit(soon, Behind::Nobody).unwrap_err(), refused(30), "one at a time");
        probe.failed(soon, DOWN);
        assert_eq!(breaker.admit(soon, Behind::Nobody).unwrap_err(), refused(2), "its next try is not at once");
        breaker.admit(soon + Duration::from_secs(2), Behind::Nobody).unwrap().answered();
        drop(breaker.admit(soon + Duration::from_secs(2), Behind::Another).unwrap());
    }

    #[test]
    fn what_a_vendor_asks_for_is_kept_by_everybody() {
        let (breaker, now) = (breaker(1), Instant::now());
        let limited = ProviderErrorKind::RateLimited { retry_after: Some(Duration::from_secs(20)) };
        breaker.admit(now, Behind::Nobody).unwrap().failed(now, limited);
        assert_eq!(breaker.admit(now, Behind::Nobody).unwrap_err().left, Duration::from_secs(20));
    }

    #[test]
    fn a_call_that_hangs_does_not_find_out_for_ever() {
        let (breaker, later) = opened();
        let hanging = breaker.admit(later, Behind::Another).unwrap();
        breaker.admit(later + OPEN, Behind::Another).unwrap().answered();
        hanging.failed(later + OPEN, DOWN);
        drop(breaker.admit(later + OPEN, Behind::Another).unwrap());
    }

    #[test]
    fn a_probe_that_is_given_up_late_does_not_undo_what_another_found_out() {
        let (breaker, later) = opened();
        let hanging = breaker.admit(later, Behind::Another).unwrap();
        breaker.admit(later + OPEN, Behind::Another).unwrap().answered();
        drop(hanging);
        let (_one, _other) = (
            breaker.admit(later + OPEN, Behind::Another).unwrap(),
            breaker.admit(later + OPEN, Behind::Another).unwrap(),
        );
    }

    #[test]
    fn a_probe_that_fails_opens_it_again_and_one_that_is_given_up_does_not() {
        let (breaker, later) = opened();
        drop(breaker.admit(later, Behind::Another).unwrap());
        breaker.admit(later, Behind::Another).unwrap().failed(later, DOWN);
        assert_eq!(breaker.admit(later, Behind::Another).unwrap_err().left, OPEN);
    }

    #[test]
    fn calls_from_before_it_opened_do_not_keep_it_open() {
        let (breaker, now) = (breaker(2), Instant::now());
        let older = breaker.admit(now, Behind::Another).unwrap();
        for _ in 0..2 {
            breaker.admit(now, Behind::Another).unwrap().failed(now, DOWN);
        }
        older.failed(now + OPEN, DOWN);
        breaker.admit(now + OPEN, Behind::Another).unwrap().answered();
        breaker.admit(now + OPEN, Behind::Another).unwrap().answered();
    }

    #[test]
    fn without_a_number_of_failures_it_never_opens() {
        let (breaker, now) = (breaker(0), Instant::now());
        for _ in 0..100 {
            breaker.admit(now, Behind::Another).unwrap().failed(now, DOWN);
        }
    }
}
