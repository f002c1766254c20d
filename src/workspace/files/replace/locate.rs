//! Where a block stands in a text. Each look takes time that grows with the text only.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;

use memchr::{memchr, memchr_iter, memmem};

use super::{Block, Hunk};

/// Fewer lines are not looked for by their first and last one.
const FEWEST_FOR_ANCHORS: usize = 3;

/// The number of a line that stands in no block.
const NO_LINE: u32 = u32::MAX;

/// A text, as its lines.
pub(super) struct Source<'a> {
    text: &'a str,
    /// With LF at the ends of all lines.
    plain: Cow<'a, str>,
    /// Where lines begin.
    starts: Vec<u32>,
    /// Numbers of all lines that are looked for, without the blanks around them.
    known: HashMap<&'a str, u32>,
    /// The lines of the text by these numbers.
    numbers: OnceCell<Vec<u32>>,
}

/// Where a block stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Spot {
    /// In whole lines.
    Lines(Range<usize>),
    /// In bytes of the text, as a part of lines.
    Within(Range<usize>),
}

impl<'a> Source<'a> {
    /// `text`, in which `blocks` are to be found.
    pub(super) fn new(text: &'a str, blocks: &[Block<'a>]) -> Self {
        let plain = if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) };
        let ends = memchr_iter(b'\n', text.as_bytes()).map(|end| end + 1).filter(|next| *next < text.len());
        // A text has at most 10 MB.
        let starts = std::iter::once(0).filter(|_| !text.is_empty()).chain(ends);
        let starts = starts.map(|start| u32::try_from(start).unwrap_or(NO_LINE)).collect();
        let mut known = HashMap::new();
        for line in blocks.iter().flat_map(|block| &block.search) {
            let number = u32::try_from(known.len()).unwrap_or(NO_LINE);
            known.entry(line.trim()).or_insert(number);
        }
        Self { text, plain, starts, known, numbers: OnceCell::new() }
    }

    /// Where the line begins; the one after the last begins where the text ends.
    pub(super) fn start(&self, line: usize) -> usize {
        self.starts.get(line).map_or(self.text.len(), |start| *start as usize)
    }

    /// How many lines there are.
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// The line, with its end.
    pub(super) fn line(&self, line: usize) -> &'a str {
        &self.text[self.start(line)..self.start(line + 1)]
    }

    /// The first place of the block by the strictest look that finds it. A hunk is looked for from the line `behind` on, and in
    /// the whole text if it is not there.
    pub(super) fn find(&self, block: &Block<'a>, behind: usize) -> Option<Spot> {
        let search = &block.search;
        let Some(hunk) = &block.hunk else {
            return match search.is_empty() {
                true => Some(Spot::Lines(0..self.len())),
                false => self.lines(search, 0).or_else(|| self.within(search)),
            };
        };
        let last = hunk.is_last.then(|| self.len().saturating_sub(search.len()));
        let behind_lines = [behind, 0].map(|line| self.after(hunk, line));
        let froms = || last.into_iter().chain(behind_lines.into_iter().flatten());
        froms().next()?;
        let found = froms().find_map(|from| self.strictly(search, from));
        let found = found.or_else(|| froms().find_map(|from| self.lines(search, from)));
        found.or_else(|| self.within(search))
    }

    /// The line behind those after which a hunk stands, from the line `from` on.
    fn after(&self, hunk: &Hunk<'_>, from: usize) -> Option<usize> {
        hunk.after.iter().try_fold(from, |from, line| {
            let at = (from..self.len()).find(|at| self.line(*at).trim() == *line)?;
            Some(at + 1)
        })
    }

    /// The first of these lines from the line `from` on; with no lines, that place.
    fn lines(&self, search: &[&str], from: usize) -> Option<Spot> {
        let anchored = || self.anchored(search, from).map(|first| Spot::Lines(first..first + search.len()));
        self.strictly(search, from).or_else(anchored)
    }

    /// The same by all lines, and not by the first and the last alone.
    fn strictly(&self, search: &[&str], from: usize) -> Option<Spot> {
        if search.is_empty() {
            return Some(Spot::Lines(from..from));
        }
        let first = self.exactly(search, from).or_else(|| self.trimmed(search, from))?;
        Some(Spot::Lines(first..first + search.len()))
    }

    fn exactly(&self, search: &[&str], from: usize) -> Option<usize> {
        if from >= self.len() {
            return None;
        }
        let start = self.plain_start(from);
        let text = &self.plain[start..];
        let wanted = search.join("\n");
        let at = if text.strip_prefix(&wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('\n')) {
            start
        } else if let Some(at) = memmem::find(text.as_bytes(), format!("\n{wanted}\n").as_bytes()) {
            start + at + 1
        } else if text.ends_with(&format!("\n{wanted}")) {
            self.plain.len() - wanted.len()
        } else {
            return None;
        };
        let line = memchr_iter(b'\n', &self.plain.as_bytes()[..at]).count();
        // Behind the last end of line there is no line.
        (line + search.len() <= self.len()).then_some(line)
    }

    fn plain_start(&self, line: usize) -> usize {
        let mut ends = memchr_iter(b'\n', self.plain.as_bytes());
        line.checked_sub(1).map_or(0, |before| ends.nth(before).map_or(self.plain.len(), |end| end + 1))
    }

    fn numbers(&self) -> &[u32] {
        self.numbers.get_or_init(|| {
            let number = |line| self.known.get(self.line(line).trim()).copied().unwrap_or(NO_LINE);
            (0..self.len()).map(number).collect()
        })
    }

    /// Without going back in the text, whatever repeats in it: what was read of it is known from the search itself.
    fn trimmed(&self, search: &[&str], from: usize) -> Option<usize> {
        let wanted: Vec<u32> = search.iter().map(|line| self.known.get(line.trim()).copied()).collect::<Option<_>>()?;
        // For each beginning of the search, the longest shorter one that it ends with.
        let mut shorter = vec![0; wanted.len()];
        let mut matched = 0;
        for at in 1..wanted.len() {
            while matched > 0 && wanted[at] != wanted[matched] {
                matched = shorter[matched - 1];
            }
            matched += usize::from(wanted[at] == wanted[matched]);
            shorter[at] = matched;
        }
        matched = 0;
        for (at, number) in self.numbers().iter().enumerate().skip(from) {
            while matched > 0 && *number != wanted[matched] {
                matched = shorter[matched - 1];
            }
            matched += usize::from(*number == wanted[matched]);
            if matched == wanted.len() {
                return Some(at + 1 - matched);
            }
        }
        None
    }

    fn anchored(&self, search: &[&str], from: usize) -> Option<usize> {
        let (first, last) = (search.first()?.trim(), search.last()?.trim());
        if search.len() < FEWEST_FOR_ANCHORS || first.is_empty() || last.is_empty() {
            return None;
        }
        let (first, last) = (self.known.get(first)?, self.known.get(last)?);
        let numbers = self.numbers();
        let is_there = |at: &usize| numbers[*at] == *first && numbers[*at + search.len() - 1] == *last;
        (from..(numbers.len() + 1).saturating_sub(search.len())).find(is_there)
    }

    /// As a part of lines, if it stands there only once.
    fn within(&self, search: &[&str]) -> Option<Spot> {
        let wanted = search.join("\n");
        if wanted.trim().is_empty() {
            return None;
        }
        let finder = memmem::Finder::new(&wanted);
        let at = finder.find(self.plain.as_bytes())?;
        if finder.find(&self.plain.as_bytes()[at + 1..]).is_some() {
            return None;
        }
        Some(Spot::Within(self.place(at)..self.place(at + wanted.len())))
    }

    /// The place in the text of a byte in the plain one.
    fn place(&self, at: usize) -> usize {
        let before = &self.plain.as_bytes()[..at];
        let line = memchr_iter(b'\n', before).count();
        let column = memchr::memrchr(b'\n', before).map_or(at, |end| at - end - 1);
        self.start(line) + column
    }

    /// The end of line that the text has first, LF when it has none.
    pub(super) fn end_of_line(&self) -> &'static str {
        match memchr(b'\n', self.text.as_bytes()) {
            Some(end) if self.text[..end].ends_with('\r') => "\r\n",
            _ => "\n",
        }
    }
}
