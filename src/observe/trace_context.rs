//! W3C Trace Context (<https://www.w3.org/TR/trace-context/>): the header that ties our spans to those of our clients
//! us, and of whom we ask.
//!
//! **Invariant:** what is not exactly a `traceparent` is as good as none: a client cannot put a word of its own into a
//! trace. `tracestate`, which could carry anything, is not taken and not sent.

use std::fmt;

/// The header's name.
pub const TRACEPARENT: &str = "traceparent";

/// The parent of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace, never 0.
    pub trace: u128,
    /// The span above, never 0.
    pub span: u64,
    /// Whether whoever asks keeps the trace.
    pub is_sampled: bool,
}

impl TraceParent {
    /// The context in a header's value; `None` where it is none. Versions that we do not know are read as far as the
    /// first one goes, as the standard asks.
    pub fn parse(text: &str) -> Option<Self> {
        let (version, rest) = text.split_at_checked(2)?;
        let version = u8::try_from(hex(version)?).ok()?;
        let (fields, more) = rest.split_at_checked(53)?;
        let is_whole = match version {
            0 => more.is_empty(),
            0xff => false,
            _ => more.is_empty() || more.starts_with('-'),
        };
        let mut fields = fields.strip_prefix('-')?.split('-');
        let (trace, span, flags) = (fields.next()?, fields.next()?, fields.next()?);
        let has_lengths = (trace.len(), span.len(), flags.len()) == (32, 16, 2) && fields.next().is_none();
        if !is_whole || !has_lengths {
            return None;
        }
        let (trace, span) = (hex(trace)?, u64::try_from(hex(span)?).ok()?);
        let is_sampled = hex(flags)? & 1 == 1;
        (trace != 0 && span != 0).then_some(Self { trace, span, is_sampled })
    }
}

/// The number that lower-case hexadecimal digits stand for; at most 32 of them.
fn hex(digits: &str) -> Option<u128> {
    let is_hex = digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    is_hex.then(|| u128::from_str_radix(digits, 16).ok()).flatten()
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace, span, is_sampled } = self;
        write!(f, "00-{trace:032x}-{span:016x}-{:02x}", u8::from(*is_sampled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_standard_calls_a_traceparent_is_one() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let read = TraceParent {
            trace: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
            span: 0x00f0_67aa_0ba9_02b7,
            is_sampled: true,
        };
        let rows = [
            (good.to_owned(), Some(read), "as the standard's own example"),
            (good.replace("-01", "-00"), Some(TraceParent { is_sampled: false, ..read }), "not sampled"),
            (good.replace("-01", "-03"), Some(read), "other flags are nothing to us"),
            (good.replacen("00-", "cc-", 1), Some(read), "a later version"),
            (format!("{}-what-comes-later", good.replacen("00-", "cc-", 1)), Some(read), "with more in it"),
            (format!("{}x", good.replacen("00-", "cc-", 1)), None, "more without a dash"),
            (format!("{good}-more"), None, "this version has no more"),
            (good.replacen("00-", "ff-", 1), None, "a version that is forbidden"),
            (good.to_uppercase(), None, "capitals"),
            (good.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)), None, "no trace"),
            (good.replace("00f067aa0ba902b7", &"0".repeat(16)), None, "no span"),
            (good.replace("4bf9", "+bf9"), None, "a sign is no digit"),
            (good.replace("-01", "-1"), None, "too short"),
            ("00-ünicode".to_owned(), None, "not even ascii"),
            (String::new(), None, "nothing"),
        ];
        for (text, expected, reason) in rows {
            assert_eq!(TraceParent::parse(&text), expected, "{reason}: {text}");
        }
        assert_eq!(read.to_string(), good);
    }
}
