//! Replacing parts of a file by blocks of lines to find and lines instead.
//!
//! ```text
//! diff ─blocks, patch─▶ blocks ─locate─▶ where each stands in the text as it was ─apply─▶ the new text, or nothing
//! ```

mod apply;
mod blocks;
mod locate;
mod patch;

#[cfg(test)]
mod tests;

use super::asked::Asked;
use super::error::FileError;
use super::resolve::Purpose;
use super::{MOST_FILE_BYTES, Root};

/// Each block is looked for in the whole file.
const MOST_BLOCKS: usize = 100;

/// Lines of the file that are shown when a block is not found.
const HEAD_LINES: usize = 20;

/// Bytes of such a line.
const HEAD_LINE_BYTES: usize = 200;

/// What a file of the name `name` says after the edit `diff`, of what it says. Nothing is read or written.
///
/// # Errors
/// As [`Root::replaced`], each as the protocol's code.
pub fn replaced(name: &str, old: &str, diff: &str) -> Result<String, &'static str> {
    edited(name, old, diff, |other| other == name).map_err(|error| error.code())
}

/// Lines to find, and lines that are to stand there instead.
#[derive(Debug, Default, PartialEq, Eq)]
struct Block<'a> {
    search: Vec<&'a str>,
    replacement: Vec<&'a str>,
    /// Where it stands, if it is of a patch. An empty search without it means the whole file.
    hunk: Option<Hunk<'a>>,
}

/// Where a block of a patch stands: behind the one before it, as far as there is such a place.
#[derive(Debug, Default, PartialEq, Eq)]
struct Hunk<'a> {
    /// Lines after which it stands, each behind the one before: a class, and a function in it.
    after: Vec<&'a str>,
    /// Whether it stands at the end of the file, as far as its lines are there.
    is_last: bool,
}

impl Root {
    /// The file's text with all blocks of `diff` applied, or none. They are looked for in the text as it was: exactly, then
    /// without the blanks around lines, then by the first and the last of three and more lines, then as a part of a
    /// line that stands there once. The file's line ends stay. Nothing is written.
    ///
    /// # Errors
    /// Among others `bad_diff`, `no_match` and `no_change`.
    pub fn replaced(&self, path: &str, diff: &str) -> Result<String, FileError> {
        let asked = Asked::parse(path, self)?;
        let is_same = |other: &str| Asked::parse(other, self).is_ok_and(|other| other.names == asked.names);
        let place = self.resolve(&asked, Purpose::Look).map_err(|error| match error {
            FileError::NotADirectory { path } => FileError::NotFound { path },
            error => error,
        })?;
        let bytes = place.read(&asked, MOST_FILE_BYTES + 1)?;
        if bytes.len() as u64 > MOST_FILE_BYTES {
            return Err(FileError::TooLarge { path: asked.shown, most: MOST_FILE_BYTES });
        }
        let old = std::str::from_utf8(&bytes).map_err(|_| FileError::Decode { path: asked.shown.clone() })?;
        edited(&asked.shown, old, diff, is_same)
    }
}

/// The text `old` of a file after the edit `diff`. `is_same` tells whether a path is that of the file, `shown` is it in
/// errors.
fn edited(shown: &str, old: &str, diff: &str, is_same: impl Fn(&str) -> bool) -> Result<String, FileError> {
    let bad = |reason: String| FileError::BadDiff { reason };
    if diff.len() as u64 > 2 * MOST_FILE_BYTES {
        return Err(bad("it is too long".to_owned()));
    }
    let blocks = parse(diff, is_same).map_err(bad)?;
    let new = apply::apply(old, &blocks).map_err(|failure| match failure {
        apply::Failure::NoMatch(block) => {
            FileError::NoMatch { path: shown.to_owned(), block: block + 1, head: head(old) }
        }
        apply::Failure::Bad(reason) => bad(reason),
    })?;
    if new == old {
        return Err(FileError::NoChange { path: shown.to_owned() });
    }
    if new.len() as u64 > MOST_FILE_BYTES {
        return Err(FileError::TooLarge { path: shown.to_owned(), most: MOST_FILE_BYTES });
    }
    Ok(new)
}

/// The blocks of an edit, in either form. `is_same` tells whether a path is that of the file.
///
/// # Errors
/// Words that tell a model what is wrong.
fn parse(diff: &str, is_same: impl Fn(&str) -> bool) -> Result<Vec<Block<'_>>, String> {
    // The file has its own ends of lines: none comes with a line.
    let lines: Vec<&str> = diff.split('\n').map(|line| line.trim_end_matches('\r')).collect();
    let lines = match lines.split_last() {
        Some((&"", before)) => before,
        _ => &lines,
    };
    let blocks = if patch::is_patch(lines) { patch::parse(lines, is_same)? } else { blocks::parse(lines)? };
    if blocks.len() > MOST_BLOCKS {
        return Err(format!("it has {} blocks: send at most {MOST_BLOCKS} at once", blocks.len()));
    }
    Ok(blocks)
}

fn head(text: &str) -> String {
    let lines = text.lines().take(HEAD_LINES).map(|line| &line[..line.floor_char_boundary(HEAD_LINE_BYTES)]);
    lines.collect::<Vec<_>>().join("\n")
}
