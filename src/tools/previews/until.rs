//! A call that must not begin after its time: looked at each time before it goes on, by a clock that cannot be set.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep, sleep_until};

/// Why a call has no outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooLate {
    /// Its time was over before it began: nothing was done.
    NotBegun,
    /// Its time ended while it was under way: what was done is unknown.
    Unfinished,
}

/// `call`, as long as it is before `end`.
///
/// A timer alone would not do: in a process that was paused, the timer and the connection wake at once, and the connection may
/// come first. What is not polled any more writes nothing.
pub async fn until<T>(end: Instant, call: impl Future<Output = T> + Send) -> Result<T, TooLate> {
    Until { end, timer: Box::pin(sleep_until(end)), call: Box::pin(call), has_begun: false }.await
}

struct Until<F> {
    end: Instant,
    timer: Pin<Box<Sleep>>,
    call: Pin<Box<F>>,
    has_begun: bool,
}

impl<F: Future> Future for Until<F> {
    type Output = Result<F::Output, TooLate>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // The timer is there for its wake-up alone: the time itself is looked at here.
        let _ = self.timer.as_mut().poll(cx);
        if Instant::now() >= self.end {
            return Poll::Ready(Err(if self.has_begun { TooLate::Unfinished } else { TooLate::NotBegun }));
        }
        self.has_begun = true;
        self.call.as_mut().poll(cx).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn nothing_begins_or_goes_on_after_its_time() {
        let polls = AtomicUsize::new(0);
        let counted = || async {
            polls.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<()>().await;
        };
        assert_eq!(until(Instant::now(), counted()).await, Err(TooLate::NotBegun));
        assert_eq!(polls.load(Ordering::SeqCst), 0, "it was not even begun");
        let soon = Instant::now() + Duration::from_millis(50);
        assert_eq!(until(soon, counted()).await, Err(TooLate::Unfinished));
        assert_eq!(polls.load(Ordering::SeqCst), 1);
        let later = Instant::now() + Duration::from_secs(60);
        assert_eq!(until(later, async { 7 }).await, Ok(7));
    }

    #[tokio::test]
    async fn what_is_ready_with_its_end_is_too_late() {
        let end = Instant::now() + Duration::from_millis(50);
        // Both wake at once, as after a pause of the process.
        assert_eq!(until(end, sleep_until(end)).await, Err(TooLate::Unfinished));
    }
}
