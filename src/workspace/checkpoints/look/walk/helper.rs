//! The folders of a folder: when the other thread has nothing to do, it gets half of them.

use std::panic::resume_unwind;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::thread;

use rustix::fd::{AsFd, OwnedFd};

use super::{Told, Walk, Wanted};
use crate::workspace::checkpoints::CheckpointError;
use crate::workspace::checkpoints::look::memory::{Entry, Folder, Node};
use crate::workspace::checkpoints::store::Item;

/// Two threads: more gain little where the kernel does most of the work, and there are others who want to work, too.
const THREADS: usize = 2;

/// So many files at least are worth the making of a thread.
const LEAST_FILES: usize = 600;

/// Where nobody knows yet how many files there are, folders are shared that are not deeper than this one.
const DEEPEST_UNKNOWN: usize = 2;

/// A folder that is to be looked at.
pub(super) struct Task<'n> {
    /// Its place among the entries of its folder.
    pub(super) place: usize,
    /// What the last look has seen under its name.
    pub(super) old_item: Option<Item>,
    pub(super) last: Folder,
    pub(super) wanted: Wanted<'n>,
}

/// Whether there is enough for two in these folders.
fn is_worth_sharing(tasks: &[Task<'_>], depth: usize) -> bool {
    let files: usize = tasks.iter().map(|task| task.last.files).sum();
    tasks.len() > 1 && (files >= LEAST_FILES || files == 0 && depth <= DEEPEST_UNKNOWN)
}

/// A task's place, and the folder that was found.
type Found = (usize, Folder);

impl Walk<'_, '_> {
    /// Looks at these folders and puts them to their places. Whether they are all as they were.
    pub(super) fn folders(
        &mut self,
        folder: &OwnedFd,
        entries: &mut [Entry],
        tasks: Vec<Task<'_>>,
        depth: usize,
    ) -> Result<bool, CheckpointError> {
        if tasks.is_empty() {
            return Ok(true);
        }
        let old: Vec<_> = tasks.iter().map(|task| (task.place, task.old_item)).collect();
        for (place, found) in self.share(folder, entries, tasks, depth)? {
            if let Some(entry) = entries.get_mut(place) {
                entry.node = Node::Folder(found);
            }
        }
        Ok(old.into_iter().all(|(place, old)| entries.get(place).and_then(|entry| entry.node.item()) == old))
    }

    fn share(
        &mut self,
        folder: &OwnedFd,
        entries: &[Entry],
        mut tasks: Vec<Task<'_>>,
        depth: usize,
    ) -> Result<Vec<Found>, CheckpointError> {
        let shared = self.shared;
        // The last task is the next one.
        tasks.reverse();
        let mut found = Vec::with_capacity(tasks.len());
        while let Some(task) = tasks.pop() {
            let is_shared = is_worth_sharing(&tasks, depth)
                && shared.running.fetch_update(Relaxed, Relaxed, |now| (now < THREADS).then_some(now + 1)).is_ok();
            if !is_shared {
                found.push(self.task(folder, entries, task, depth)?);
                continue;
            }
            let theirs = Mutex::new(tasks.split_off(tasks.len() / 2));
            let take = || std::mem::take(&mut *theirs.lock().unwrap_or_else(PoisonError::into_inner));
            let mut helper = Walk::new(shared, self.rules.clone(), self.path.clone());
            let work = || -> Result<(Vec<Found>, Told), CheckpointError> {
                let found = helper.share(folder, entries, take(), depth);
                shared.running.fetch_sub(1, Relaxed);
                Ok((found?, helper.told))
            };
            let (mine, other) = thread::scope(|scope| {
                let Ok(helper) = thread::Builder::new().spawn_scoped(scope, work) else {
                    // The system has no thread for us: this one does it all.
                    shared.running.fetch_sub(1, Relaxed);
                    tasks.extend(take());
                    let mine = self.task(folder, entries, task, depth);
                    let mine = mine.and_then(|first| Ok((first, self.share(folder, entries, tasks, depth)?)));
                    return (mine, Ok(Ok((Vec::new(), Told::default()))));
                };
                let mine = self
                    .task(folder, entries, task, depth)
                    .and_then(|first| Ok((first, self.share(folder, entries, tasks, depth)?)));
                // While this thread waits, another one may help in its place.
                shared.running.fetch_sub(1, Relaxed);
                let other = helper.join();
                shared.running.fetch_add(1, Relaxed);
                (mine, other)
            });
            let (first, rest) = mine?;
            let (theirs, told) = other.unwrap_or_else(|panic| resume_unwind(panic))?;
            self.told.add(told);
            found.push(first);
            found.extend(rest);
            found.extend(theirs);
            break;
        }
        Ok(found)
    }

    fn task(
        &mut self,
        folder: &OwnedFd,
        entries: &[Entry],
        task: Task<'_>,
        depth: usize,
    ) -> Result<Found, CheckpointError> {
        let Some(entry) = entries.get(task.place) else {
            return Ok((task.place, task.last));
        };
        let found =
            self.within(&entry.name, |walk| walk.enter(folder.as_fd(), &entry.name, task.last, task.wanted, depth))?;
        Ok((task.place, found))
    }
}
