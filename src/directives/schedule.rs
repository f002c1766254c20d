//! Schedules: directives that are requested again and again, at times of a calendar.
//!
//! **Invariant:** each time is requested once in all processes together: the request's key names it, and the store notes it
//! behind that. A process that dies between the two repeats the request, which finds the directive by its key.

use std::sync::Arc;
use std::time::Duration;

use cronexpr::{Crontab, MakeTimestamp};
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::Desk;
use crate::agent::ports::directives::{AskError, Asked, DirectiveDesk, RequestError};
use crate::agent::ports::schedules::ScheduleStore;
use crate::agent::ports::store_error::StoreError;
use crate::chat::caller::{Bearer, Caller, Owner};
use crate::chat::causes::Causes;
use crate::chat::day::rfc3339;

/// Between two looks at the clock at most: it may be set meanwhile, and machines sleep.
const LOOK: Duration = Duration::from_secs(60);

/// Before the next try where the store has failed.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// How late a time may be that is not caught up: whoever looked a moment too late still requests it.
const GRACE_MS: i64 = 60_000;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

/// How far back the newest time is looked for, the nearest first.
const BACK_MS: [i64; 5] = [2 * MINUTE_MS, 2 * HOUR_MS, 2 * DAY_MS, 64 * DAY_MS, 4 * 366 * DAY_MS];

/// A directive that is requested again and again.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// Its name, which keys and correlations have.
    pub name: String,
    /// When.
    pub times: Times,
    /// The directive.
    pub directive: String,
    /// The arguments of its tool.
    pub payload: Map<String, Value>,
    /// For whom, in each of these tenants; an empty one is of tokens that name none.
    pub tenants: Vec<String>,
    /// In whose name.
    pub user: String,
    /// With which roles.
    pub roles: Vec<String>,
    /// Whether the newest time of those that no process saw is requested afterwards.
    pub catches_up: bool,
}

/// Times of a calendar.
#[derive(Debug, Clone)]
pub struct Times(Crontab);

impl Times {
    /// The times of five fields (minute, hour, day of the month, month, day of the week) in a time zone of the IANA.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn parse(cron: &str, time_zone: &str) -> Result<Self, String> {
        let words = cron.split_whitespace().count();
        if words != 5 {
            return Err(format!("{cron:?} has {words} fields, and times have five"));
        }
        if time_zone.is_empty() || time_zone.contains(char::is_whitespace) {
            return Err(format!("{time_zone:?} is no time zone"));
        }
        let crontab = cronexpr::parse_crontab(&format!("{cron} {time_zone}")).map_err(|error| error.to_string())?;
        let times = Self(crontab);
        // One that never comes is a mistake.
        times.next(0).map(|_| times).ok_or_else(|| format!("{cron:?} never comes"))
    }

    /// The first time behind this one, in milliseconds since the Unix epoch.
    fn next(&self, after_ms: i64) -> Option<i64> {
        let after = MakeTimestamp::from_millisecond(after_ms).ok()?;
        self.0.find_next(after).ok().map(|time| time.timestamp().as_millisecond())
    }

    /// The newest time behind `after_ms`, up to `now_ms`.
    fn newest(&self, after_ms: i64, now_ms: i64) -> Option<i64> {
        BACK_MS.into_iter().find_map(|back_ms| {
            let mut newest = None;
            let mut from = after_ms.max(now_ms.saturating_sub(back_ms));
            while let Some(time) = self.next(from).filter(|time| *time <= now_ms) {
                newest = Some(time);
                from = time;
            }
            newest
        })
    }
}

/// Requests what `schedule` says until the process stops.
pub(super) async fn run(desk: Desk, store: Arc<dyn ScheduleStore>, schedule: Arc<Schedule>) {
    let stopping = desk.0.stopping.clone();
    // The store is asked at first, and when a time has come.
    let mut next_ms = 0;
    while !stopping.is_cancelled() {
        let now_ms = desk.0.clock.now_ms();
        if next_ms <= now_ms {
            match fire(&desk, &*store, &schedule, now_ms).await {
                Ok(()) => next_ms = schedule.times.next(now_ms).unwrap_or(i64::MAX),
                Err(error) => {
                    tracing::error!(schedule = schedule.name, error = %Causes(&error), "a schedule is not seen to");
                    let _ = timeout(AFTER_FAILURE, stopping.cancelled()).await;
                    continue;
                }
            }
        }
        let left = Duration::from_millis(u64::try_from(next_ms.saturating_sub(now_ms)).unwrap_or_default());
        let _ = timeout(LOOK.min(left), stopping.cancelled()).await;
    }
}

