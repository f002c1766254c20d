//! The new text, of the old one and where its blocks stand.

use std::ops::Range;

use super::Block;
use super::locate::{Source, Spot};

/// Why there is no new text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The block of that number, from 0 on, stands nowhere.
    NoMatch(usize),
    /// Blocks contradict each other.
    Bad(String),
}

struct Edit {
    /// In bytes of the old text.
    range: Range<usize>,
    /// Whether it begins and ends where lines do.
    is_lines: bool,
    text: String,
    /// Which block it is, from 1 on.
    number: usize,
}

/// The text after all blocks.
///
/// # Errors
/// When one of them does not stand there, or two overlap.
pub(super) fn apply(old: &str, blocks: &[Block<'_>]) -> Result<String, Failure> {
    let source = Source::new(old, blocks);
    let mut edits = Vec::new();
    let mut behind = 0;
    for (at, block) in blocks.iter().enumerate() {
        let spot = source.find(block, behind).ok_or(Failure::NoMatch(at))?;
        if let Spot::Lines(lines) = &spot {
            behind = lines.end;
        }
        edits.push(edit(&source, block, spot, at + 1));
    }
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    for pair in edits.windows(2) {
        let is_whole = blocks[pair[0].number - 1].is_whole() || blocks[pair[1].number - 1].is_whole();
        if is_whole || pair[1].range.start < pair[0].range.end {
            let (a, b) = (pair[0].number.min(pair[1].number), pair[0].number.max(pair[1].number));
            let reason = format!(
                "blocks {a} and {b} overlap: make one of them, or give lines around that tell which place is meant"
            );
            return Err(Failure::Bad(reason));
        }
    }
    let mut new = String::with_capacity(old.len());
    let mut at = 0;
    for edit in &edits {
        new.push_str(&old[at..edit.range.start]);
        // Whole lines behind a last line without an end, be it the text's own or of another block.
        if edit.is_lines && edit.range.start == old.len() && !new.is_empty() && !new.ends_with('\n') {
            new.push_str(source.end_of_line());
        }
        new.push_str(&edit.text);
        at = edit.range.end;
    }
    new.push_str(&old[at..]);
    keep_last_end(old, &mut new, source.end_of_line());
    Ok(new)
}

fn edit(source: &Source<'_>, block: &Block<'_>, spot: Spot, number: usize) -> Edit {
    match spot {
        Spot::Within(range) => {
            Edit { range, is_lines: false, text: block.replacement.join(source.end_of_line()), number }
        }
        Spot::Lines(lines) => {
            let first = source.line(lines.start);
            let end = if first.ends_with("\r\n") {
                "\r\n"
            } else if first.ends_with('\n') {
                "\n"
            } else {
                source.end_of_line()
            };
            let range = source.start(lines.start)..source.start(lines.end);
            let text = block.replacement.iter().flat_map(|line| [*line, end]).collect();
            Edit { range, is_lines: true, text, number }
        }
    }
}

/// Whether the last line has an end stays as it is.
fn keep_last_end(old: &str, new: &mut String, end: &str) {
    if old.is_empty() || new.is_empty() || old.ends_with('\n') == new.ends_with('\n') {
        return;
    }
    if old.ends_with('\n') {
        new.push_str(end);
    } else {
        new.truncate(new.len() - if new.ends_with("\r\n") { 2 } else { 1 });
    }
}

impl Block<'_> {
    fn is_whole(&self) -> bool {
        self.search.is_empty() && self.hunk.is_none()
    }
}
