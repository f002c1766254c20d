//! Chunks that differ in their text alone, as nearly all chunks of a streamed answer do. The JSON of one is read; of those
//! that follow in the same form, only the text between what stays the same.
//!
//! **Invariant:** the text that a form gives is the one that reading the JSON would give, and all else that the chunk says is
//! what the chunk that it was learned from has said. Without a backslash in it, a chunk has quotes only where texts begin and
//! end, so its one field of a name is found by looking for that name; and whatever is a text without one is another where it
//! stood.

use memchr::memmem;

/// After 8 forms that fitted nothing no other is learned: some servers put a number or a nonce in every chunk.
const MOST_UNUSED: u8 = 8;

/// 4 KiB around a text are kept: ten times what servers send.
const MOST_BYTES: usize = 4 << 10;

/// What stands around the text of an answer's newest chunk.
#[derive(Debug, Default)]
pub(super) struct ChunkTemplate {
    /// Empty where there is none.
    before: String,
    after: String,
    /// How many forms in a row have fitted nothing.
    unused: u8,
}

impl ChunkTemplate {
    /// The text in `chunk`, if it has this form.
    pub(super) fn text<'a>(&mut self, chunk: &'a str) -> Option<&'a str> {
        if self.before.is_empty() {
            return None;
        }
        let text = chunk.strip_prefix(&*self.before)?.strip_suffix(&*self.after)?;
        if !text.bytes().all(|byte| byte >= b' ' && !matches!(byte, b'"' | b'\\')) {
            return None;
        }
        self.unused = 0;
        Some(text)
    }

    /// Learns the form of `chunk`, which says nothing but `text`, in the field `name`; forgets any other where that is empty.
    pub(super) fn learn(&mut self, chunk: &str, name: &str, text: &str) {
        self.before.clear();
        let is_long = chunk.len() - text.len() > MOST_BYTES;
        if is_long || self.unused == MOST_UNUSED || text.is_empty() || memchr::memchr(b'\\', chunk.as_bytes()).is_some()
        {
            return;
        }
        let Some((from, to)) = text_range(chunk, name, text) else { return };
        self.unused += 1;
        self.before.push_str(&chunk[..from]);
        self.after.clear();
        self.after.push_str(&chunk[to..]);
    }
}

/// Where `text` stands in `chunk` as the only value of that name.
fn text_range(chunk: &str, name: &str, text: &str) -> Option<(usize, usize)> {
    let is_at = |at: &usize| {
        let (before, behind) = (&chunk[..*at], &chunk[at + name.len()..]);
        before.ends_with('"') && behind.starts_with('"')
    };
    let mut found = memmem::find_iter(chunk.as_bytes(), name).filter(is_at);
    let (at, None) = (found.next()? + name.len() + 1, found.next()) else { return None };
    let value = chunk[at..].trim_ascii_start().strip_prefix(':')?.trim_ascii_start().strip_prefix('"')?;
    let from = chunk.len() - value.len();
    value.strip_prefix(text)?.starts_with('"').then_some((from, from + text.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn learned(chunk: &str, text: &str) -> ChunkTemplate {
        let mut form = ChunkTemplate::default();
        form.learn(chunk, "content", text);
        form
    }

    #[test]
    fn a_chunk_of_the_same_form_is_read_and_any_other_is_not() {
        let chunk = |text: &str| format!(r#"{{"id": 1, "delta": {{"content": "{text}"}}, "end": null}}"#);
        let rows = [
            (chunk("other"), Some("other"), "another text"),
            (chunk(""), Some(""), "none"),
            (chunk("é\u{2028}, {}[]:"), Some("é\u{2028}, {}[]:"), "signs that mean nothing in a text"),
            (chunk(r"a\n"), None, "an escape"),
            (chunk("a\nb"), None, "a control character, which no text may have"),
            (chunk(r#"a", "b": "c"#), None, "another field"),
            (chunk("x").replace("null", r#""stop""#), None, "another end"),
            (chunk("x").replace("1", "2"), None, "another beginning"),
            (chunk("x") + " ", None, "something behind it"),
            (String::new(), None, "nothing"),
        ];
        let mut form = learned(&chunk("word"), "word");
        for (other, text, why) in rows {
            assert_eq!(form.text(&other), text, "{why}");
        }
    }

    #[test]
    fn a_form_is_learned_only_where_the_text_certainly_stands() {
        let rows = [
            (r#"{"content":"a"}"#, true, "alone"),
            (r#"{"content" : "a"}"#, true, "with spaces"),
            (r#"{"contents":"a","my content":1,"content":"a"}"#, true, "other names"),
            (r#"{"content":"a","x":{"content":"a"}}"#, false, "two of the name"),
            (r#"{"content":"a","type":"content"}"#, false, "the name as a value, too"),
            (r#"{"content":"ab"}"#, false, "the beginning of another text"),
            (r#"{"content":["a"]}"#, false, "no text"),
            (r#"{"con\u0074ent":"a","x":{"content":"a"}}"#, false, "a name in another writing"),
            (r#"{"content":"a","b":"\n"}"#, false, "an escape elsewhere"),
            (r#"{"text":"a"}"#, false, "another name"),
        ];
        for (chunk, is_learned, why) in rows {
            assert_eq!(learned(chunk, "a").text(chunk).is_some(), is_learned, "{why}");
        }
        assert_eq!(learned(r#"{"content":""}"#, "").text(r#"{"content":"a"}"#), None, "of no text there is no form");
    }

    #[test]
    fn a_form_is_kept_up_to_its_bound() {
        for (padding, is_kept) in [(MOST_BYTES - 23, true), (MOST_BYTES - 22, false)] {
            let chunk = format!(r#"{{"content":"a","pad":"{}"}}"#, "x".repeat(padding));
            assert_eq!(learned(&chunk, "a").text(&chunk).is_some(), is_kept, "{}", chunk.len());
        }
    }

    #[test]
    fn forms_that_fit_nothing_are_given_up() {
        let chunk = |nth: u8| format!(r#"{{"content":"a","nonce":{nth}}}"#);
        let mut form = ChunkTemplate::default();
        for nth in 0..MOST_UNUSED {
            form.learn(&chunk(nth), "content", "a");
        }
        assert_eq!(form.text(&chunk(MOST_UNUSED - 1)), Some("a"), "one that fits begins the count anew");
        for nth in 0..=MOST_UNUSED {
            form.learn(&chunk(nth), "content", "a");
        }
        assert_eq!(form.text(&chunk(MOST_UNUSED)), None);
    }

    proptest! {
        #[test]
        fn what_a_form_gives_is_what_the_json_says(first in ".*", second in ".*", key in ".*") {
            let chunk = |text: &str| json!({"a": key, "delta": {"content": text}, key.clone(): 1}).to_string();
            let mut form = learned(&chunk(&first), &first);
            if let Some(text) = form.text(&chunk(&second)) {
                let read: Value = serde_json::from_str(&chunk(&second)).unwrap();
                prop_assert_eq!(&read["delta"]["content"], text);
            }
        }
    }
}
