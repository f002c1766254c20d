//! As what a client wants an answer (`Accept`, RFC 9110 section 12.5.1).

use http::{HeaderMap, header};

/// As what a client wants a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// As it happens.
    Events,
    /// As it happens, each event on a line.
    Lines,
    /// As one document, when it is done.
    Json,
}

/// The format that the client prefers. It gets events unless it prefers JSON or lines to them: libraries that add
/// `application/json` to `*/*` do not mean it.
pub fn wanted(headers: &HeaderMap) -> Wanted {
    let accepts = ranges(headers);
    let [events, json, lines] = ["text/event-stream", "application/json", "application/x-ndjson"]
        .map(|media_type| weight(&accepts, media_type));
    match lines > events.max(json) {
        true => Wanted::Lines,
        false if json > events => Wanted::Json,
        false => Wanted::Events,
    }
}

/// Whether a client takes answers of `media_type`; who says nothing takes anything.
pub fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    !headers.contains_key(header::ACCEPT) || weight(&ranges(headers), media_type) > 0
}

fn ranges(headers: &HeaderMap) -> Vec<&str> {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).collect()
}

/// The weight of a media type in thousandths, by the most specific range that covers it; 0 when none does.
fn weight(accepts: &[&str], media_type: &str) -> u32 {
    let family = media_type.split('/').next().unwrap_or_default();
    let mut best = (0, 0);
    for range in accepts {
        let mut parts = range.split(';').map(str::trim);
        let named = parts.next().unwrap_or_default().to_ascii_lowercase();
        let specificity = match named.as_str() {
            "*/*" => 1,
            named if named == media_type => 3,
            named if named.strip_suffix("/*") == Some(family) => 2,
            _ => continue,
        };
        let q = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        let weight = match q.map(str::parse::<f32>) {
            None => 1000,
            Some(Ok(q)) if (0.0..=1.0).contains(&q) => (q * 1000.0).round() as u32,
            Some(_) => 0,
        };
        if specificity > best.0 {
            best = (specificity, weight);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, header};

    use super::{Wanted, wanted};

    #[test]
    fn a_client_gets_events_unless_it_prefers_json() {
        let rows = [
            ("", Wanted::Events, "no header"),
            ("*/*", Wanted::Events, "curl and fetch"),
            ("text/event-stream", Wanted::Events, "EventSource"),
            ("application/json", Wanted::Json, "requested"),
            ("Application/JSON; charset=utf-8", Wanted::Json, "case and parameters do not matter"),
            ("application/json, text/plain, */*", Wanted::Events, "what some libraries always send"),
            ("application/json, text/event-stream", Wanted::Events, "both alike"),
            ("application/json, text/event-stream;q=0.5", Wanted::Json, "json preferred"),
            ("application/json;q=0.5, text/event-stream", Wanted::Events, "events preferred"),
            ("application/json;q=0", Wanted::Events, "json refused"),
            ("application/*", Wanted::Json, "a range that covers json alone"),
            ("text/*, application/json", Wanted::Events, "a range that covers events"),
            ("application/json;q=x", Wanted::Events, "a weight that is none"),
            ("application/x-ndjson", Wanted::Lines, "requested"),
            ("application/x-ndjson, text/event-stream;q=0.9", Wanted::Lines, "lines preferred"),
            ("application/x-ndjson, text/event-stream", Wanted::Events, "both alike"),
            ("application/x-ndjson;q=0.5, application/json", Wanted::Json, "one document preferred"),
            ("application/x-ndjson, */*", Wanted::Events, "what some libraries always send"),
        ];
        for (accept, expected, reason) in rows {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            assert_eq!(wanted(&headers), expected, "{reason}: {accept:?}");
        }
    }
}
