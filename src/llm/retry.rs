//! Whether a call that failed before its first token is made again, and when. Pure: time and chance come in as arguments.

use std::time::Duration;

use super::config;
use crate::agent::ports::llm::{ProviderError, ProviderErrorKind};

/// The rules for one model's calls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Policy {
    attempts: u32,
    base: Duration,
    max_wait: Duration,
}

impl Policy {
    /// The rules of `[llm.retry]`.
    pub(super) fn new(config: config::Retry) -> Self {
        Self {
            attempts: config.attempts,
            base: Duration::from_millis(config.base_ms),
            max_wait: Duration::from_secs(config.max_wait_s),
        }
    }

    /// How long to wait before the call that failed as `error`, the `attempt`th of its turn, is made again; `None` is never.
    /// `chance` is between 0 and 1; `left` is what remains of the run's time.
    pub(super) fn wait(
        &self,
        error: &ProviderError,
        attempt: u32,
        chance: f64,
        left: Option<Duration>,
    ) -> Option<Duration> {
        let (attempts, demanded) = match error.kind {
            ProviderErrorKind::RateLimited { retry_after } | ProviderErrorKind::Unavailable { retry_after } => {
                (self.attempts, retry_after)
            }
            ProviderErrorKind::Truncated | ProviderErrorKind::Malformed => (self.attempts, None),
            // A model that stumbles twice over the same question will stumble again.
            ProviderErrorKind::ModelFault => (self.attempts.min(2), None),
            // The user has waited long enough for this one.
            ProviderErrorKind::TimedOut => return None,
            // Retryable only where the vendor says so in so many words.
            ProviderErrorKind::Unauthorized
            | ProviderErrorKind::ModelNotFound
            | ProviderErrorKind::QuotaExceeded
            | ProviderErrorKind::ContextTooLong
            | ProviderErrorKind::ContentFiltered
            | ProviderErrorKind::Rejected
            | ProviderErrorKind::Paused => (self.attempts, None),
        };
        if !error.retryable || attempt >= attempts {
            return None;
        }
        let wait = match demanded {
            Some(demanded) if demanded > self.max_wait => return None,
            // All who were turned away together must not come back together.
            Some(demanded) => demanded + self.base.mul_f64(chance),
            None => {
                let longest = self.base.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
                longest.min(self.max_wait).mul_f64(chance)
            }
        };
        left.is_none_or(|left| wait < left).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn wait(kind: ProviderErrorKind, attempt: u32, chance: f64, left: Option<Duration>) -> Option<Duration> {
        let policy = Policy::new(config::Retry { attempts: 4, base_ms: 500, max_wait_s: 2, budget_percent: 20 });
        policy.wait(&ProviderError::new(kind, "x"), attempt, chance, left)
    }

    #[test]
    fn waits_are_random_parts_of_a_time_that_doubles_up_to_a_cap() {
        let busy = ProviderErrorKind::Unavailable { retry_after: None };
        let waits = [(1, 0.0), (1, 1.0), (2, 1.0), (3, 0.5), (3, 1.0)];
        let waited = waits.map(|(attempt, chance)| wait(busy, attempt, chance, None).unwrap());
        assert_eq!(waited, [MS(0), MS(500), MS(1000), MS(1000), MS(2000)]);
        assert_eq!(wait(busy, 4, 0.0, None), None, "the last attempt");
    }

    #[test]
    fn a_vendors_own_time_is_kept_unless_it_is_too_long_for_a_user() {
        let limited = |ms| ProviderErrorKind::RateLimited { retry_after: Some(MS(ms)) };
        assert_eq!(wait(limited(1500), 1, 0.0, None), Some(MS(1500)));
        assert_eq!(wait(limited(1500), 1, 1.0, None), Some(MS(2000)), "spread, but never earlier");
        assert_eq!(wait(limited(2001), 1, 0.0, None), None);
    }

    #[test]
    fn nothing_waits_past_the_end_of_the_run() {
        let busy = ProviderErrorKind::Unavailable { retry_after: None };
        assert_eq!(wait(busy, 1, 1.0, Some(MS(501))), Some(MS(500)));
        assert_eq!(wait(busy, 1, 1.0, Some(MS(500))), None);
    }

    #[test]
    fn what_will_fail_again_is_not_tried_again() {
        use ProviderErrorKind as Kind;
        for kind in [Kind::Unauthorized, Kind::ModelNotFound, Kind::QuotaExceeded, Kind::ContextTooLong] {
            assert_eq!(wait(kind, 1, 0.0, None), None, "{kind:?}");
        }
        for kind in [Kind::ContentFiltered, Kind::Rejected, Kind::TimedOut, Kind::Paused] {
            assert_eq!(wait(kind, 1, 0.0, None), None, "{kind:?}");
        }
        assert_eq!(wait(Kind::ModelFault, 1, 0.0, None), Some(MS(0)));
        assert_eq!(wait(Kind::ModelFault, 2, 0.0, None), None);
        assert_eq!(wait(Kind::Truncated, 3, 0.0, None), Some(MS(0)));
    }

    #[test]
    fn a_vendor_that_says_whether_to_repeat_is_believed() {
        let policy = Policy::new(config::Retry::default());
        let yes = ProviderError { retryable: true, ..ProviderError::new(ProviderErrorKind::Rejected, "x") };
        let busy = ProviderErrorKind::Unavailable { retry_after: None };
        let no = ProviderError { retryable: false, ..ProviderError::new(busy, "x") };
        assert_eq!(policy.wait(&yes, 1, 0.0, None), Some(MS(0)));
        assert_eq!(policy.wait(&no, 1, 0.0, None), None);
    }
}
