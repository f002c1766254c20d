//! What is to be done, from three trees: what is there, what is wanted, what the newest snapshot knew.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::rules::Rules;
use crate::workspace::checkpoints::CheckpointError;
use crate::workspace::checkpoints::look::{Seen, Touched};
use crate::workspace::checkpoints::store::{Id, Leaf, Store, differences};

/// What a restore does, in this order.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Files that go.
    pub(super) remove: BTreeSet<Vec<u8>>,
    /// Folders that go when they are empty by then, the deepest ones first.
    pub(super) empty: Vec<Vec<u8>>,
    /// Files that are written, sorted by path.
    pub(super) write: Vec<(Vec<u8>, Leaf)>,
    /// Paths whose content was seen, so that it is kept.
    pub(super) kept: HashSet<Vec<u8>>,
    /// Contents that are replaced or removed and that the newest snapshot does not have.
    pub(super) overwritten: BTreeMap<Vec<u8>, Leaf>,
}

impl Plan {
    /// The plan. `present` was seen with all paths of the two trees and all that were made.
    pub(super) fn new(
        store: &Store,
        present: Seen,
        target: Id,
        newest: Id,
        made: &Touched,
    ) -> Result<Self, CheckpointError> {
        let mut plan = Self::default();
        // What the newest snapshot has where it is not what the target has.
        let mut newest_leaf = HashMap::new();
        let mut rules = Rules::new(store, target);
        let mut left_out = |path: &[u8]| if made.contains(path) { Ok(false) } else { rules.leave_out(path) };
        let mut unwanted = Vec::new();
        differences(store, Some(newest), Some(target), &mut |path, new, old| {
            newest_leaf.insert(path.to_vec(), new);
            if old.is_none() {
                unwanted.push(path.to_vec());
            }
        })?;
        let mut gone: BTreeSet<Vec<u8>> = BTreeSet::new();
        for path in unwanted {
            if !left_out(&path)? {
                gone.insert(path);
            }
        }
        let mut differing = Vec::new();
        differences(store, Some(present.tree), Some(target), &mut |path, now, wanted| {
            differing.push((path.to_vec(), now, wanted));
        })?;
        let unreadable: HashSet<&[u8]> = present.told.unreadable.iter().map(Vec::as_slice).collect();
        for (path, now, wanted) in differing {
            let known = newest_leaf.get(&path).copied().unwrap_or(wanted);
            let is_removable = known.is_some() || made.contains(&path);
            if wanted.is_none() && (!is_removable || left_out(&path)?) {
                continue;
            }
            if let Some(now) = now
                && !unreadable.contains(path.as_slice())
            {
                plan.kept.insert(path.clone());
                if known != Some(now) {
                    plan.overwritten.insert(path.clone(), now);
                }
            }
            match wanted {
                Some(leaf) => plan.write.push((path, leaf)),
                None => {
                    gone.insert(path);
                }
            }
        }
        // What tools made counts also where it is gone already, for the folders it has left.
        let mut made_only: BTreeSet<Vec<u8>> = made.iter().map(<[u8]>::to_vec).collect();
        if !made_only.is_empty() {
            differences(store, None, Some(target), &mut |path, _, _| {
                made_only.remove(path);
            })?;
        }
        gone.append(&mut made_only);
        plan.write.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        plan.empty = emptied(&gone, &plan.write);
        plan.remove = gone;
        Ok(plan)
    }
}

/// The folders on the way to what goes, the deepest ones first, except those that are needed for what is written.
fn emptied(gone: &BTreeSet<Vec<u8>>, write: &[(Vec<u8>, Leaf)]) -> Vec<Vec<u8>> {
    let needed: HashSet<&[u8]> = write.iter().flat_map(|(path, _)| ancestors(path)).collect();
    let folders: HashSet<&[u8]> = gone.iter().flat_map(|path| ancestors(path)).collect();
    let mut folders: Vec<Vec<u8>> = folders.difference(&needed).map(|path| path.to_vec()).collect();
    folders.sort_unstable_by_key(|path| std::cmp::Reverse(path.len()));
    folders
}

/// The folders on the way to a path.
fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at])
}
