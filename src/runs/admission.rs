//! Who may begin now. A begin is a commit of the store, so few of them go at once; and those that bring much wait for each
//! other, so that short messages do not wait behind long ones.

use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

/// Runs that begin at once: fewer than a store has connections, and enough for commits that many of them share.
const BEGIN_AT_ONCE: usize = 8;

/// Those of them that bring much: while others begin with little, they wait for each other and nobody for them.
const LARGE_AT_ONCE: usize = 2;

/// What is much for a run to begin with, in bytes of its message and its screen state: 64 KiB.
const LARGE: usize = 64 << 10;

/// The places for runs that begin.
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
    /// A place for a run that brings so many bytes.
    ///
    /// # Errors
    /// Never: nobody closes it.
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
    fn those_who_bring_much_wait_for_each_other_and_nobody_for_them() {
        let admission = Admission::default();
        let enter = |bytes| futures::FutureExt::now_or_never(admission.acquire(bytes)).map(Result::unwrap);
        let large: Vec<_> = (0..LARGE_AT_ONCE).map(|_| enter(LARGE + 1).unwrap()).collect();
        assert!(enter(LARGE + 1).is_none(), "as many as may be");
        let small: Vec<_> = (LARGE_AT_ONCE..BEGIN_AT_ONCE).map(|_| enter(LARGE).unwrap()).collect();
        assert!(enter(0).is_none(), "it is full");
        drop(large);
        assert!(enter(LARGE + 1).is_some() && small.len() + LARGE_AT_ONCE == BEGIN_AT_ONCE, "places are given back");
    }
}
