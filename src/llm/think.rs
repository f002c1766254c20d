//! Reasoning that a server without a reasoning parser leaves in the text: `<think>…</think>` before the answer proper (LM
//! Studio, llama.cpp, older vLLM, Ollama with older models). The tags may be cut anywhere, so a beginning of one is held
//! back until it is whole or turns out to be text; every other text goes on at once.
//!
//! **Invariant:** pure, and linear: each byte is looked at once, whatever the pieces. A tag counts only at the very
//! beginning of an answer and only once: later on it is something the model wrote about. An answer whose template
//! opened the tag for the model, so that only `</think>` comes, looks like text while it streams and stays text.

use crate::chat::stream::StreamEvent;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// The text of one answer so far.
#[derive(Debug, Default)]
pub(super) struct ThinkTags(State);

#[derive(Debug)]
enum State {
    /// Nothing yet but white space and perhaps the first `matched` bytes of [`OPEN`], all held back.
    Start { blank: String, matched: usize },
    /// Between the tags; the first `matched` bytes of [`CLOSE`] are held back.
    Inside { matched: usize },
    /// Behind the closing tag: blank lines are dropped, the beginning of a line that may not stay blank is held back.
    Behind { blank: String },
    /// The rest of the answer is text.
    Text,
}

impl Default for State {
    fn default() -> Self {
        Self::Start { blank: String::new(), matched: 0 }
    }
}

impl ThinkTags {
    /// Takes the next piece of text and adds what it is: text, reasoning, or nothing yet.
    pub(super) fn push(&mut self, piece: String, events: &mut Vec<StreamEvent>) {
        if let State::Text = self.0 {
            return say(StreamEvent::Text, piece, events);
        }
        let mut rest = piece.as_str();
        if let State::Start { blank, matched } = &mut self.0 {
            if *matched == 0 {
                let (space, after) = split_space(rest);
                blank.push_str(space);
                rest = after;
            }
            match read_tag(OPEN, matched, rest) {
                Read::Whole(after) => {
                    rest = after;
                    self.0 = State::Inside { matched: 0 };
                }
                Read::Part => return,
                Read::Other => {
                    let text = [blank.as_str(), &OPEN[..*matched], rest].concat();
                    self.0 = State::Text;
                    return say(StreamEvent::Text, text, events);
                }
            }
        }
        if let State::Inside { matched } = &mut self.0 {
            let mut thinking = String::new();
            let after = read_inside(matched, rest, &mut thinking);
            say(StreamEvent::Thinking, thinking, events);
            let Some(after) = after else { return };
            rest = after;
            self.0 = State::Behind { blank: String::new() };
        }
        if let State::Behind { blank } = &mut self.0 {
            let (space, after) = split_space(rest);
            match space.rsplit_once('\n') {
                Some((_, begun)) => begun.clone_into(blank),
                None => blank.push_str(space),
            }
            if !after.is_empty() {
                let text = [blank.as_str(), after].concat();
                self.0 = State::Text;
                say(StreamEvent::Text, text, events);
            }
        }
    }

    /// Reasoning in a field of its own begins: what was held back at the start is text, and no tag can come any more. Reasoning
    /// that has begun goes on behind it.
    pub(super) fn interrupt(&mut self, events: &mut Vec<StreamEvent>) {
        if let State::Start { blank, matched } = &mut self.0 {
            let text = std::mem::take(blank) + &OPEN[..*matched];
            self.0 = State::Text;
            say(StreamEvent::Text, text, events);
        }
    }

    /// A call begins, or the answer is over: adds what was held back. Without a closing tag all of it was reasoning; what
    /// comes behind a call is text.
    pub(super) fn close(&mut self, events: &mut Vec<StreamEvent>) {
        self.interrupt(events);
        if let State::Inside { matched } = self.0 {
            self.0 = State::Text;
            say(StreamEvent::Thinking, CLOSE[..matched].to_owned(), events);
        }
    }
}

fn say(event: fn(String) -> StreamEvent, text: String, events: &mut Vec<StreamEvent>) {
    if !text.is_empty() {
        events.push(event(text));
    }
}

fn split_space(text: &str) -> (&str, &str) {
    text.split_at(text.len() - text.trim_start().len())
}

/// What the next bytes mean for a tag that is being read.
enum Read<'a> {
    /// The tag is whole; this comes behind it.
    Whole(&'a str),
    /// All the bytes belong to it, and more are needed.
    Part,
    /// It is no tag.
    Other,
}

/// Reads on in `tag`, of which `matched` bytes are there.
fn read_tag<'a>(tag: &str, matched: &mut usize, text: &'a str) -> Read<'a> {
    let missing = &tag[*matched..];
    if let Some(after) = text.strip_prefix(missing) {
        return Read::Whole(after);
    }
    if missing.starts_with(text) {
        *matched += text.len();
        return Read::Part;
    }
    Read::Other
}

