//! The readers of a run: how many there are here, when one was last seen at another replica, and since when there is
//! none.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The readers of one run.
pub(super) struct Interest {
    /// Whether it goes on without readers.
    background: bool,
    /// How long it waits for a reader after the last one went away.
    grace: Duration,
    readers: Mutex<Readers>,
}

struct Readers {
    here: usize,
    /// When it was last known to have a reader, here or elsewhere.
    last_seen: Instant,
    /// When it was last known to have a reader at another replica.
    elsewhere: Option<Instant>,
}

impl Interest {
    /// Of a run without readers yet.
    pub(super) fn new(background: bool, grace: Duration) -> Self {
        Self { background, grace, readers: Mutex::new(Readers { here: 0, last_seen: Instant::now(), elsewhere: None }) }
    }

    /// A reader has come here.
    pub(super) fn came(&self) {
        self.readers().here += 1;
    }

    /// One that read it here went away; whether the run is forsaken by that.
    pub(super) fn went(&self) -> bool {
        let mut readers = self.readers();
        readers.here = readers.here.saturating_sub(1);
        readers.last_seen = Instant::now();
        self.forsaken(&readers, readers.last_seen)
    }

    /// Whether somebody reads it here, or has been seen to do so at another replica in the time `lately`.
    pub(super) fn is_read(&self, now: Instant, lately: Duration) -> bool {
        let readers = self.readers();
        readers.here > 0 || readers.elsewhere.is_some_and(|seen| now.saturating_duration_since(seen) < lately)
    }

    /// It has a reader at another replica.
    pub(super) fn seen_elsewhere(&self, now: Instant) {
        let mut readers = self.readers();
        readers.last_seen = readers.last_seen.max(now);
        readers.elsewhere = Some(now);
    }

    /// Whether it has had no reader for its grace.
    pub(super) fn is_forsaken(&self, now: Instant) -> bool {
        self.forsaken(&self.readers(), now)
    }

    fn forsaken(&self, readers: &Readers, now: Instant) -> bool {
        !self.background && readers.here == 0 && now.saturating_duration_since(readers.last_seen) >= self.grace
    }

    fn readers(&self) -> MutexGuard<'_, Readers> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Interest;

    #[test]
    fn a_run_without_grace_is_forsaken_by_its_last_reader() {
        let interest = Interest::new(false, Duration::ZERO);
        interest.came();
        interest.came();
        assert_eq!((interest.went(), interest.went()), (false, true));
    }

    #[test]
    fn a_run_in_the_background_is_never_forsaken() {
        let interest = Interest::new(true, Duration::ZERO);
        interest.came();
        assert!(!interest.went());
        assert!(!interest.is_forsaken(Instant::now() + Duration::from_secs(3600)));
    }

    #[test]
    fn grace_counts_from_the_last_reader_whoever_left_before() {
        let (interest, grace) = (Interest::new(false, Duration::from_secs(60)), Duration::from_secs(60));
        interest.came();
        let began = Instant::now();
        assert!(!interest.went());
        interest.came();
        assert!(!interest.is_forsaken(began + 2 * grace), "it has a reader");
        assert!(!interest.went());
        let left = Instant::now();
        assert!(!interest.is_forsaken(left + grace - Duration::from_secs(1)));
        assert!(interest.is_forsaken(left + grace));
        interest.seen_elsewhere(left + Duration::from_secs(30));
        assert!(!interest.is_forsaken(left + grace), "a reader at another replica counts");
        assert!(interest.is_forsaken(left + Duration::from_secs(90)));
        let lately = Duration::from_secs(10);
        assert!(interest.is_read(left + Duration::from_secs(35), lately), "there");
        assert!(!interest.is_read(left + Duration::from_secs(41), lately), "not any more, as far as is known");
    }
}
