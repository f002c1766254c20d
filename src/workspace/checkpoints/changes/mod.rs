//! What differs between two snapshots, as a page shows it.

use super::store::{self, Id, Kind, Leaf, Store};
use super::{CheckpointError, Checkpoints};
use crate::bounded::memory::Reservation;
use crate::workspace::diff::unified_diff;

/// 1 MiB a side: what is longer is not shown.
const MOST_SIDE_BYTES: usize = 1 << 20;

/// 64 MiB of diffs and contents in one list: what comes after is told without them.
const MOST_TOTAL_BYTES: usize = 64 << 20;

/// What it takes at most to find out how one file differs: both sides, their lines and the diff.
const WORKING_BYTES: usize = 8 * MOST_SIDE_BYTES;

/// The first 8 KiB tell whether a file is text, as in git.
const BEGINNING_BYTES: usize = 8 << 10;

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It was not there.
    Added,
    /// Its content, its executable bit, or what it is (a file, a link) is another one.
    Modified,
    /// It is not there any more.
    Deleted,
}

/// A file that differs. A link counts as text: where it leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// The path relative to the project's folder; what is no UTF-8 of it is shown as U+FFFD.
    pub path: String,
    /// The path's bytes.
    pub raw_path: Vec<u8>,
    /// What happened.
    pub status: Status,
    /// Lines that are new.
    pub additions: usize,
    /// Lines that are gone.
    pub deletions: usize,
    /// How to get from the old text to the new one; only for modified text, and not when only its mode is another one.
    pub diff: Option<String>,
    /// The old text; only for modified and deleted text.
    pub base_content: Option<String>,
    /// Whether one side is no text: it has a NUL in its first 8 KiB, or is no UTF-8.
    pub is_binary: bool,
    /// Whether one side is over 1 MiB, or the list is too long already to show more.
    pub is_too_large: bool,
}

impl ChangedFile {
    /// The memory that it takes.
    fn bytes(&self) -> usize {
        let texts = [&self.diff, &self.base_content].into_iter().flatten().map(String::len);
        size_of::<Self>() + self.path.len() + self.raw_path.len() + texts.sum::<usize>()
    }
}

impl Checkpoints {
    /// The files that differ between two trees, sorted by the bytes of their paths, with memory for them in `held`.
    ///
    /// # Errors
    /// A tree is unknown, what is kept is damaged or cannot be read, or there is no memory for it.
    pub(super) fn differing(
        &self,
        from: Id,
        to: Id,
        held: &mut Reservation,
    ) -> Result<Vec<ChangedFile>, CheckpointError> {
        let mut found = Vec::new();
        store::differences(&self.store, Some(from), Some(to), &mut |path, old, new| {
            found.push((path.to_vec(), old, new));
        })?;
        found.sort_unstable_by(|(a, ..), (b, ..)| a.cmp(b));
        let mut left = MOST_TOTAL_BYTES;
        let mut files = Vec::with_capacity(found.len());
        for (path, old, new) in found {
            let kept = held.bytes();
            held.grow(WORKING_BYTES)?;
            let file = changed(&self.store, path, old, new, &mut left)?;
            held.shrink_to(kept);
            held.grow(file.bytes())?;
            files.push(file);
        }
        Ok(files)
    }
}

/// One side of a change.
enum Side {
    Absent,
    Text(String),
    Binary,
    TooLarge { is_binary: bool },
}

fn side(store: &Store, leaf: Option<Leaf>) -> Result<Side, CheckpointError> {
    let Some(leaf) = leaf else {
        return Ok(Side::Absent);
    };
    let (len, start) = store.begin(leaf.id, BEGINNING_BYTES)?;
    let is_binary = start.contains(&0);
    if len > MOST_SIDE_BYTES {
        return Ok(Side::TooLarge { is_binary });
    }
    if is_binary {
        return Ok(Side::Binary);
    }
    let content = if len > start.len() { store.read(leaf.id, Kind::Blob)? } else { start };
    Ok(String::from_utf8(content).map_or(Side::Binary, Side::Text))
}

fn changed(
    store: &Store,
    raw_path: Vec<u8>,
    old: Option<Leaf>,
    new: Option<Leaf>,
    left: &mut usize,
) -> Result<ChangedFile, CheckpointError> {
    let status = match (old, new) {
        (None, _) => Status::Added,
        (_, None) => Status::Deleted,
        _ => Status::Modified,
    };
    let mut file = ChangedFile {
        path: String::from_utf8_lossy(&raw_path).into_owned(),
        raw_path,
        status,
        additions: 0,
        deletions: 0,
        diff: None,
        base_content: None,
        is_binary: false,
        is_too_large: false,
    };
    if *left == 0 {
        file.is_too_large = true;
        return Ok(file);
    }
    match (side(store, old)?, side(store, new)?) {
        (Side::TooLarge { is_binary }, other) | (other, Side::TooLarge { is_binary }) => {
            file.is_too_large = true;
            file.is_binary = is_binary || matches!(other, Side::Binary | Side::TooLarge { is_binary: true });
        }
        (Side::Binary, _) | (_, Side::Binary) => file.is_binary = true,
        (Side::Absent, Side::Absent) => {}
        (Side::Absent, Side::Text(text)) => file.additions = lines(&text),
        (Side::Text(text), Side::Absent) => {
            file.deletions = lines(&text);
            file.base_content = Some(text);
        }
        (Side::Text(before), Side::Text(after)) => {
            if before != after {
                let diff = unified_diff(&before, &after, &format!("a/{}", file.path), &format!("b/{}", file.path));
                (file.additions, file.deletions) = (diff.added, diff.removed);
                file.diff = Some(diff.text);
            }
            file.base_content = Some(before);
        }
    }
    let taken = [&file.diff, &file.base_content].into_iter().flatten().map(String::len).sum::<usize>();
    match left.checked_sub(taken) {
        Some(rest) => *left = rest,
        None => {
            *left = 0;
            (file.diff, file.base_content, file.is_too_large) = (None, None, true);
            (file.additions, file.deletions) = (0, 0);
        }
    }
    Ok(file)
}

/// How many lines a text has, an unfinished one at its end included.
fn lines(text: &str) -> usize {
    text.split_inclusive('\n').count()
}
