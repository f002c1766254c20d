//! The key by which a backend can tell a repeated write from a second one: the run and the call, as one header value.

use crate::chat::digest::sha256_hex;
use crate::chat::ids::{RunId, ToolCallId};

/// 128 bytes of a call's id stay readable: with the run's id that is far below the 255 that backends accept.
const MAX_ID_BYTES: usize = 128;

/// `<run id>.<call id>`. The ids of calls are the models' own, of any length and alphabet: one that a header cannot
/// carry, or that is too long, is replaced by `~` and its SHA-256 in hex. No readable id begins so, and different calls
/// keep different keys.
pub fn key(run: RunId, call: &ToolCallId) -> String {
    let id = call.as_str();
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-');
    let mut key = format!("{run}.");
    if !id.is_empty() && id.len() <= MAX_ID_BYTES && id.bytes().all(is_plain) {
        key.push_str(id);
        return key;
    }
    key.push('~');
    key + &sha256_hex(id.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_run_and_call_and_is_always_a_header_value() {
        let run = RunId::parse("0190aaaa-0000-7000-8000-000000000001").unwrap();
        let longest = "a".repeat(128);
        let hashed = |hex: &str| format!("~{hex}");
        let rows = [
            ("call_1", "call_1".to_owned(), "a usual id"),
            ("toolu_01:A-b.c", "toolu_01:A-b.c".to_owned(), "all signs of the alphabet"),
            (&longest, longest.clone(), "the longest"),
            ("", hashed("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"), "empty"),
            (
                "a b",
                hashed("c8687a08aa5d6ed2044328fa6a697ab8e96dc34291e8c2034ae8c38e6fcc6d65"),
                "a blank, which some servers trim",
            ),
            (
                "a\r\nx: y",
                hashed("a727fc4e26ae15b5c5e2799a0d7b9a3daaf044ddd14f0652d129bb9076f6688b"),
                "a header of its own",
            ),
            ("ü", hashed("607474ca475a9724d7360aba71a56d5df77e61350e3f724cfa1f46e857e2d85f"), "not ASCII"),
            ("~a", hashed("8d5679ec94e658e1de328401393caa90b352cc5bc28b6a3601f38f7fdf1de3cb"), "the mark itself"),
        ];
        for (call, expected, reason) in rows {
            assert_eq!(key(run, &ToolCallId::from_model(call)), format!("{run}.{expected}"), "{reason}");
        }
        let signature = |last: &str| key(run, &ToolCallId::from_model("s".repeat(64 << 10) + last));
        assert_eq!(signature("a").len(), 36 + 1 + 65, "however long the id is");
        assert_ne!(signature("a"), signature("b"), "different at their very end");
    }
}
