//! The starts of users, counted in Redis by its own clock: one number for each user, the time by which what they began will
//! have been paid for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use aws_lc_rs::digest::{SHA256, digest};
use redis::RedisResult;

use super::link::{Link, within};
use super::script::{Call, TAKE_START};
use crate::chat::caller::Owner;
use crate::chat::causes::Causes;
use crate::runs::log::LogError;
use crate::runs::starts::{Pace, SharedStarts, Taken};

/// How long a request waits for the count; then this process counts alone.
const WAIT: Duration = Duration::from_millis(250);

/// A connection that a request waited for so long in vain is not used again: nearly all of [`WAIT`], since asking begins a
/// moment after it.
const SILENT: Duration = Duration::from_millis(200);

/// The count that all replicas share.
pub struct RedisStarts {
    link: Link,
    prefix: String,
    is_away: AtomicBool,
}

impl RedisStarts {
    /// The count in the Redis at `url`, under keys that begin with `prefix`; dialled when it is needed.
    ///
    /// # Errors
    /// When the URL is not understood.
    pub fn connect(url: &str, prefix: &str) -> Result<Self, LogError> {
        let client = redis::Client::open(url).map_err(|error| LogError(Box::new(error)))?;
        Ok(Self { link: Link::patient(client, SILENT), prefix: prefix.to_owned(), is_away: AtomicBool::new(false) })
    }

    /// The user's key. A digest: names are of any length and any letters.
    fn key(&self, owner: &Owner) -> String {
        let named = format!("{}:{}{}", owner.tenant.len(), owner.tenant, owner.user);
        let digest = digest(&SHA256, named.as_bytes());
        let hex: String = digest.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("{}:starts:{hex}", self.prefix)
    }
}

#[async_trait]
impl SharedStarts for RedisStarts {
    async fn take(&self, owner: &Owner, pace: Pace) -> Option<Taken> {
        let period_us = u64::try_from(pace.period().as_micros()).unwrap_or(u64::MAX).max(1);
        let call = Call::new(&TAKE_START, self.key(owner)).arg(period_us).arg(pace.burst.get());
        let answer: RedisResult<(i64, u64)> = within(WAIT, call.ask(&self.link)).await;
        match answer {
            Ok((remaining, wait_us)) => {
                self.is_away.store(false, Ordering::Relaxed);
                Some(u32::try_from(remaining).map_err(|_| Duration::from_micros(wait_us)))
            }
            Err(error) => {
                if !self.is_away.swap(true, Ordering::Relaxed) {
                    tracing::warn!(error = %Causes(&error), "starts of runs are counted by this process alone");
                }
                None
            }
        }
    }
}
