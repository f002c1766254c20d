//! Which lines of two texts differ, in time that does not grow with the square.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput, Token};

/// Up to so many lines, on both sides together, all of them are compared with each other: where they repeat, that takes
/// the square of this in time.
const MOST_LINES: usize = 8_000;

/// The same for each part of a larger text, of which there may be many.
const MOST_LINES_OF_PART: usize = 500;

/// Up to so many lines of a part are looked at one by one before they are compared.
const FEW_LINES: usize = 16;

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
    let lines = interned(old, new);
    if old.len() + new.len() <= MOST_LINES {
        compare(&lines, (0, 0), &mut changes);
        return changes;
    }
    let (before, after) = (&lines.before, &lines.after);
    let (mut old_at, mut new_at) = (0, 0);
    for (old_end, new_end) in common(&lines).into_iter().chain([(old.len(), new.len())]) {
        let same = before[old_at..old_end].iter().zip(&after[new_at..new_end]).take_while(|(old, new)| old == new);
        let same = same.count();
        let (old_from, new_from) = (old_at + same, new_at + same);
        let ends = before[old_from..old_end].iter().rev().zip(after[new_from..new_end].iter().rev());
        let same = ends.take_while(|(old, new)| old == new).count();
        let change = Change { old: old_from..old_end - same, new: new_from..new_end - same };
        (old_at, new_at) = (old_end + 1, new_end + 1);
        let (old_lines, new_lines) = (&before[change.old.clone()], &after[change.new.clone()]);
        if old_lines.is_empty() && new_lines.is_empty() {
        } else if is_replaced(old_lines, new_lines) {
            changes.push(change);
        } else {
            let part = interned(&old[change.old.clone()], &new[change.new.clone()]);
            compare(&part, (change.old.start, change.new.start), &mut changes);
        }
    }
    changes
}

/// Lines as numbers, the same for the same.
fn interned<'a>(old: &[&'a str], new: &[&'a str]) -> InternedInput<&'a str> {
    let mut lines = InternedInput::default();
    lines.update_before(old.iter().copied());
    lines.update_after(new.iter().copied());
    lines
}

/// Whether nothing of a part stays, or it is too large for a closer look.
fn is_replaced(old: &[Token], new: &[Token]) -> bool {
    let lines = old.len() + new.len();
    lines > MOST_LINES_OF_PART || (lines <= FEW_LINES && !old.iter().any(|line| new.contains(line)))
}

fn compare(lines: &InternedInput<&str>, at: (usize, usize), changes: &mut Vec<Change>) {
    let mut diff = Diff::compute(Algorithm::Histogram, lines);
    diff.postprocess_lines(lines);
    let from = |lines: Range<u32>, at: usize| at + lines.start as usize..at + lines.end as usize;
    changes.extend(diff.hunks().map(|hunk| Change { old: from(hunk.before, at.0), new: from(hunk.after, at.1) }));
}

/// Where a text has a line.
#[derive(Clone, Copy)]
enum Place {
    Nowhere,
    Once(usize),
    Often,
}

/// Lines that stand in both texts just once, as many as have the same order in both.
fn common(lines: &InternedInput<&str>) -> Vec<(usize, usize)> {
    let count = lines.interner.num_tokens() as usize;
    let [old, new] = [&lines.before, &lines.after].map(|side| {
        let mut places = vec![Place::Nowhere; count];
        for (at, line) in side.iter().enumerate() {
            let place = &mut places[line.0 as usize];
            *place = if let Place::Nowhere = place { Place::Once(at) } else { Place::Often };
        }
        places
    });
    let pairs: Vec<(usize, usize)> = lines
        .before
        .iter()
        .filter_map(|line| match (old[line.0 as usize], new[line.0 as usize]) {
            (Place::Once(old), Place::Once(new)) => Some((old, new)),
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
