//! The port of schedules: up to when each has been requested, for all processes together.

use async_trait::async_trait;

use super::store_error::StoreError;

/// Keeps how far schedules have come.
#[async_trait]
pub trait ScheduleStore: Send + Sync {
    /// The newest time, in milliseconds since the Unix epoch, for which the schedule of this name was requested. One that
    /// is new begins at `now_ms`.
    ///
    /// # Errors
    /// When it could not be read or kept.
    async fn fired_until(&self, name: &str, now_ms: i64) -> Result<i64, StoreError>;

    /// Notes that it was requested for this time; a later one stays.
    ///
    /// # Errors
    /// When it could not be kept.
    async fn note_fired(&self, name: &str, at_ms: i64) -> Result<(), StoreError>;
}
