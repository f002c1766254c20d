//! A circuit breaker: a model that failed several times in a row is left alone for a while, so that nobody waits for it and
//! it gets no load it cannot bear. Then one call finds out whether it answers again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::config;

/// A year stands for times that no clock reaches.
const NEVER: Duration = Duration::from_secs(31_536_000);

/// The breaker of one model.
#[derive(Debug)]
pub(super) struct Breaker {
    /// Failures in a row that open it; 0 is never.
    failures: u32,
    /// How long it stays open.
    open: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Calls go through; so many of the newest have failed in a row.
    Closed { failures: u32 },
    /// No call goes through until then.
    Open { until: Instant },
    /// One call is finding out.
    Probing,
}

/// Leave for one call. It tells the breaker how the call went; dropped without a word it tells nothing.
#[derive(Debug)]
pub(super) struct Permit {
    breaker: Arc<Breaker>,
    /// Of the call that finds out: since when one might.
    probe: Option<Instant>,
}

/// No call goes through; after this time one may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Open(pub(super) Duration);

impl Breaker {
    /// A closed breaker.
    pub(super) fn new(config: config::Breaker) -> Arc<Self> {
        let state = Mutex::new(State::Closed { failures: 0 });
        Arc::new(Self { failures: config.failures, open: Duration::from_secs(config.open_s), state })
    }

    /// Leave for a call.
    pub(super) fn admit(self: &Arc<Self>, now: Instant) -> Result<Permit, Open> {
        let mut state = self.state();
        let probe = match *state {
            State::Closed { .. } => None,
            State::Open { until } if now < until => return Err(Open(until.duration_since(now))),
            State::Open { until } => Some(until),
            State::Probing => return Err(Open(PROBING)),
        };
        if probe.is_some() {
            *state = State::Probing;
        }
        Ok(Permit { breaker: Arc::clone(self), probe })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened(&self, now: Instant) -> State {
        State::Open { until: now + self.open.min(NEVER) }
    }
}

/// 1 s is told to those who come while a probe is under way: by then it is mostly decided.
const PROBING: Duration = Duration::from_secs(1);

impl Permit {
    /// The model has begun to answer: it is there.
    pub(super) fn answering(&mut self) {
        if self.probe.take().is_some() {
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

    /// The model failed, before its answer or in the middle of it.
    pub(super) fn failed(mut self, now: Instant) {
        let was_probe = self.probe.take().is_some();
        let mut state = self.breaker.state();
        match &mut *state {
            State::Closed { failures } => {
                *failures += 1;
                if self.breaker.failures != 0 && *failures >= self.breaker.failures {
                    *state = self.breaker.opened(now);
                }
            }
            State::Probing if was_probe => *state = self.breaker.opened(now),
            // Somebody else's call decides.
            State::Probing | State::Open { .. } => {}
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(until) = self.probe {
            // Whoever asked has gone: the next call finds out.
            *self.breaker.state() = State::Open { until };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: Duration = Duration::from_secs(30);

    fn breaker() -> Arc<Breaker> {
        Breaker::new(config::Breaker { failures: 2, open_s: 30 })
    }

    /// A breaker that has just opened, and the time when it lets a call through again.
    fn opened() -> (Arc<Breaker>, Instant) {
        let (breaker, now) = (breaker(), Instant::now());
        for _ in 0..2 {
            breaker.admit(now).unwrap().failed(now);
        }
        (breaker, now + OPEN)
    }

    #[test]
    fn it_opens_after_so_many_failures_in_a_row_and_no_others() {
        let (breaker, now) = (breaker(), Instant::now());
        breaker.admit(now).unwrap().failed(now);
        breaker.admit(now).unwrap().answered();
        breaker.admit(now).unwrap().failed(now);
        drop(breaker.admit(now).unwrap());
        breaker.admit(now).unwrap().failed(now);
        assert_eq!(breaker.admit(now).unwrap_err(), Open(OPEN));
    }

    #[test]
    fn one_call_finds_out_whether_the_model_is_back() {
        let (breaker, later) = opened();
        let mut probe = breaker.admit(later).unwrap();
        assert_eq!(breaker.admit(later).unwrap_err(), Open(PROBING));
        probe.answering();
        breaker.admit(later).unwrap().answered();
        // The probe's answer broke off later: that is one failure, not the second.
        probe.failed(later);
        drop(breaker.admit(later).unwrap());
    }

    #[test]
    fn a_probe_that_fails_opens_it_again_and_one_that_is_given_up_does_not() {
        let (breaker, later) = opened();
        drop(breaker.admit(later).unwrap());
        breaker.admit(later).unwrap().failed(later);
        assert_eq!(breaker.admit(later).unwrap_err(), Open(OPEN));
    }

    #[test]
    fn calls_from_before_it_opened_do_not_keep_it_open() {
        let (breaker, now) = (breaker(), Instant::now());
        let older = breaker.admit(now).unwrap();
        for _ in 0..2 {
            breaker.admit(now).unwrap().failed(now);
        }
        older.failed(now + OPEN);
        breaker.admit(now + OPEN).unwrap().answered();
        breaker.admit(now + OPEN).unwrap().answered();
    }

    #[test]
    fn without_a_number_of_failures_it_never_opens() {
        let (breaker, now) = (Breaker::new(config::Breaker { failures: 0, open_s: 30 }), Instant::now());
        for _ in 0..100 {
            breaker.admit(now).unwrap().failed(now);
        }
    }
}
