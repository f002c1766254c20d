//! The files that are searched, on two threads.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use rustix::fs::FileType;

use super::expression::Expression;
use super::lines::{Counter, context};
use super::pattern::Pattern;
use super::{Hit, MOST_BYTES, MOST_HITS};
use crate::workspace::files::change::BINARY_BYTES;
use crate::workspace::files::walk::{Folder, descend};
use crate::workspace::files::{FileError, MOST_FILE_BYTES, read};

/// Files from which on a second thread is worth its start.
const FILES_FOR_TWO: usize = 8;

/// What is to be searched, in the order of its results.
#[derive(Default)]
pub(super) struct Files {
    /// Names from the folder that was asked for on.
    folders: Vec<Vec<OsString>>,
    /// Each in one of `folders`.
    files: Vec<(usize, OsString)>,
}

/// What the threads share.
struct Progress {
    next: AtomicUsize,
    hits: AtomicUsize,
    bytes: AtomicUsize,
    gave_up: AtomicBool,
    left_out: AtomicBool,
    /// By the number of the file.
    found: Mutex<Vec<(usize, Vec<Hit>)>>,
}

impl Files {
    /// Adds the files of `folder` that the pattern means.
    pub(super) fn add(&mut self, folder: &Folder, pattern: Option<&Pattern>) {
        let before = self.files.len();
        let number = self.folders.len();
        for entry in folder.entries.iter().filter(|entry| entry.kind == FileType::RegularFile) {
            let name = entry.name.to_string_lossy();
            if pattern.is_none_or(|pattern| pattern.is_match(&name, || folder.path(&entry.name))) {
                self.files.push((number, entry.name.clone()));
            }
        }
        if self.files.len() > before {
            self.folders.push(folder.names.clone());
        }
    }

    /// The first hits, whose files are told from the open folder `top` on, and whether there may be more.
    ///
    /// # Errors
    /// `regex_error` when the expression was given up, and nothing was found.
    pub(super) fn search(
        &self,
        top: &OwnedFd,
        expression: &Expression,
        until: Instant,
    ) -> Result<(Vec<Hit>, bool), FileError> {
        let progress = Progress {
            next: AtomicUsize::new(0),
            hits: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            gave_up: AtomicBool::new(false),
            left_out: AtomicBool::new(false),
            found: Mutex::new(Vec::new()),
        };
        thread::scope(|scope| {
            if self.files.len() > FILES_FOR_TWO {
                let worker = || self.work(top, &expression.clone(), until, &progress);
                // Without it, this thread does all.
                _ = thread::Builder::new().name("search".to_owned()).spawn_scoped(scope, worker);
            }
            self.work(top, expression, until, &progress);
        });
        let mut found = progress.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort_unstable_by_key(|(number, _)| *number);
        let mut bytes = 0;
        let mut hits = Vec::new();
        let mut cut = progress.gave_up.into_inner() || progress.next.into_inner() < self.files.len();
        for hit in found.into_iter().flat_map(|(_, hits)| hits) {
            bytes += size(&hit);
            if hits.len() == MOST_HITS || bytes > MOST_BYTES {
                cut = true;
                break;
            }
            hits.push(hit);
        }
        if hits.is_empty() && cut {
            let reason =
                "the search took too long and found nothing: make the expression simpler, or search a smaller \
                          folder"
                    .to_owned();
            return Err(FileError::Regex { reason });
        }
        Ok((hits, cut || progress.left_out.into_inner()))
    }

    /// Searches one file after the other. Who takes a number searches that file, so that no file before a hit that is
    /// told was passed over.
    fn work(&self, top: &OwnedFd, expression: &Expression, until: Instant, progress: &Progress) {
        let mut opened: Option<(usize, OwnedFd)> = None;
        let mut bytes = Vec::new();
        loop {
            let is_enough = progress.hits.load(Ordering::Relaxed) > MOST_HITS
                || progress.bytes.load(Ordering::Relaxed) > MOST_BYTES
                || Instant::now() > until;
            if is_enough || progress.next.load(Ordering::Relaxed) >= self.files.len() {
                return;
            }
            let number = progress.next.fetch_add(1, Ordering::Relaxed);
            let Some((folder, name)) = self.files.get(number) else { return };
            if opened.as_ref().is_none_or(|(number, _)| number != folder) {
                opened = descend(top, &self.folders[*folder]).ok().map(|fd| (*folder, fd));
            }
            let Some((_, fd)) = &opened else { continue };
            let Ok(Some((file, _))) = read::open_file(fd, name) else { continue };
            if !matches!(fill(&mut bytes, file), Ok(true)) {
                continue;
            }
            let text = String::from_utf8_lossy(&bytes);
            let matches = expression.matches(&text, MOST_HITS + 1, until);
            if matches.gave_up {
                progress.gave_up.store(true, Ordering::Relaxed);
            }
            if matches.left_out {
                progress.left_out.store(true, Ordering::Relaxed);
            }
            if matches.lines.is_empty() {
                continue;
            }
            let path = self.path(*folder, name);
            let mut counter = Counter::new(&text);
            let mut size_of_all = 0;
            let mut hits = Vec::new();
            for (line, matched) in &matches.lines {
                let hit =
                    Hit { file: path.clone(), line: counter.line(line.start), context: context(&text, line, *matched) };
                size_of_all += size(&hit);
                hits.push(hit);
                if size_of_all > MOST_BYTES {
                    break;
                }
            }
            progress.hits.fetch_add(hits.len(), Ordering::Relaxed);
            progress.bytes.fetch_add(size_of_all, Ordering::Relaxed);
            progress.found.lock().unwrap_or_else(PoisonError::into_inner).push((number, hits));
        }
    }

    fn path(&self, folder: usize, name: &OsString) -> String {
        let names = self.folders[folder].iter().chain([name]);
        names.map(|name| name.to_string_lossy()).collect::<Vec<_>>().join("/")
    }
}

fn size(hit: &Hit) -> usize {
    hit.file.len() + hit.context.len()
}

/// Reads a file, and tells whether it is to be searched: neither binary nor too large.
fn fill(bytes: &mut Vec<u8>, mut file: File) -> Result<bool, std::io::Error> {
    bytes.clear();
    file.by_ref().take(BINARY_BYTES as u64).read_to_end(bytes)?;
    if memchr::memchr(0, bytes).is_some() {
        return Ok(false);
    }
    file.take(MOST_FILE_BYTES + 1 - bytes.len() as u64).read_to_end(bytes)?;
    Ok(bytes.len() as u64 <= MOST_FILE_BYTES)
}
