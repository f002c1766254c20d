//! The unified difference of two texts, as `patch` takes it without fuzz.

mod changes;

#[cfg(test)]
mod tests;

use std::fmt::Write;
use std::ops::Range;

use changes::Change;

/// Lines around a change.
const CONTEXT: usize = 3;

/// A difference in unified form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// Two lines of header, then hunks; empty when the texts are equal. Ends with LF.
    pub text: String,
    /// Lines that begin with `+`.
    pub added: usize,
    /// Lines that begin with `-`.
    pub removed: usize,
}

/// What makes `new` of `old`, under the names that the header is to show, such as `a/x.txt`, `b/x.txt` or `/dev/null`.
///
/// Lines end with LF, and CR is a character like others. Time grows with the size, not with its square.
pub fn unified_diff(old: &str, new: &str, old_name: &str, new_name: &str) -> Diff {
    let lines = Lines { old: old.split_inclusive('\n').collect(), new: new.split_inclusive('\n').collect() };
    let mut diff = Diff { text: String::new(), added: 0, removed: 0 };
    let mut hunk: Vec<Change> = Vec::new();
    for change in changes::of(&lines.old, &lines.new) {
        diff.added += change.new.len();
        diff.removed += change.old.len();
        // Two changes with more between them than both have around them are two hunks.
        if hunk.last().is_some_and(|last| change.old.start - last.old.end > 2 * CONTEXT) {
            lines.write(&hunk, &mut diff.text);
            hunk.clear();
        }
        hunk.push(change);
    }
    lines.write(&hunk, &mut diff.text);
    if !diff.text.is_empty() {
        diff.text.insert_str(0, &format!("--- {}\n+++ {}\n", quoted(old_name), quoted(new_name)));
    }
    diff
}

struct Lines<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
}

impl Lines<'_> {
    fn write(&self, hunk: &[Change], text: &mut String) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { return };
        let before = first.old.start.min(CONTEXT);
        let after = (self.old.len() - last.old.end).min(CONTEXT);
        let old = first.old.start - before..last.old.end + after;
        let new = first.new.start - before..last.new.end + after;
        _ = writeln!(text, "@@ -{} +{} @@", place(&old), place(&new));
        let mut at = old.start;
        for change in hunk {
            self.old[at..change.old.start].iter().for_each(|line| write_line(text, ' ', line));
            self.old[change.old.clone()].iter().for_each(|line| write_line(text, '-', line));
            self.new[change.new.clone()].iter().for_each(|line| write_line(text, '+', line));
            at = change.old.end;
        }
        self.old[at..old.end].iter().for_each(|line| write_line(text, ' ', line));
    }
}

fn write_line(text: &mut String, mark: char, line: &str) {
    text.push(mark);
    text.push_str(line);
    if !line.ends_with('\n') {
        text.push_str("\n\\ No newline at end of file\n");
    }
}

/// Where a hunk begins, from 1 on, and how many lines it has; of none it is told after which line they would stand.
fn place(lines: &Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => (lines.start + 1).to_string(),
        count => format!("{},{count}", lines.start + 1),
    }
}

/// A name that would break the header's line, in quotes as git writes it.
fn quoted(name: &str) -> String {
    if !name.contains(|c: char| c.is_control() || c == '"' || c == '\\') {
        // After a name with blanks a tab tells `patch` where it ends.
        return if name.contains(' ') { format!("{name}\t") } else { name.to_owned() };
    }
    let mut quoted = String::from("\"");
    for c in name.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_ascii_control() => _ = write!(quoted, "\\{:03o}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
