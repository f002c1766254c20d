//! Edits of a file's text, and differences between two texts.

use switchboard::workspace::texts::{difference, replaced};

use super::parts;

/// The file of all patches.
const NAME: &str = "x.txt";

/// What an edit can be refused for.
const REFUSALS: [&str; 4] = ["bad_diff", "no_match", "no_change", "too_large"];

/// Edits have at most so many blocks.
const MOST_BLOCKS: usize = 100;

/// What grows with the square of its size would be seen at this one, in bytes.
const LARGE: usize = 1 << 15;

/// A file's text before an edit of it. The edit is taken as a second state of the file, too.
pub fn patches(input: &[u8]) {
    let (old, edit) = parts(input);
    edited(&old, &edit);
    compared(&old, &edit);
    // Not for each input: this takes as long as some hundred others.
    if !old.is_empty() && input.len().is_multiple_of(16) {
        let large = old.repeat(LARGE / old.len() + 1);
        edited(&large, &edit);
        applied(&large, &difference(NAME, &large, &edit));
    }
}

/// An edit is understood and made, or refused as a whole; the ends of lines stay.
fn edited(old: &str, edit: &str) {
    let new = match replaced(NAME, old, edit) {
        Ok(new) => new,
        Err(refusal) => {
            assert!(REFUSALS.contains(&refusal), "{refusal}");
            return;
        }
    };
    assert_ne!(new, old);
    assert!(new.len() <= old.len() + 2 * edit.len() + 2, "{} and {} make {}", old.len(), edit.len(), new.len());
    let (returns, pairs, feeds) = (old.matches('\r').count(), old.matches("\r\n").count(), old.matches('\n').count());
    if returns == 0 {
        assert!(!new.contains("\r\n"), "{new:?}");
    }
    if returns == pairs && pairs == feeds && pairs > 0 {
        assert_eq!(new.matches("\r\n").count(), new.matches('\n').count(), "{new:?}");
    }
    if old.ends_with('\n') {
        assert!(new.is_empty() || new.ends_with('\n'), "{new:?}");
    }
    assert_eq!(applied(old, &difference(NAME, old, &new)), new);
}

/// A difference of ours says how to make `new` of `old`, and is understood as an edit.
fn compared(old: &str, new: &str) {
    let diff = difference(NAME, old, new);
    assert_eq!(applied(old, &diff), new);
    assert_eq!(diff.is_empty(), old == new);
    let mut lines: Vec<&str> = old.lines().collect();
    lines.sort_unstable();
    let is_clear = !old.contains('\r') && !new.contains('\r') && lines.windows(2).all(|pair| pair[0] != pair[1]);
    // Where a line tells its place, and the mark of a hunk is in no line.
    if !is_clear || old.is_empty() || old.contains("@@ -") || new.contains("@@ -") {
        return;
    }
    let hunks: Vec<&str> = diff.split("@@ -").skip(1).map(|hunk| &hunk[hunk.find('\n').unwrap() + 1..]).collect();
    if hunks.len() > MOST_BLOCKS {
        return;
    }
    let ends = |text: &str, end: &str| text.replace('\n', end);
    let expected = with_end_of(old, new);
    for end in ["\n", "\r\n"] {
        // A text of one line without an end has no kind of ends.
        if end == "\r\n" && !old.contains('\n') {
            continue;
        }
        let (old, expected) = (ends(old, end), ends(&expected, end));
        let expected = if old == expected { Err("no_change") } else { Ok(expected) };
        assert_eq!(replaced(NAME, &old, &patch_of(&hunks)), expected, "{diff}");
        if let Some(blocks) = blocks_of(&hunks) {
            assert_eq!(replaced(NAME, &old, &blocks), expected, "{blocks}");
        }
    }
}

/// `new`, whose last line has an end where that of `old` has one.
fn with_end_of(old: &str, new: &str) -> String {
    match (old.ends_with('\n'), new.strip_suffix('\n')) {
        (false, Some(without)) => without.to_owned(),
        (true, None) if !new.is_empty() => format!("{new}\n"),
        _ => new.to_owned(),
    }
}

fn patch_of(hunks: &[&str]) -> String {
    let hunks: String = hunks.iter().map(|hunk| format!("@@\n{hunk}")).collect();
    format!("*** Begin Patch\n*** Update File: {NAME}\n{hunks}*** End Patch\n")
}

/// `None` where a line could be taken for a mark.
fn blocks_of(hunks: &[&str]) -> Option<String> {
    let is_mark = |line: &str| line.contains("SEARCH") || line.contains("REPLACE") || line.contains("===");
    let mut blocks = String::new();
    for hunk in hunks {
        let side = |left_out: char| -> String {
            let lines = hunk.lines().filter(|line| !line.starts_with(left_out) && !line.starts_with('\\'));
            lines.map(|line| format!("{}\n", &line[1..])).collect()
        };
        let (search, replacement) = (side('+'), side('-'));
        if search.lines().chain(replacement.lines()).any(is_mark) {
            return None;
        }
        blocks.push_str(&format!("------- SEARCH\n{search}=======\n{replacement}+++++++ REPLACE\n"));
    }
    Some(blocks)
}

/// What `old` becomes by a unified diff, which has to be exact in each of its lines and numbers.
fn applied(old: &str, diff: &str) -> String {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let (mut at, mut count, mut new) = (0, 0, String::new());
    let mut lines = diff.split_inclusive('\n').skip(2).peekable();
    while let Some(header) = lines.next() {
        let ((old_start, old_count), (new_start, new_count)) = places(header);
        new.extend(old[at..old_start].iter().copied());
        count += old_start - at;
        at = old_start;
        assert_eq!(count, new_start, "{diff}");
        let (old_end, new_end) = (at + old_count, count + new_count);
        while (at, count) != (old_end, new_end) {
            let line = lines.next().unwrap();
            let (mark, mut text) = line.split_at(1);
            if lines.next_if(|next| next.starts_with('\\')).is_some() {
                text = text.strip_suffix('\n').unwrap();
            }
            if mark != "+" {
                assert_eq!(old[at], text, "{diff}");
                at += 1;
            }
            if mark != "-" {
                new.push_str(text);
                count += 1;
            }
            assert!([" ", "-", "+"].contains(&mark) && at <= old_end && count <= new_end, "{diff}");
        }
    }
    new.extend(old[at..].iter().copied());
    new
}

/// Where a hunk begins, from 0 on, and how many lines it has, in the old text and in the new one.
fn places(header: &str) -> ((usize, usize), (usize, usize)) {
    let place = |text: &str| {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        let (start, count): (usize, usize) = (start.parse().unwrap(), count.parse().unwrap());
        (if count == 0 { start } else { start - 1 }, count)
    };
    let (old, new) = header.strip_prefix("@@ -").unwrap().strip_suffix(" @@\n").unwrap().split_once(" +").unwrap();
    (place(old), place(new))
}
