//! Hunks between `*** Begin Patch` and `*** End Patch`.

use super::{Block, Hunk};

const FORM: &str = "after \"*** Update File: PATH\", write hunks that begin with \"@@\", and each of their lines with \
                    \" \", \"-\" or \"+\"";

/// Whether `lines` are hunks, and not blocks.
pub(super) fn is_patch(lines: &[&str]) -> bool {
    let first = lines.iter().find(|line| !line.trim().is_empty() && !line.starts_with("```"));
    first.is_some_and(|line| line.starts_with("*** Begin Patch") || line.starts_with("*** Update File:"))
}

/// A block for each hunk.
///
/// # Errors
/// When it is for another file, or does more than to update one.
pub(super) fn parse<'a>(lines: &[&'a str], is_same: impl Fn(&str) -> bool) -> Result<Vec<Block<'a>>, String> {
    let mut blocks = Vec::new();
    let mut hunk: Option<Block<'a>> = None;
    let mut is_update = false;
    for line in lines.iter().copied() {
        if line.starts_with("*** End Patch") {
            break;
        }
        if let Some(path) = line.strip_prefix("*** Update File:") {
            if !is_same(path.trim()) {
                return Err("the patch is for another file than path: one call changes one file".to_owned());
            }
            finish(&mut blocks, hunk.take())?;
            is_update = true;
        } else if line.starts_with("*** Begin Patch") {
        } else if line.starts_with("*** End of File") {
            if let Some(hunk) = hunk.as_mut().and_then(|block| block.hunk.as_mut()) {
                hunk.is_last = true;
            }
        } else if line.starts_with("*** ") {
            return Err(
                "the patch does more than to update the file: write or delete files by their own tools".to_owned()
            );
        } else if line.starts_with("@@") {
            // Several in a row tell one place.
            let is_more = |block: &Block<'_>| block.search.is_empty() && block.replacement.is_empty();
            if !hunk.as_ref().is_some_and(is_more) {
                finish(&mut blocks, hunk.replace(empty()))?;
            }
            if let Some(place) = hunk.as_mut().and_then(|block| block.hunk.as_mut()) {
                place.after.extend(header(line));
            }
        } else if is_update {
            let is_between = hunk.is_none() && (line.trim().is_empty() || line.starts_with("```"));
            if !is_between {
                add(hunk.get_or_insert_with(empty), line)?;
            }
        }
    }
    finish(&mut blocks, hunk)?;
    if blocks.is_empty() {
        return Err(format!("the patch has no hunk: {FORM}"));
    }
    Ok(blocks)
}

fn empty<'a>() -> Block<'a> {
    Block { hunk: Some(Hunk::default()), ..Block::default() }
}

/// Adds one line to a hunk, to what is found, to what is to stand there instead, or to both.
fn add<'a>(hunk: &mut Block<'a>, line: &'a str) -> Result<(), String> {
    match line.split_at_checked(1) {
        None => {
            hunk.search.push(line);
            hunk.replacement.push(line);
        }
        Some((" ", line)) => {
            hunk.search.push(line);
            hunk.replacement.push(line);
        }
        Some(("-", line)) => hunk.search.push(line),
        Some(("+", line)) => hunk.replacement.push(line),
        Some(("\\", _)) => {}
        _ => return Err(format!("a line of the patch begins with none of \" \", \"-\" and \"+\": {FORM}")),
    }
    Ok(())
}

fn finish<'a>(blocks: &mut Vec<Block<'a>>, hunk: Option<Block<'a>>) -> Result<(), String> {
    let Some(mut hunk) = hunk else { return Ok(()) };
    // An empty line at the end of a hunk stands between it and the next one; in the hunk it would begin with a blank.
    while hunk.search.last() == Some(&"") && hunk.replacement.last() == Some(&"") && hunk.search.len() > 1 {
        hunk.search.pop();
        hunk.replacement.pop();
    }
    let is_anywhere = hunk.hunk.as_ref().is_none_or(|place| place.after.is_empty() && !place.is_last);
    if hunk.search.is_empty() && is_anywhere {
        return Err("a hunk says nowhere where its lines are to stand: give it lines around them".to_owned());
    }
    blocks.push(hunk);
    Ok(())
}

/// The line that stands before a hunk, such as the beginning of a function. Numbers of lines are no such thing.
fn header(line: &str) -> Option<&str> {
    let line = line.trim_start_matches('@').trim_end_matches('@').trim();
    (!line.is_empty() && !line.starts_with('-')).then_some(line)
}
