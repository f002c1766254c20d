//! Lines of a text, and what is shown of those around a match.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memrchr};

/// Lines before and after a match that are shown.
const AROUND: usize = 2;

/// Longer lines are cut where they are shown, in bytes.
const MOST_SHOWN_BYTES: usize = 1_000;

/// Of a line that is cut, what is shown in front of the match, in bytes.
const BEFORE_MATCH_BYTES: usize = 200;

/// The line around the byte `at`: its bytes without its end, and where the next one begins.
pub(super) fn line_at(text: &str, at: usize) -> (Range<usize>, usize) {
    let bytes = text.as_bytes();
    let start = memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1);
    let next = memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end + 1);
    (start..start + without_end(&text[start..next]).len(), next)
}

/// All lines, without their ends.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let range = start..start + without_end(line).len();
        start += line.len();
        range
    })
}

fn without_end(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

/// Counts lines from one match to the next.
pub(super) struct Counter<'a> {
    text: &'a str,
    at: usize,
    lines: usize,
}

impl<'a> Counter<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, lines: 1 }
    }

    /// The number of the line, from 1 on, that begins at `start`, which is not before the last one.
    pub(super) fn line(&mut self, start: usize) -> usize {
        self.lines += memchr_iter(b'\n', &self.text.as_bytes()[self.at..start]).count();
        self.at = start;
        self.lines
    }
}

/// The `line` with up to two lines before and after it, joined by LF. Where lines are too long, they are cut: this one so
/// that the match, which begins at `matched`, is shown.
pub(super) fn context(text: &str, line: &Range<usize>, matched: usize) -> String {
    let mut shown = Vec::new();
    let mut start = line.start;
    while start > 0 && shown.len() < AROUND {
        let (before, _) = line_at(text, start - 1);
        start = before.start;
        shown.push(cut(&text[before], 0));
    }
    shown.reverse();
    shown.push(cut(&text[line.clone()], matched - line.start));
    let mut next = line_at(text, line.end.min(text.len())).1;
    for _ in 0..AROUND {
        if next >= text.len() {
            break;
        }
        let (after, then) = line_at(text, next);
        shown.push(cut(&text[after], 0));
        next = then;
    }
    shown.join("\n")
}

fn cut(line: &str, matched: usize) -> String {
    if line.len() <= MOST_SHOWN_BYTES {
        return line.to_owned();
    }
    let start = line.floor_char_boundary(matched.saturating_sub(BEFORE_MATCH_BYTES));
    let end = line.floor_char_boundary(start + MOST_SHOWN_BYTES);
    let before = if start > 0 { "…" } else { "" };
    let after = if end < line.len() { "…" } else { "" };
    format!("{before}{}{after}", &line[start..end])
}
