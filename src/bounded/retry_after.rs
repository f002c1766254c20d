//! How long an answer asks to wait before the next request.

use std::time::Duration;

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

/// How long the headers ask to wait: `retry-after-ms`, else `retry-after` in seconds or as a date. `now` stands in for a
/// missing `date`.
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    if let Some(ms) = header(headers, "retry-after-ms").and_then(seconds) {
        return Some(ms / 1000);
    }
    let text = header(headers, RETRY_AFTER.as_str())?;
    if let Some(wait) = seconds(text) {
        return Some(wait);
    }
    let parse = |text: &str| DateTimeParser::new().parse_timestamp(text).ok();
    let now = header(headers, DATE.as_str()).and_then(parse).unwrap_or(now);
    parse(text).map(|until| Duration::try_from(until.duration_since(now)).unwrap_or_default())
}

/// A number of seconds, as headers and bodies write them.
pub fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.trim().parse().ok()?).ok()
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(headers: &[(&'static str, &str)]) -> Option<Duration> {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        retry_after(&headers, "2026-11-20T22:59:00Z".parse().unwrap())
    }

    #[test]
    fn a_wait_is_read_from_whichever_header_has_it() {
        let date = "Fri, 20 Nov 2026 23:00:30 GMT";
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(waits(&[("retry-after-ms", "1500"), ("retry-after", "2")]), ms(1500));
        assert_eq!(waits(&[("retry-after-ms", "soon"), ("retry-after", "2")]), ms(2000), "the readable one counts");
        assert_eq!(waits(&[("retry-after", "0.5")]), ms(500));
        assert_eq!(waits(&[("retry-after", date), ("date", "Fri, 20 Nov 2026 23:00:00 GMT")]), ms(30_000));
        assert_eq!(waits(&[("retry-after", date)]), ms(90_000), "relative to our clock where the server tells no time");
        assert_eq!(waits(&[("retry-after", "Fri, 20 Nov 2020 23:00:30 GMT")]), ms(0), "a date in the past");
        for odd in ["-1", "NaN", "1e300", "soon", ""] {
            assert_eq!(waits(&[("retry-after", odd)]), None, "{odd}");
        }
    }
}
