//! Whether runs could be carried out here and now, found out with the steps of a run: a task that begins and ends, a
//! permit to begin, and a keeper that comes round. A process that answers requests and runs nothing is worse than one
//! that is gone.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::Runs;

/// How old the keeper's last round may be: one begins each second and takes four at most.
const ROUND: Duration = Duration::from_secs(8);

/// How long a new task, and a permit for a run, may take. Runs themselves give up after this.
const BEGIN: Duration = Duration::from_secs(5);

/// The time of the keeper's last round.
#[derive(Debug)]
pub(super) struct Pulse(Mutex<Instant>);

impl Default for Pulse {
    fn default() -> Self {
        Self(Mutex::new(Instant::now()))
    }
}

impl Pulse {
    /// The keeper has come round.
    pub(super) fn beat(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn age(&self) -> Duration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}

/// The reason why runs are not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stuck {
    /// Tasks are not begun: whoever runs them is blocked.
    #[error("new tasks are not run")]
    Tasks,
    /// Those who begin do not come to an end.
    #[error("runs that begin find no room")]
    NoPermit,
    /// It has not come round for so long.
    #[error("the keeper of leases has not come round for {} s", _0.as_secs())]
    Keeper(Duration),
}

impl Runs {
    /// Whether a run could be carried out now; looks for five seconds at most.
    ///
    /// # Errors
    /// See [`Stuck`].
    pub async fn is_able(&self) -> Result<(), Stuck> {
        let age = self.pulse.age();
        if age > ROUND {
            return Err(Stuck::Keeper(age));
        }
        let begun = self.tasks.spawn(async {});
        if !matches!(timeout(BEGIN, begun).await, Ok(Ok(()))) {
            return Err(Stuck::Tasks);
        }
        // A permit like a run's, given back at once.
        match timeout(BEGIN, self.admission.acquire(0)).await {
            Ok(Ok(_permit)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Stuck::NoPermit),
        }
    }
}
