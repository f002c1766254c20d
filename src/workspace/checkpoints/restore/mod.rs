//! Makes the project's files what they were in a snapshot.
//!
//! ```text
//! look ─▶ plan: present against target ─▶ what nobody knew is kept ─▶ remove ─▶ write, each file whole ─▶ look
//! ```
//!
//! What is there is always compared with the target itself: a restore that was broken off is made whole by a second one.
//!
//! **Invariant:** only files go that the newest snapshot knew or a tool made, and only folders that became empty by it. What the
//! target's own rules leave out it could not know, and stays: it may have been there, and rules change.
//! **Invariant:** no content goes that is not kept: what is replaced is in a snapshot, or is made a checkpoint before.

mod apply;
mod folders;
mod plan;
mod rules;

use super::look::Touched;
use super::store::{self, Intake, Leaf};
use super::{CheckpointError, Checkpoints, parse};
use plan::Plan;

/// What a restore has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The tree of what is there now: the target, and what was younger than the newest snapshot.
    pub tree: String,
    /// How many files were written.
    pub written: usize,
    /// How many files were removed.
    pub removed: usize,
    /// What could not be made as it was, sorted by path. Everything else is as it was.
    pub left: Vec<Left>,
    /// The checkpoint that keeps what was replaced or removed although the newest snapshot did not have it: somebody
    /// edited it in between. Mostly `None`.
    pub overwritten: Option<String>,
}

/// Something that a restore has left as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Relative to the project's folder.
    pub path: Vec<u8>,
    /// Why.
    pub reason: Reason,
}

/// Why something was left as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// What is there is over 64 MiB or cannot be read: it is not kept, and would be lost.
    NotKept,
    /// A file, a link, a folder or something else is in the way, which the newest snapshot does not know.
    InTheWay,
    /// The system refused, because of permissions for example.
    Refused,
}

impl Checkpoints {
    /// Makes the project's files what they are in `target`: byte for byte, with links and executable bits. Files that
    /// are so already are not written. Files are removed that are in `newest`, the newest snapshot, or `made` by tools,
    /// and that the target does not have although its rules let it; then the folders which that has left empty. Nothing
    /// else is touched. It may be called again after it was broken off.
    ///
    /// # Errors
    /// A tree is unknown or damaged (nothing was changed then), the project is gone, no space is left, or the system is
    /// out of something.
    pub fn restore(&mut self, target: &str, newest: &str, made: &Touched) -> Result<Restored, CheckpointError> {
        let (target, newest) = (parse(target)?, parse(newest)?);
        let mut made = made.clone();
        made.retain(|path| !self.places.is_anywhere_outside(path));
        let trees = [self.names_of(target)?, self.names_of(newest)?];
        let present = self.look(&made, &trees)?;
        let plan = Plan::new(&self.store, present, target, newest, &made)?;
        for (_, Leaf { id, .. }) in &plan.write {
            if !self.store.contains(*id) {
                return Err(CheckpointError::Corrupt { object: id.to_string() });
            }
        }
        let overwritten = if plan.overwritten.is_empty() {
            None
        } else {
            let intake = Intake::new(&self.store);
            let files = plan.overwritten.iter().map(|(path, leaf)| (path.as_slice(), *leaf)).collect();
            let tree = store::add(&self.store, &intake, None, &files)?;
            Some(self.store.commit(intake, tree, &[], "edited before a restore, in no snapshot")?.to_string())
        };
        let done = apply::apply(&self.places, &self.store, &plan)?;
        let now = self.look(&made, &trees)?;
        let mut left = done.left;
        left.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(Restored { tree: now.tree.to_string(), written: done.written, removed: done.removed, left, overwritten })
    }
}
