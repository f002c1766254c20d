//! How often a user may begin a run: the generic cell rate algorithm, by which a start may come whenever the ones before it
//! have been paid for at the allowed rate, and a burst of them at once. It is counted in this process, or by all replicas
//! together in Redis; while that is away, each counts for itself.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};

use crate::chat::caller::Owner;

/// The time that a rate is for.
const WINDOW: Duration = Duration::from_secs(60);

/// How often a user may begin a run, and what is left of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Starts in the window.
    pub quota: u32,
    /// The window, in seconds.
    pub window_s: u32,
    /// Starts that may come now.
    pub remaining: u32,
    /// When one more may come, in seconds, rounded up.
    pub reset_s: u32,
}

/// The rate that users may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Starts in a minute.
    pub per_minute: NonZeroU32,
    /// Starts at once, after a pause.
    pub burst: NonZeroU32,
}

impl Pace {
    /// Between two starts, in the long run.
    pub fn period(self) -> Duration {
        WINDOW / self.per_minute.get()
    }

    /// With so many starts left, and so long until one more.
    fn rate(self, remaining: u32, next: Duration) -> Rate {
        let window_s = u32::try_from(WINDOW.as_secs()).unwrap_or(u32::MAX);
        let reset_s = u32::try_from(next.as_millis().div_ceil(1000)).unwrap_or(u32::MAX);
        Rate { quota: self.per_minute.get(), window_s, remaining, reset_s }
    }
}

/// The result of a start: how many are left, or how long to wait.
pub type Taken = Result<u32, Duration>;

/// Counts for all replicas.
#[async_trait]
pub trait SharedStarts: Send + Sync {
    /// Takes one start of the owner's; `None` while that is unknown.
    async fn take(&self, owner: &Owner, pace: Pace) -> Option<Taken>;
}

type Local = RateLimiter<Owner, DefaultKeyedStateStore<Owner>, DefaultClock, StateInformationMiddleware>;

/// Counts the starts of users.
pub struct Starts(Option<Counted>);

struct Counted {
    pace: Pace,
    local: Local,
    shared: Option<Arc<dyn SharedStarts>>,
}

impl Starts {
    /// Counts by `pace`, in `shared` where there is one; without a pace nothing is counted.
    pub fn new(pace: Option<Pace>, shared: Option<Arc<dyn SharedStarts>>) -> Self {
        Self(pace.map(|pace| {
            let quota = Quota::per_minute(pace.per_minute).allow_burst(pace.burst);
            Counted { pace, local: RateLimiter::keyed(quota).with_middleware(), shared }
        }))
    }

    /// Takes one start of the owner's; what is left, where that is counted.
    ///
    /// # Errors
    /// When there is none left.
    pub(super) async fn take(&self, owner: &Owner) -> Result<Option<Rate>, Rate> {
        let Some(Counted { pace, local, shared }) = &self.0 else { return Ok(None) };
        let shared = match shared {
            Some(shared) => shared.take(owner, *pace).await,
            None => None,
        };
        let taken = shared.unwrap_or_else(|| match local.check_key(owner) {
            Ok(state) => Ok(state.remaining_burst_capacity()),
            Err(not_until) => Err(not_until.wait_time_from(DefaultClock::default().now())),
        });
        match taken {
            Ok(remaining) => Ok(Some(pace.rate(remaining, pace.period()))),
            Err(wait) => Err(pace.rate(0, wait)),
        }
    }

    /// Forgets users who could begin as many as anybody else.
    pub(super) fn forget_idle(&self) {
        if let Some(Counted { local, .. }) = &self.0 {
            local.retain_recent();
            local.shrink_to_fit();
        }
    }
}
