//! What a request asks for and is not done for it. A header of the answer names it; a client that wants all or nothing says so
//! (`Prefer: handling=strict`, RFC 7240), and is refused then.

use http::HeaderMap;

use super::json::{self, Members};
use super::{DecodeError, FieldError};

/// The header that names it.
const HEADER: &str = "x-switchboard-ignored";

/// The preference of clients that want all or nothing.
const STRICT: &str = "handling=strict";

/// The names of what a request asks for in vain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ignored(Vec<&'static str>);

impl Ignored {
    /// Adds a name, once.
    pub fn add(&mut self, name: &'static str) {
        if !self.0.contains(&name) {
            self.0.push(name);
        }
    }

    /// Adds it where that is so.
    pub fn add_if(&mut self, is_so: bool, name: &'static str) {
        if is_so {
            self.add(name);
        }
    }

    /// Adds what `body` asks for of `unknown`: fields that are nobody's here, each with its values that ask for nothing.
    pub(super) fn add_unknown(&mut self, body: &Members<'_>, unknown: &[(&'static str, &[&str])]) {
        for (name, nothing) in unknown {
            let asks = json::given(body.get(name)).is_some_and(|raw| {
                let compact: String = raw.get().split_whitespace().collect();
                !nothing.contains(&compact.as_str())
            });
            self.add_if(asks, name);
        }
    }

    /// Goes on where the client of a request with these headers takes what it gets.
    ///
    /// # Errors
    /// All the names, where it does not.
    pub fn settle(&self, headers: &HeaderMap) -> Result<(), DecodeError> {
        let values = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
        let wants = |value: &str| {
            let preference = value.split(';').next().unwrap_or_default().replace([' ', '\t', '"'], "");
            preference.eq_ignore_ascii_case(STRICT)
        };
        if self.0.is_empty() || !values.flat_map(|value| value.split(',')).any(wants) {
            return Ok(());
        }
        let refuse = |field: &&'static str| FieldError { field, reason: "cannot be honoured here".to_owned() };
        Err(DecodeError::Fields(self.0.iter().map(refuse).collect()))
    }

    /// The header that tells it; `None` where there is nothing to tell.
    pub fn header(&self) -> Option<(&'static str, String)> {
        (!self.0.is_empty()).then(|| (HEADER, self.0.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_client_that_wants_all_or_nothing_is_refused() {
        let mut ignored = Ignored::default();
        ignored.add("stop");
        ignored.add_if(true, "stop");
        ignored.add_if(false, "seed");
        assert_eq!(ignored.header(), Some(("x-switchboard-ignored", "stop".to_owned())));
        let asked = |ignored: &Ignored, prefer: &str| {
            let headers: HeaderMap =
                [(http::header::HeaderName::from_static("prefer"), prefer.parse().unwrap())].into_iter().collect();
            ignored.settle(&headers).is_ok()
        };
        for (prefer, expected, reason) in [
            ("", true, "nothing"),
            ("handling=lenient", true, "whatever comes"),
            ("respond-async, wait=5", true, "something else"),
            ("handling=strict", false, "all or nothing"),
            ("respond-async, Handling = \"strict\"; foo", false, "among others, as it may be written"),
        ] {
            assert_eq!(asked(&ignored, prefer), expected, "{reason}");
        }
        assert!(asked(&Ignored::default(), "handling=strict"), "nothing is in vain");
    }
}