/// Adds the reasoning in `text` to `thinking`; what comes behind the closing tag, if that is there. The tag's first byte
/// occurs in it only once, so after a mismatch nothing has to be read again.
fn read_inside<'a>(matched: &mut usize, text: &'a str, thinking: &mut String) -> Option<&'a str> {
    let mut rest = text;
    loop {
        match read_tag(CLOSE, matched, rest) {
            Read::Whole(after) => return Some(after),
            Read::Part => return None,
            // What was held back is reasoning; the tag may begin right behind it.
            Read::Other if *matched > 0 => thinking.push_str(&CLOSE[..std::mem::take(matched)]),
            Read::Other => {
                let first = rest.chars().next().map_or(0, char::len_utf8);
                let next = rest[first..].find('<').map_or(rest.len(), |at| first + at);
                thinking.push_str(&rest[..next]);
                rest = &rest[next..];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reasoning and text of `answer`, cut into pieces of `size` bytes at most; whole characters, as JSON strings are.
    fn split(answer: &str, size: usize) -> (String, String) {
        let (mut tags, mut events) = (ThinkTags::default(), Vec::new());
        let mut rest = answer;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.ceil_char_boundary(size));
            tags.push(piece.to_owned(), &mut events);
            rest = after;
        }
        tags.close(&mut events);
        let (mut thinking, mut text) = (String::new(), String::new());
        for event in events {
            match event {
                StreamEvent::Thinking(piece) => {
                    assert_eq!(text, "", "reasoning comes before text");
                    thinking.push_str(&piece);
                }
                StreamEvent::Text(piece) => text.push_str(&piece),
                other => panic!("{other:?}"),
            }
        }
        (thinking, text)
    }

    #[test]
    fn answers_are_split_the_same_however_they_are_cut() {
        let table = [
            ("<think>Hm.</think>\n\nYes.", "Hm.", "Yes.", "the usual shape"),
            ("\n <think>\nHm.\n</think>Yes.", "\nHm.\n", "Yes.", "white space before it, none behind"),
            ("<think></think>\r\n \n  code", "", "  code", "blank lines go, the indentation of a line stays"),
            ("<think>a</thin</think></think>", "a</thin", "</think>", "a false end, then the real one, then text"),
            ("<think>1 < 2 <</think>é", "1 < 2 <", "é", "angle brackets of the reasoning"),
            ("<think>a<think>b</think>c<think>d</think>", "a<think>b", "c<think>d</think>", "only once"),
            ("<think>never closed </thi", "never closed </thi", "", "unclosed is all reasoning"),
            ("<think>Hm.</think>\n \n", "Hm.", "", "nothing behind it"),
            ("Use <think>x</think>.", "", "Use <think>x</think>.", "not at the beginning"),
            ("<thinking>x", "", "<thinking>x", "another tag"),
            ("  <thin", "", "  <thin", "a tag that never became one"),
            (" \n", "", " \n", "only white space"),
            ("< think>é</think>", "", "< think>é</think>", "not quite the tag"),
            ("Yes.</think> No.", "", "Yes.</think> No.", "a closing tag alone"),
        ];
        for (answer, thinking, text, why) in table {
            for size in [1, 2, 3, 5, 1000] {
                assert_eq!(split(answer, size), (thinking.to_owned(), text.to_owned()), "{why}, by {size}");
            }
        }
    }

    #[test]
    fn text_that_begins_no_tag_is_not_held_back() {
        for (piece, rest) in [("H", "ello"), ("<b", ">"), (" é", "")] {
            let (mut tags, mut events) = (ThinkTags::default(), Vec::new());
            tags.push(piece.to_owned(), &mut events);
            tags.push(rest.to_owned(), &mut events);
            assert!(matches!(&events[0], StreamEvent::Text(text) if text == piece), "{events:?}");
        }
    }

    #[test]
    fn a_call_ends_reasoning_that_is_open() {
        for (before, thinking) in [("<think>Hm.</th", "Hm.</th"), ("<think>Hm.</think>\n", "Hm.")] {
            let (mut tags, mut events) = (ThinkTags::default(), Vec::new());
            tags.push(before.to_owned(), &mut events);
            tags.close(&mut events);
            tags.push("Yes.".to_owned(), &mut events);
            let pieces = |event: &StreamEvent| match event {
                StreamEvent::Thinking(text) => (text.clone(), String::new()),
                StreamEvent::Text(text) => (String::new(), text.clone()),
                other => panic!("{other:?}"),
            };
            let (thoughts, texts): (Vec<_>, Vec<_>) = events.iter().map(pieces).unzip();
            assert_eq!((thoughts.concat().as_str(), texts.concat().as_str()), (thinking, "Yes."));
        }
    }

    #[test]
    fn a_tag_behind_something_else_is_text() {
        let (mut tags, mut events) = (ThinkTags::default(), Vec::new());
        tags.push("\n".to_owned(), &mut events);
        tags.interrupt(&mut events);
        tags.push("<think>x".to_owned(), &mut events);
        tags.close(&mut events);
        let texts: Vec<_> = events.iter().map(|event| format!("{event:?}")).collect();
        assert_eq!(texts, [r#"Text("\n")"#, r#"Text("<think>x")"#]);
    }
}
