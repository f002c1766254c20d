//! Which lines of two texts differ, in time that does not grow with the square.

use std::collections::HashMap;
use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput};

/// Up to so many lines, on both sides together, all of them are compared with each other: where they repeat, that takes
/// the square of this in time.
const MOST_LINES: usize = 8_000;

/// The same for each part of a larger text, of which there may be many.
const MOST_LINES_OF_PART: usize = 500;

/// Lines of the old text that become lines of the new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
}

/// All changes in order, with at least one equal line between two of them.
///
/// Large texts are held together by the lines that stand in both just once; a part between two of them that is large
/// itself counts as replaced as a whole.
pub(super) fn of(old: &[&str], new: &[&str]) -> Vec<Change> {
    let mut changes = Vec::new();
    if old.len() + new.len() <= MOST_LINES {
        compare(old, new, (0, 0), &mut changes);
        return changes;
    }
    let (mut old_at, mut new_at) = (0, 0);
    for (old_end, new_end) in common(old, new).into_iter().chain([(old.len(), new.len())]) {
        part(&old[old_at..old_end], &new[new_at..new_end], (old_at, new_at), &mut changes);
        (old_at, new_at) = (old_end + 1, new_end + 1);
    }
    changes
}

/// The changes of a part that begins `at` these lines.
fn part(old: &[&str], new: &[&str], at: (usize, usize), changes: &mut Vec<Change>) {
    let before = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[before..], &new[before..]);
    let after = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[..old.len() - after], &new[..new.len() - after]);
    let at = (at.0 + before, at.1 + before);
    if old.is_empty() && new.is_empty() {
    } else if old.is_empty() || new.is_empty() || old.len() + new.len() > MOST_LINES_OF_PART {
        changes.push(Change { old: at.0..at.0 + old.len(), new: at.1..at.1 + new.len() });
    } else {
        compare(old, new, at, changes);
    }
}

fn compare(old: &[&str], new: &[&str], at: (usize, usize), changes: &mut Vec<Change>) {
    let mut input = InternedInput::default();
    input.update_before(old.iter().copied());
    input.update_after(new.iter().copied());
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let from = |lines: Range<u32>, at: usize| at + lines.start as usize..at + lines.end as usize;
    changes.extend(diff.hunks().map(|hunk| Change { old: from(hunk.before, at.0), new: from(hunk.after, at.1) }));
}

/// Lines that stand in both texts just once, as many as have the same order in both.
fn common(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    let mut places: HashMap<&str, [Option<usize>; 2]> = HashMap::with_capacity(old.len());
    let mut repeated: HashMap<&str, ()> = HashMap::new();
    for (side, lines) in [old, new].into_iter().enumerate() {
        for (at, line) in lines.iter().enumerate() {
            if places.entry(line).or_default()[side].replace(at).is_some() {
                repeated.insert(line, ());
            }
        }
    }
    let once = old.iter().filter(|line| !repeated.contains_key(*line));
    let pairs: Vec<(usize, usize)> = once
        .filter_map(|line| match places.get(line) {
            Some([Some(old), Some(new)]) => Some((*old, *new)),
            _ => None,
        })
        .collect();
    // The longest row of pairs that rises on the new side: for each length the pair that ends such a row lowest.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (number, (_, new)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < *new);
        before.push(length.checked_sub(1).map(|length| ends[length]));
        match ends.get_mut(length) {
            Some(end) => *end = number,
            None => ends.push(number),
        }
    }
    let mut row: Vec<(usize, usize)> = Vec::with_capacity(ends.len());
    let mut at = ends.last().copied();
    while let Some(number) = at {
        row.push(pairs[number]);
        at = before[number];
    }
    row.reverse();
    row
}
