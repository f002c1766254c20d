//! Blocks between marks: `------- SEARCH`, `=======`, `+++++++ REPLACE`, and those of merge conflicts.

use super::Block;

/// Fewer of a character make no mark.
const FEWEST: usize = 3;

/// What is told when no block is found.
const FORM: &str = "write each block as \"------- SEARCH\", the lines to find, \"=======\", the lines instead, \
                    \"+++++++ REPLACE\", each mark on a line of its own";

/// What is told when the mark between is one of several lines.
const AMBIGUOUS: &str = "several of its lines may be the mark between: write the first mark and the one between with nine \
                         characters (\"--------- SEARCH\", \"=========\"), or another number that no line of \"=\" in \
                         the text has";

/// The blocks in `lines`. What stands before the first one is talk.
///
/// # Errors
/// When a block has no end, or there is none.
pub(super) fn parse<'a>(lines: &[&'a str]) -> Result<Vec<Block<'a>>, String> {
    let starts = lines.iter().enumerate().filter(|(_, line)| start(line).is_some()).map(|(at, _)| at);
    let starts: Vec<usize> = starts.collect();
    if starts.is_empty() {
        return Err(format!("it has no block: {FORM}"));
    }
    let mut blocks = Vec::new();
    for (number, at) in starts.iter().enumerate() {
        let end = starts.get(number + 1).copied();
        let body = &lines[at + 1..end.unwrap_or(lines.len())];
        let length = start(lines[*at]).unwrap_or_default();
        let block = block(body, length, end.is_some());
        blocks.push(block.map_err(|reason| format!("block {}: {reason}", number + 1))?);
    }
    Ok(blocks)
}

/// The block whose first mark has `length` characters. Another one may come after it.
fn block<'a>(body: &[&'a str], length: usize, is_followed: bool) -> Result<Block<'a>, String> {
    let Some(close) = body.iter().position(|line| is_end(line)) else {
        return Err(format!("its end is missing: {FORM}"));
    };
    let (inside, rest) = (&body[..close], &body[close + 1..]);
    let Some(middle) = middle(inside, length)? else {
        // No mark between: what is to stand there instead follows after the end.
        let rest = rest.strip_suffix(&["```"]).unwrap_or(rest);
        let mut kept = rest.iter().position(|line| is_end(line)).unwrap_or(rest.len());
        while is_followed && kept > 0 && rest[kept - 1].trim().is_empty() {
            kept -= 1;
        }
        return Ok(Block { search: inside.to_vec(), replacement: rest[..kept].to_vec(), hunk: None });
    };
    if let Some(line) = rest.iter().find(|line| !line.trim().is_empty() && !line.starts_with("```")) {
        let line = &line[..line.floor_char_boundary(80)];
        return Err(format!("after its end there is \"{line}\", which belongs to no block"));
    }
    Ok(Block { search: inside[..middle].to_vec(), replacement: inside[middle + 1..].to_vec(), hunk: None })
}

/// Which line is the mark between, if there is one. Lines of `=` also underline headings and divide conflicts of a merge: one
/// as long as the first mark goes before.
///
/// # Errors
/// When it may be any of several.
fn middle(inside: &[&str], length: usize) -> Result<Option<usize>, String> {
    let marks: Vec<_> =
        inside.iter().enumerate().filter_map(|(at, line)| Some((at, marks_of(line, '=', "")?))).collect();
    let is_own = marks.iter().any(|(_, own)| *own == length);
    let mut may_be = marks.iter().filter(|(_, own)| !is_own || *own == length).map(|(at, _)| *at);
    let first = may_be.next();
    match may_be.next() {
        Some(_) => Err(AMBIGUOUS.to_owned()),
        None => Ok(first),
    }
}

fn start(line: &str) -> Option<usize> {
    let line = line.strip_suffix('>').unwrap_or(line);
    marks_of(line, '-', " SEARCH").or_else(|| marks_of(line, '<', " SEARCH"))
}

fn is_end(line: &str) -> bool {
    let line = line.strip_suffix('<').unwrap_or(line);
    marks_of(line, '+', " REPLACE").or_else(|| marks_of(line, '>', " REPLACE")).is_some()
}

/// How many of `mark` are on the line, if it has enough of them, then `word`, and nothing else.
fn marks_of(line: &str, mark: char, word: &str) -> Option<usize> {
    let rest = line.trim_end().strip_suffix(word)?;
    (rest.len() >= FEWEST && rest.chars().all(|c| c == mark)).then_some(rest.len())
}
