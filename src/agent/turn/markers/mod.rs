//! Data that a model writes in its text: payloads behind their markers, and suggestions. The text before a marker
//! flows; from a possible marker on it waits until that is certain, so that no part of a marker is ever emitted.

mod head;
mod json;
mod judge;

use serde_json::Value;

use self::head::{Decoration, Head, Look};
use self::json::{Scanner, Step};
use self::judge::Marker;
use crate::agent::offer::profile::Profile;
use crate::bounded::json::value;
use crate::chat::answer::{SuggestedAction, SuggestedValue};

/// The markers of suggestions.
pub const SUGGESTIONS: [&str; 2] = ["SUGGESTED_VALUES:", "SUGGESTED_ACTIONS:"];

/// 256 KiB from a marker to the end of its JSON: more is text.
const MOST_HELD: usize = 256 * 1024;

/// 256 bytes of blanks wait for what comes behind them: a marker takes those around it along.
const MOST_BLANK: usize = 256;

/// 20 notes of a turn tell enough.
const MOST_NOTES: usize = 20;

/// Watches the text of one turn after the other.
#[derive(Debug)]
pub struct Markers {
    known: Vec<Marker>,
    /// The text that is not decided yet.
    held: String,
    state: State,
    /// The blanks around markers that were taken out, where nothing was emitted since.
    gap: Option<String>,
    /// Whether something of this turn was emitted.
    has_emitted: bool,
    /// The last character that was emitted.
    last: Option<char>,
    /// Which of the suggestions have come: the first of each kind count.
    suggested: [bool; 2],
    found: Vec<Found>,
    notes: Vec<String>,
}

/// The state of the held text.
#[derive(Debug)]
enum State {
    /// Text, and maybe the beginning of a marker.
    Text,
    /// A marker with the JSON behind it, of which the bytes before `next` were read.
    Json { blank: usize, head: Head, next: usize, scanner: Scanner },
    /// The text behind a marker that was taken out: it may close a decoration before it.
    Closing { blank: String, before: String, head: Head },
}

/// The data in a text.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// Things to say next.
    Values(Vec<SuggestedValue>),
    /// Things to do next.
    Actions(Vec<SuggestedAction>),
    /// A payload of the named type.
    Payload {
        /// The type.
        kind: String,
        /// The data.
        data: Value,
    },
}

/// The end of a turn's text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Closed {
    /// Text that was held back and is no marker.
    pub rest: String,
    /// The data taken out, in order.
    pub found: Vec<Found>,
    /// Notes on texts that looked like a marker and were none, for a diagnosis.
    pub notes: Vec<String>,
}

