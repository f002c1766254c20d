//! Times and days in UTC: by days what users have used is added up.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;
use jiff::{Span, Timestamp, Unit};

/// A time in milliseconds since the epoch as RFC 3339 text in UTC, to the millisecond.
pub fn rfc3339(ms: i64) -> String {
    format!("{:.3}", Timestamp::from_millisecond(ms).unwrap_or_default())
}

/// The time in such a text, in milliseconds since the epoch.
pub fn ms_of(text: &str) -> Option<i64> {
    Timestamp::from_str(text).ok().map(Timestamp::as_millisecond)
}

/// Milliseconds of a day; UTC has no other ones here.
const DAY_MS: i64 = 86_400_000;

/// A day: whole days since 1970-01-01, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i64);

/// From one day to another, both among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Days {
    /// The first.
    pub from: Day,
    /// The last.
    pub to: Day,
}

impl Day {
    /// The day of a time, in milliseconds since the epoch.
    pub fn of_ms(ms: i64) -> Self {
        Self(ms.div_euclid(DAY_MS))
    }

    /// When it begins, in milliseconds since the epoch.
    pub fn begins_ms(self) -> i64 {
        self.0.saturating_mul(DAY_MS)
    }

    /// The day so many days later.
    pub fn plus(self, days: i64) -> Self {
        Self(self.0.saturating_add(days))
    }

    /// The month that it is in.
    pub fn month(self) -> Days {
        let date = self.date();
        let day = |date: Date| Self::of_date(date).unwrap_or(self);
        Days { from: day(date.first_of_month()), to: day(date.last_of_month()) }
    }

    /// The day that `text` names, such as `2026-11-22`; `None` where it names none.
    pub fn parse(text: &str) -> Option<Self> {
        let is_plain = text.len() == 10 && text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        Self::of_date(Date::from_str(text).ok().filter(|_| is_plain)?)
    }

    fn of_date(date: Date) -> Option<Self> {
        let since = epoch().until((Unit::Day, date)).ok()?;
        Some(Self(i64::from(since.get_days())))
    }

    /// A day that the calendar does not reach is the epoch's.
    fn date(self) -> Date {
        let span = Span::new().try_days(self.0).ok();
        span.and_then(|span| epoch().checked_add(span).ok()).unwrap_or_else(epoch)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.date(), f)
    }
}

fn epoch() -> Date {
    Date::constant(1970, 1, 1)
}

#[cfg(test)]
mod tests {
    use super::{Day, Days};

    #[test]
    fn days_and_months_are_those_of_the_calendar() {
        let rows = [
            ("1970-01-01", 0, "1970-01-01", "1970-01-31"),
            ("1969-12-31", -1, "1969-12-01", "1969-12-31"),
            ("2024-02-29", 19_782, "2024-02-01", "2024-02-29"),
            ("2026-11-22", 20_779, "2026-11-01", "2026-11-30"),
        ];
        for (text, number, from, to) in rows {
            let day = Day::parse(text).unwrap();
            assert_eq!((day, day.to_string()), (Day(number), text.to_owned()));
            assert_eq!(day.month(), Days { from: Day::parse(from).unwrap(), to: Day::parse(to).unwrap() }, "{text}");
            assert_eq!(Day::of_ms(day.begins_ms() + 86_399_999), day);
            assert_eq!(Day::of_ms(day.begins_ms() - 1), day.plus(-1));
        }
        for wrong in ["", "2026-02-30", "2026-1-1", "2026-11-22T00:00", "20261122", "-00026-01-01", "x"] {
            assert_eq!(Day::parse(wrong), None, "{wrong:?}");
        }
    }
}
