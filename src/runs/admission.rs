//! Permits for runs that begin. A begin is a commit of the store, so few of them go at once; and those that bring much
//! wait for each other, so that short messages do not wait behind long ones.

use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

/// Runs that begin at once: fewer than a store has connections, and enough for commits that many of them share.
const BEGIN_AT_ONCE: usize = 8;

/// Those of them that bring much: while others begin with little, they wait for each other, and no other one for them.
const LARGE_AT_ONCE: usize = 2;

/// A large beginning, in bytes of what the run brings: 64 KiB.
const LARGE: usize = 64 << 10;

/// The permits for runs that begin.
pub(super) struct Admission {
    all: Semaphore,
    large: Semaphore,
}

impl Default for Admission {
    fn default() -> Self {
        Self { all: Semaphore::new(BEGIN_AT_ONCE), large: Semaphore::new(LARGE_AT_ONCE) }
    }
}

impl Admission {
    /// A permit for a run that brings so many bytes.
    ///
    /// # Errors
    /// Never: it is not closed.
    pub(super) async fn acquire(
        &self,
        bytes: usize,
    ) -> Result<(Option<SemaphorePermit<'_>>, SemaphorePermit<'_>), AcquireError> {
        let large = match bytes > LARGE {
            true => Some(self.large.acquire().await?),
            false => None,
        };
        Ok((large, self.all.acquire().await?))
    }
}

#[cfg(test)]
mod tests {
    use super::{Admission, BEGIN_AT_ONCE, LARGE, LARGE_AT_ONCE};

    #[test]
    fn runs_that_bring_much_wait_for_each_other_and_no_other_one_for_them() {
        let admission = Admission::default();
        let enter = |bytes| futures::FutureExt::now_or_never(admission.acquire(bytes)).map(Result::unwrap);
        let large: Vec<_> = (0..LARGE_AT_ONCE).map(|_| enter(LARGE + 1).unwrap()).collect();
        assert!(enter(LARGE + 1).is_none(), "as many as may be");
        let small: Vec<_> = (LARGE_AT_ONCE..BEGIN_AT_ONCE).map(|_| enter(LARGE).unwrap()).collect();
        assert!(enter(0).is_none(), "it is full");
        drop(large);
        assert!(enter(LARGE + 1).is_some() && small.len() + LARGE_AT_ONCE == BEGIN_AT_ONCE, "permits are given back");
    }
}