/// Requests the newest time that has come and is not requested, if there is one.
async fn fire(desk: &Desk, store: &dyn ScheduleStore, schedule: &Schedule, now_ms: i64) -> Result<(), StoreError> {
    let until = store.fired_until(&schedule.name, now_ms).await?;
    let Some(at_ms) = schedule.times.newest(until, now_ms) else { return Ok(()) };
    if schedule.catches_up || now_ms.saturating_sub(at_ms) <= GRACE_MS {
        for tenant in &schedule.tenants {
            request(desk, schedule, tenant, at_ms).await?;
        }
    }
    store.note_fired(&schedule.name, at_ms).await
}

/// Requests the directive of one tenant for one time.
///
/// # Errors
/// Where that can be tried again.
async fn request(desk: &Desk, schedule: &Schedule, tenant: &str, at_ms: i64) -> Result<(), StoreError> {
    let Schedule { name, directive, payload, user, roles, .. } = schedule;
    let caller = Caller {
        owner: Owner { tenant: tenant.to_owned(), user: user.clone() },
        known_as: None,
        expires_at_ms: None,
        roles: roles.clone(),
        bearer: Bearer::new(""),
        cookie: None,
    };
    let what = format!("schedule:{name}:{}", rfc3339(at_ms));
    let asked = Asked { name: directive, payload, correlation: what.clone(), key: Some(what), scheduled_at_ms: None };
    match desk.ask(asked, &caller).await {
        Ok(_) => Ok(()),
        Err(AskError::Request(RequestError::Store(error))) => Err(error),
        Err(error) => {
            tracing::error!(schedule = name, tenant, error = %error, "a schedule has requested nothing");
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DAY_MS, Times};
    use crate::chat::day::{ms_of, rfc3339};

    fn ms(text: &str) -> i64 {
        ms_of(text).unwrap()
    }

    #[test]
    fn times_come_as_the_clocks_of_their_zone_show_them() {
        let rows = [
            ("0 9 * * *", "UTC", "2026-01-02T08:59:59.999Z", "2026-01-02T09:00:00.000Z", "daily"),
            ("0 9 * * *", "UTC", "2026-01-02T09:00:00Z", "2026-01-03T09:00:00.000Z", "behind it"),
            ("0 9 * * *", "Europe/Berlin", "2026-01-02T00:00:00Z", "2026-01-02T08:00:00.000Z", "in winter"),
            ("0 9 * * *", "Europe/Berlin", "2026-07-02T00:00:00Z", "2026-07-02T07:00:00.000Z", "in summer"),
            ("*/15 * * * *", "UTC", "2026-01-02T00:01:00Z", "2026-01-02T00:15:00.000Z", "each quarter"),
            ("0 0 1 * *", "UTC", "2026-01-02T00:00:00Z", "2026-02-01T00:00:00.000Z", "monthly"),
            ("0 0 * * MON", "UTC", "2026-01-02T00:00:00Z", "2026-01-05T00:00:00.000Z", "on Mondays"),
        ];
        for (cron, zone, after, next, reason) in rows {
            let times = Times::parse(cron, zone).unwrap();
            assert_eq!(times.next(ms(after)).map(rfc3339).as_deref(), Some(next), "{reason}");
        }
    }

    #[test]
    fn the_newest_time_of_a_gap_is_found_however_long_it_was() {
        let now = ms("2026-11-25T10:07:30Z");
        let rows = [
            ("* * * * *", now - 3 * 366 * DAY_MS, Some("2026-11-25T10:07:00.000Z"), "each minute, after years"),
            ("0 9 * * *", now - DAY_MS, Some("2026-11-25T09:00:00.000Z"), "daily"),
            ("0 0 29 2 *", now - 3 * 366 * DAY_MS, Some("2024-02-29T00:00:00.000Z"), "a leap day"),
            ("0 9 * * *", ms("2026-11-25T09:00:00Z"), None, "it was requested"),
            ("0 9 * * *", now + DAY_MS, None, "another process has a later clock"),
        ];
        for (cron, after, newest, reason) in rows {
            let times = Times::parse(cron, "UTC").unwrap();
            assert_eq!(times.newest(after, now).map(rfc3339).as_deref(), newest, "{reason}");
        }
    }

    #[test]
    fn what_is_no_time_is_a_mistake() {
        for (cron, zone) in [
            ("0 9 * *", "UTC"),
            ("0 0 9 * * *", "UTC"),
            ("60 9 * * *", "UTC"),
            ("0 9 * * *", "Mars/Base"),
            ("0 9 * * *", ""),
            ("0 0 31 2 *", "UTC"),
            ("", "UTC"),
        ] {
            assert!(Times::parse(cron, zone).is_err(), "{cron:?} {zone:?}");
        }
    }
}
