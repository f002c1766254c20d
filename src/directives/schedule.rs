//! Schedules: directives that are requested again and again, at times of a calendar.
//!
//! **Invariant:** each time is requested once in all processes together: the request's key names it, and the store notes it
//! behind that. A process that dies between the two repeats the request, which finds the directive by its key.

use std::sync::Arc;
use std::time::Duration;

use cronexpr::{Crontab, MakeTimestamp};
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};
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

/// Clocks go forward or back by less.
const CHANGE: SignedDuration = SignedDuration::from_hours(4);

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

/// Times of a calendar, as the clocks of a zone show them.
///
/// Where clocks go forward, a time that they leave out comes as much later. Where they go back, a time that they show twice
/// comes once, the first time; times of each hour or each minute come whenever clocks show them.
#[derive(Debug, Clone)]
pub struct Times {
    /// As if there were no zones: the library's own way through a change of clocks does not end in some of them.
    calendar: Crontab,
    decembers: Option<Decembers>,
    zone: TimeZone,
    /// Whether they are of each hour, or of each minute.
    is_often: bool,
}

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
        let calendar = cronexpr::parse_crontab(&format!("{cron} UTC")).map_err(|error| error.to_string())?;
        let zone = TimeZone::get(time_zone).map_err(|error| error.to_string())?;
        let is_often = cron.split_whitespace().take(2).any(|field| field.starts_with('*'));
        let times = Self { calendar, decembers: Decembers::parse(cron), zone, is_often };
        // One that never comes is a mistake.
        times.next(0).map(|_| times).ok_or_else(|| format!("{cron:?} never comes"))
    }

    /// The first time behind this one, in milliseconds since the Unix epoch.
    fn next(&self, after_ms: i64) -> Option<i64> {
        let after = Timestamp::from_millisecond(after_ms).ok()?;
        let shown = |shift: SignedDuration| Some(self.zone.to_datetime(after.checked_add(shift).ok()?));
        let [before, now, behind] = [shown(-CHANGE)?, shown(SignedDuration::ZERO)?, shown(CHANGE)?];
        let is_change = now.duration_since(before) != CHANGE || behind.duration_since(now) != CHANGE;
        // Near a change what clocks show later may come first.
        let (mut shown, last) = if is_change { (before, now.max(behind)) } else { (now, now) };
        let mut first: Option<Timestamp> = None;
        loop {
            let found = self.shown_behind(shown)?;
            if found > last
                && let Some(first) = first
            {
                return Some(first.as_millisecond());
            }
            let time = self.zone.to_ambiguous_timestamp(found);
            let again = match time.offset() {
                AmbiguousOffset::Fold { .. } if self.is_often => time.later().ok(),
                _ => None,
            };
            let times = [time.compatible().ok(), again].into_iter().flatten().filter(|time| *time > after);
            first = first.into_iter().chain(times).min();
            shown = found;
        }
    }

    /// The first time behind this one that clocks show.
    fn shown_behind(&self, shown: DateTime) -> Option<DateTime> {
        let of_december = self.decembers.as_ref().and_then(|decembers| decembers.behind(shown));
        find(&self.calendar, shown).into_iter().chain(of_december).min()
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

/// The times of Decembers, where they have an `L`. The library (cronexpr 1.7.0) takes a day for a last one where the number of
/// the month grows behind it, and so knows none in December. It is asked of a January with the same days of the week.
#[derive(Debug, Clone)]
struct Decembers(Crontab);

impl Decembers {
    /// `None` where the library needs no help.
    fn parse(cron: &str) -> Option<Self> {
        let fields: Vec<&str> = cron.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else { return None };
        let months = cronexpr::parse_crontab(&format!("* * * {month} * UTC")).ok()?;
        let is_needed = [day, weekday].iter().any(|field| field.contains(['L', 'l']));
        if !is_needed || !months.matches("2026-12-01T00:00:00Z").ok()? {
            return None;
        }
        cronexpr::parse_crontab(&format!("{minute} {hour} {day} 1 {weekday} UTC")).ok().map(Self)
    }

    /// The first of their times behind this one, within the years in which the library looks.
    fn behind(&self, shown: DateTime) -> Option<DateTime> {
        (shown.year()..).take(5).find_map(|year| {
            let december = Date::new(year, 12, 1).ok()?.to_datetime(Time::midnight());
            // All days of the week are among these.
            let mut januaries = (2001..=2010).filter_map(|year| Date::new(year, 1, 1).ok());
            let january = januaries.find(|day| day.weekday() == december.weekday())?;
            let apart = december.duration_since(january.to_datetime(Time::midnight()));
            let from = shown.max(december.checked_sub(SignedDuration::from_secs(1)).ok()?);
            let found = find(&self.0, from.checked_sub(apart).ok()?)?.checked_add(apart).ok()?;
            (found.year() == year && found.month() == 12).then_some(found)
        })
    }
}

/// The first time of a calendar behind this one.
fn find(calendar: &Crontab, shown: DateTime) -> Option<DateTime> {
    let as_utc = TimeZone::UTC.to_timestamp(shown).ok()?.as_millisecond();
    let found = calendar.find_next(MakeTimestamp::from_millisecond(as_utc).ok()?).ok()?;
    Some(TimeZone::UTC.to_datetime(Timestamp::from_millisecond(found.timestamp().as_millisecond()).ok()?))
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
            ("30 2 * * *", "Europe/Berlin", "2026-10-24T22:00:00Z", "2026-10-25T00:30:00.000Z", "what is shown twice"),
            ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00.000Z", "comes once"),
            ("*/15 * * * *", "Europe/Berlin", "2026-10-25T00:45:00Z", "2026-10-25T01:00:00.000Z", "each quarter comes"),
            ("*/15 * * * *", "Europe/Berlin", "2026-10-25T01:45:00Z", "2026-10-25T02:00:00.000Z", "and goes on"),
            ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:30:00.000Z", "what is left out"),
            ("30 2 * * *", "Europe/Berlin", "2026-03-29T01:30:00Z", "2026-03-30T00:30:00.000Z", "comes as much later"),
            (
                "*/15 * * * *",
                "Europe/Berlin",
                "2026-03-29T00:45:00Z",
                "2026-03-29T01:00:00.000Z",
                "no quarter is missing",
            ),
            ("0 5 * * *", "Australia/Lord_Howe", "2027-04-03T10:00:00Z", "2027-04-03T18:30:00.000Z", "by half an hour"),
            ("0 0 L * *", "UTC", "2026-10-31T00:00:00Z", "2026-11-30T00:00:00.000Z", "the last day of a month"),
            ("0 0 L * *", "UTC", "2026-11-30T00:00:00Z", "2026-12-31T00:00:00.000Z", "of December too"),
            ("0 0 L * *", "UTC", "2026-12-31T00:00:00Z", "2027-01-31T00:00:00.000Z", "and on it goes"),
            ("0 0 L 12 *", "UTC", "2026-12-31T00:00:00Z", "2027-12-31T00:00:00.000Z", "of December alone"),
            ("0 0 L 1-11 *", "UTC", "2026-11-30T00:00:00Z", "2027-01-31T00:00:00.000Z", "of all but December"),
            ("0 0 17W,L * *", "UTC", "2026-11-30T00:00:00Z", "2026-12-17T00:00:00.000Z", "what else there is in it"),
            ("59 23 L * *", "America/New_York", "2026-12-01T05:00:00Z", "2027-01-01T04:59:00.000Z", "in its zone"),
            ("0 9 * * 5L", "UTC", "2026-11-27T09:00:00Z", "2026-12-25T09:00:00.000Z", "the last Friday, the fourth"),
            ("0 9 * * FRIL", "UTC", "2027-11-26T09:00:00Z", "2027-12-31T09:00:00.000Z", "the last Friday, the fifth"),
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
            ("0 0 L 12 *", now - 3 * 366 * DAY_MS, Some("2025-12-31T00:00:00.000Z"), "the last day of a year"),
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
