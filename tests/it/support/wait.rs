//! Waiting for what happens in its own time.

use std::time::{Duration, Instant};

/// How long a test waits before it says that something does not happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// What `look` finds, once it finds it.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
