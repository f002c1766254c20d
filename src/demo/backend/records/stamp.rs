//! A time as the API writes it: RFC 3339, UTC.

use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::agent::ports::clock::Clock;

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(Timestamp);

impl Stamp {
    /// The clock's present; the epoch, should the clock be outside the calendar.
    pub fn now(clock: &dyn Clock) -> Self {
        Self(Timestamp::from_millisecond(clock.now_ms()).unwrap_or(Timestamp::UNIX_EPOCH))
    }
}

impl FromStr for Stamp {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl Serialize for Stamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Stamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
