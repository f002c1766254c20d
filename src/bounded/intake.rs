//! Work on large inputs: off the runtime's workers, a few at a time, so that other requests do not wait for it.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::available_parallelism;

use tokio::sync::Semaphore;

use super::memory::Memory;

/// 256 KiB are read in a millisecond or two; what is larger goes aside.
pub const LARGE: usize = 256 << 10;

/// Two at once at most: each takes memory.
const AT_ONCE: usize = 2;

/// Takes in what others send. Clones share the budget and the permits.
#[derive(Debug, Clone)]
pub struct Intake {
    memory: Memory,
    permits: Arc<Semaphore>,
}

impl Intake {
    /// An intake with this budget.
    pub fn new(memory: Memory) -> Self {
        let cores = available_parallelism().map_or(1, NonZero::get);
        // A core is left for everybody else, where there is more than one.
        let at_once = (cores - 1).clamp(1, AT_ONCE);
        Self { memory, permits: Arc::new(Semaphore::new(at_once)) }
    }

    /// The budget.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Runs `work` on an input of so many bytes: at once where it is small, and aside where it is large. Work that has
    /// begun aside goes on to its end when its caller is gone, and keeps its permit until then.
    pub async fn work<T: Send + 'static>(&self, bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
        if bytes <= LARGE {
            return work();
        }
        // The semaphore is never closed; without a permit the work would be done all the same.
        let permit = self.permits.clone().acquire_owned().await.ok();
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        match done.await {
            Ok(made) => made,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime is shut down, and with it whoever waits here.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// On a runtime with one worker, which would not come to anything else if the work were done on it.
    #[tokio::test]
    async fn what_is_large_blocks_no_other_work() {
        let intake = Intake::new(Memory::new(0));
        let (ends, waits): (Vec<_>, Vec<_>) = (0..4).map(|_| mpsc::channel::<()>()).unzip();
        let works = waits.into_iter().map(|wait| intake.work(LARGE + 1, move || wait.recv().is_ok()));
        let works = futures::future::join_all(works);
        let others = async {
            while intake.permits.available_permits() > 0 {
                tokio::task::yield_now().await;
            }
            assert!(intake.work(LARGE, || true).await, "what is small is done meanwhile");
            ends.iter().for_each(|end| end.send(()).unwrap());
        };
        let (done, ()) = futures::join!(works, others);
        assert_eq!(done, [true; 4]);
    }
}