impl Markers {
    /// Watches for what `profile` lets a model write.
    pub fn from_profile(profile: &Profile) -> Self {
        Self {
            known: Marker::all(profile),
            held: String::new(),
            state: State::Text,
            gap: None,
            has_emitted: false,
            last: None,
            suggested: [false; 2],
            found: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The text that can be emitted now, possibly empty.
    pub fn push(&mut self, text: String) -> String {
        if self.known.is_empty() {
            return text;
        }
        self.held.push_str(&text);
        self.advance(false)
    }

    /// Ends the turn's text.
    pub fn close(&mut self) -> Closed {
        let rest = self.advance(true);
        self.held.clear();
        self.state = State::Text;
        (self.gap, self.has_emitted, self.last) = (None, false, None);
        Closed { rest, found: std::mem::take(&mut self.found), notes: std::mem::take(&mut self.notes) }
    }

    /// Ends the turn's text as if it had not come: drops the held text and what was found.
    pub fn discard(&mut self) {
        self.held.clear();
        self.state = State::Text;
        (self.gap, self.has_emitted, self.last) = (None, false, None);
        self.notes.clear();
        for found in self.found.drain(..) {
            match found {
                Found::Values(_) => self.suggested[0] = false,
                Found::Actions(_) => self.suggested[1] = false,
                Found::Payload { .. } => {}
            }
        }
    }

    /// Decides as much of the held text as possible and returns what is to be emitted. At the end all is decided.
    fn advance(&mut self, end: bool) -> String {
        let mut held = std::mem::take(&mut self.held);
        let (mut out, mut at) = (String::new(), 0);
        loop {
            let rest = &held[at..];
            let used = match std::mem::replace(&mut self.state, State::Text) {
                State::Text => self.text(rest, end, &mut out),
                State::Json { blank, head, next, scanner } => {
                    self.json(rest, end, &mut out, (blank, head, next, scanner))
                }
                State::Closing { blank, before, head } => self.closing(rest, end, &mut out, (blank, before, head)),
            };
            match used {
                Some(used) => at += used,
                None => break,
            }
        }
        if end && self.gap.is_none() {
            out.push_str(&held[at..]);
        }
        held.drain(..at);
        self.held = held;
        out
    }

    /// Looks for a marker at the beginning of `rest`. How much of it is decided; `None` to wait for more.
    fn text(&mut self, rest: &str, end: bool, out: &mut String) -> Option<usize> {
        let blank = rest.bytes().take_while(|b| is_blank(*b)).take(MOST_BLANK + 1).count();
        if blank > MOST_BLANK {
            let (blank, _) = rest.split_at(MOST_BLANK);
            match self.gap.take() {
                Some(gap) => self.gap = Some(wider(&gap, blank).to_owned()),
                None => self.show(out, "", blank),
            }
            return Some(MOST_BLANK);
        }
        let (before, body) = rest.split_at(blank);
        if body.is_empty() {
            return None;
        }
        let in_word = blank == 0 && self.last.is_some_and(is_of_word);
        match head::look(body, &self.known, in_word) {
            Look::Undecided if !end => None,
            Look::Nothing | Look::Undecided => {
                let plain = head::plain(body, &self.known);
                self.show(out, before, &body[..plain]);
                Some(blank + plain)
            }
            Look::Word { marker, end } => {
                self.note(marker, "is not followed by JSON");
                self.show(out, before, &body[..end]);
                Some(blank + end)
            }
            Look::Head(head) => {
                let next = blank + head.json;
                self.state = State::Json { blank, head, next, scanner: Scanner::new() };
                Some(0)
            }
        }
    }

    /// Reads on in the JSON behind a marker.
    fn json(
        &mut self,
        rest: &str,
        end: bool,
        out: &mut String,
        (blank, head, mut next, mut scanner): (usize, Head, usize, Scanner),
    ) -> Option<usize> {
        let wrong = loop {
            match rest.as_bytes().get(next) {
                Some(_) if next >= MOST_HELD => break "is followed by too much",
                Some(byte) => {
                    next += 1;
                    match scanner.push(*byte) {
                        Step::More => {}
                        Step::Done => break "",
                        Step::Wrong => break "is followed by something that is no JSON",
                    }
                }
                None if end => break "is followed by JSON that does not end",
                None => {
                    self.state = State::Json { blank, head, next, scanner };
                    return None;
                }
            }
        };
        let (before, body) = rest.split_at(blank);
        let read = || value(&rest[blank + head.json..next]).ok();
        let Some(value) = wrong.is_empty().then(read).flatten() else {
            self.note(head.marker, if wrong.is_empty() { "is followed by something that is no JSON" } else { wrong });
            self.show(out, before, &body[..head.word_end]);
            return Some(blank + head.word_end);
        };
        match self.judge(head.marker, value) {
            Ok(()) => {
                let (blank, before) = (before.to_owned(), body[..head.word].to_owned());
                self.state = State::Closing { blank, before, head };
            }
            Err(reason) => {
                self.note(head.marker, &reason);
                self.show(out, before, &body[..next - blank]);
            }
        }
        Some(next)
    }

    /// Closes what stood before a marker that was taken out.
    fn closing(
        &mut self,
        rest: &str,
        end: bool,
        out: &mut String,
        (blank, before, head): (String, String, Head),
    ) -> Option<usize> {
        let mut open: &[Decoration] = &head.open;
        let mut used = 0;
        while let Some((last, others)) = open.split_last() {
            let after = &rest[used..];
            let blanks = after.bytes().take_while(|b| is_blank(*b)).take(MOST_BLANK).count();
            let (after, sign) = (&after[blanks..], last.sign());
            if after.starts_with(sign) {
                used += blanks + sign.len();
                open = others;
            } else if sign.starts_with(after) && !end {
                self.state = State::Closing { blank, before, head };
                return None;
            } else {
                break;
            }
        }
        if open.len().min(head.opened_before) > 0 {
            // It does not belong to the marker alone.
            let signs = before.trim_end();
            self.show(out, &blank, signs);
            self.gap = Some(before[signs.len()..].to_owned());
        } else {
            self.gap = Some(match self.gap.take() {
                Some(gap) => wider(&gap, &blank).to_owned(),
                None => blank,
            });
        }
        Some(used)
    }

    /// Shows text, and the blanks before it as they read well where something was taken out.
    fn show(&mut self, out: &mut String, blank: &str, text: &str) {
        match self.gap.take() {
            None => out.push_str(blank),
            Some(_) if !self.has_emitted => {}
            Some(gap) => out.push_str(wider(&gap, blank)),
        }
        out.push_str(text);
        self.has_emitted = true;
        self.last = text.chars().next_back();
    }

    fn note(&mut self, marker: usize, reason: &str) {
        if let Some(marker) = self.known.get(marker)
            && self.notes.len() < MOST_NOTES
        {
            self.notes.push(format!("{} {reason}", marker.word));
        }
    }
}

/// The blanks that stay where something between two of them was taken out: those with more line ends.
fn wider<'a>(before: &'a str, after: &'a str) -> &'a str {
    let lines = |blank: &str| blank.matches('\n').count();
    if lines(after) > lines(before) || before.is_empty() { after } else { before }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Whether a marker behind `c` would be a part of a longer word.
fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests;
