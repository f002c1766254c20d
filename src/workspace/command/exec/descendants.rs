//! All processes below this one, as `/proc` tells them.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

use crate::workspace::command::spec::Limits;

/// How long ending all of them is tried.
const PATIENCE: Duration = Duration::from_millis(1_800);

/// Every process below this one, whatever group or session it has made for itself.
fn all() -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        if let Some(pid) = name.to_str().and_then(|name| name.parse().ok())
            && let Ok(stat) = fs::read(entry.path().join("stat"))
            && let Some(parent) = parent(&stat)
        {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut todo = vec![getpid().as_raw_nonzero().get()];
    while let Some(pid) = todo.pop() {
        for child in children.remove(&pid).unwrap_or_default() {
            if seen.insert(child) {
                found.push(child);
                todo.push(child);
            }
        }
    }
    found
}

/// The parent in a `stat` file. The name before it is in brackets and may hold anything.
fn parent(stat: &[u8]) -> Option<i32> {
    let behind = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = stat.get(behind + 1..)?.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
    str::from_utf8(fields.nth(1)?).ok()?.parse().ok()
}

/// What all processes together have too much of, in words.
pub(super) fn beyond(limits: Limits) -> Option<String> {
    let all = all();
    if all.len() as u64 > limits.processes {
        return Some(format!("more than {} processes", limits.processes));
    }
    let held: u64 = all.iter().map(|pid| held(*pid)).sum();
    (held > limits.memory).then(|| format!("more than {} MiB of memory", limits.memory >> 20))
}

/// Bytes of memory that are a process's own: not those of files.
fn held(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kilobytes = status.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        ["RssAnon", "RssShmem", "VmSwap"].contains(&name).then_some(())?;
        value.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    });
    kilobytes.sum::<u64>() * 1_024
}

/// Kills all of them, again and again until none is left. This process is the parent of all whose own is gone.
pub(super) fn end_all() {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let all = all();
        for pid in all.iter().filter_map(|pid| Pid::from_raw(*pid)) {
            // It may have ended, and is not buried before the loop below: no other process has its number.
            let _ = kill_process(pid, Signal::KILL);
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                // The dying need a moment.
                Ok(None) => break std::thread::sleep(Duration::from_millis(2)),
                // No child is left.
                Err(_) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_stands_behind_any_name() {
        assert_eq!(parent(b"17 (sh) S 5 17 17 0"), Some(5));
        assert_eq!(parent(b"17 (a) R 1 (b) S 6 17 17 0"), Some(6));
        assert_eq!(parent(b"17 sh"), None);
        assert_eq!(parent(b""), None);
    }

    #[test]
    fn this_process_holds_memory() {
        assert!(held(getpid().as_raw_nonzero().get()) > 0);
        assert_eq!(held(i32::MAX), 0);
    }
}
