//! How JSON is written, for JSON that stands in a text, whole, cut off or between other words: where its parts end.

use super::quote::Quote;

/// Where the object, list, string or number that begins at `at` ends; the end of the text when it was cut off.
pub(super) fn skip(text: &str, mut at: usize) -> usize {
    let bytes = text.as_bytes();
    let mut open = 0_usize;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => open += 1,
            b'}' | b']' => open = open.saturating_sub(1),
            b'"' | b'\'' | b'\\' => {
                at = match Quote::at(text, at) {
                    Some(quote) => match quote.close(text, at + quote.len()) {
                        Some((_, end)) => end,
                        None => return text.len(),
                    },
                    None => at + bytes[at..].iter().take_while(|byte| **byte == b'\\').count().max(1),
                };
                if open == 0 {
                    return at;
                }
                continue;
            }
            _ => {}
        }
        at += 1;
        if open == 0 {
            return at;
        }
    }
    text.len()
}

/// Where the value at `at` ends.
pub(super) fn skip_value(text: &str, at: usize) -> usize {
    if text[at..].starts_with(['{', '[', '"', '\'', '\\']) { skip(text, at) } else { scalar(text, at) }
}

/// Where the bytes of a number or a word end.
pub(super) fn scalar(text: &str, at: usize) -> usize {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
    at + text.as_bytes()[at..].iter().take_while(|byte| fits(byte)).count()
}

/// Whether it is a number in JSON, or begins like one.
pub(super) fn is_number(scalar: &str) -> bool {
    let digits = scalar.strip_prefix('-').unwrap_or(scalar);
    digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'))
}

/// Where spaces end that begin at `at`; in JSON that was quoted, ends of lines are written out.
pub(super) fn spaces(text: &str, mut at: usize) -> usize {
    let bytes = text.as_bytes();
    loop {
        at += bytes[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let slashes = bytes[at..].iter().take_while(|byte| **byte == b'\\').count();
        if slashes == 0 || !matches!(bytes.get(at + slashes), Some(b'n' | b'r' | b't')) {
            return at;
        }
        at += slashes + 1;
    }
}

/// The quote of JSON that was not quoted itself.
pub(super) const PLAIN: Quote = Quote { mark: b'"', slashes: 0 };
