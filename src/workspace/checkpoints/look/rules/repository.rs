//! The user's repositories: what they track and exclude. They are only ever read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use super::ignore::{List, MOST_RULE_BYTES, parse};
use super::index::{self, Index};
use crate::workspace::checkpoints::look::names::Names;
use crate::workspace::checkpoints::look::read::small_file;
use crate::workspace::checkpoints::look::stamp::Stamp;

/// 256 MiB are some two million files.
const MOST_INDEX_BYTES: usize = 256 << 20;

/// 64 KiB for the path of a repository that lies elsewhere.
const MOST_PATH_BYTES: usize = 64 << 10;

/// What a repository says about the folder it is in.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    /// The files it tracks.
    pub(crate) tracked: Arc<Names>,
    /// Its rules that are in no file of the project.
    pub(crate) exclude: Arc<List>,
}

/// The repositories and rules that were read, so that they are read again only when they change.
#[derive(Debug, Default)]
pub(crate) struct Repositories {
    tracked: HashMap<PathBuf, Known<Names>>,
    rules: HashMap<Vec<u8>, Known<List>>,
    /// Those around the project, whose paths have another beginning.
    around: Option<Box<Repositories>>,
}

/// Something that was read from a file.
#[derive(Debug)]
struct Known<T> {
    stamp: Option<Stamp>,
    content: Arc<T>,
}

impl<T> Known<T> {
    /// `stamp` counts only if later changes give another one.
    fn new(stamp: Stamp, looked: SystemTime, content: T) -> Self {
        Self { stamp: stamp.is_settled(looked).then_some(stamp), content: Arc::new(content) }
    }
}

impl Repositories {
    /// The repository whose `.git` is in the folder, or `None`. `base` is the folder's path: `""`, or with a slash at
    /// its end.
    pub(crate) fn at(&mut self, folder: &Path, base: &[u8]) -> Option<Repository> {
        let own = git_folder(folder)?;
        // A working tree beside the main one has an index of its own, the rest is common.
        let common = match small_file(CWD, own.join("commondir"), OFlags::empty(), MOST_PATH_BYTES) {
            Ok((_, text)) => own.join(path_of(&text)),
            Err(_) => own.clone(),
        };
        let tracked = self.tracked(&own);
        let exclude = self.rules(CWD, &common.join("info/exclude"), OFlags::empty(), base, b"/info/exclude");
        Some(Repository { tracked, exclude: exclude.unwrap_or_default() })
    }

    /// The rules of the folder's own `.gitignore`, or `None`. Links are not followed, as git does not follow them.
    pub(crate) fn ignore_file(&mut self, folder: rustix::fd::BorrowedFd<'_>, base: &[u8]) -> Option<Arc<List>> {
        self.rules(folder, Path::new(".gitignore"), OFlags::NOFOLLOW, base, b"/.gitignore")
    }

    /// What was read around the project.
    pub(crate) fn around(&mut self) -> &mut Self {
        self.around.get_or_insert_default()
    }

    fn rules(
        &mut self,
        folder: rustix::fd::BorrowedFd<'_>,
        path: &Path,
        flags: OFlags,
        base: &[u8],
        suffix: &[u8],
    ) -> Option<Arc<List>> {
        let key = [base, suffix].concat();
        let stat = rustix::fs::statat(folder, path, rustix::fs::AtFlags::empty());
        let stamp = stat.ok().map(|stat| Stamp::of(&stat));
        if let Some(known) = self.rules.get(&key).filter(|known| known.stamp.is_some() && known.stamp == stamp) {
            return Some(Arc::clone(&known.content));
        }
        let looked = SystemTime::now();
        let Ok((stamp, text)) = small_file(folder, path, flags, MOST_RULE_BYTES) else {
            self.rules.remove(&key);
            return None;
        };
        let known = Known::new(stamp, looked, parse(&text, base));
        let content = Arc::clone(&known.content);
        self.rules.insert(key, known);
        Some(content)
    }

    /// What the index in a repository's own folder tracks. An index that is damaged tracks what it tracked before.
    fn tracked(&mut self, own: &Path) -> Arc<Names> {
        let path = own.join("index");
        let stamp = rustix::fs::stat(&path).ok().map(|stat| Stamp::of(&stat));
        let known = self.tracked.get(own);
        if let Some(known) = known.filter(|known| known.stamp.is_some() && known.stamp == stamp) {
            return Arc::clone(&known.content);
        }
        let looked = SystemTime::now();
        let read = small_file(CWD, &path, OFlags::empty(), MOST_INDEX_BYTES);
        let names = match &read {
            // Nothing is tracked yet.
            Err(Errno::NOENT) => Some(Names::default()),
            Err(_) => None,
            Ok((_, bytes)) => names(own, bytes),
        };
        match (names, read) {
            (Some(names), Ok((stamp, _))) => {
                let known = Known::new(stamp, looked, names);
                let content = Arc::clone(&known.content);
                self.tracked.insert(own.to_owned(), known);
                content
            }
            (Some(none), Err(_)) => {
                self.tracked.remove(own);
                Arc::new(none)
            }
            (None, _) => known.map_or_else(Arc::default, |known| Arc::clone(&known.content)),
        }
    }
}

/// The names in an index and in the one it is based on.
fn names(own: &Path, bytes: &[u8]) -> Option<Names> {
    let index = parse_index(bytes)?;
    let mut names = Names::default();
    index.paths.iter().for_each(|path| names.insert(path));
    if let Some(base) = index.base {
        let shared = own.join(format!("sharedindex.{base}"));
        let (_, bytes) = small_file(CWD, shared, OFlags::empty(), MOST_INDEX_BYTES).ok()?;
        // What was removed since is still among them: a file too many does no harm.
        parse_index(&bytes)?.paths.iter().for_each(|path| names.insert(path));
    }
    Some(names)
}

fn parse_index(bytes: &[u8]) -> Option<Index> {
    if is_sum_right(bytes)
        && let Some(index) = index::parse(bytes, 20)
    {
        return Some(index);
    }
    // A repository with ids of SHA-256.
    index::parse(bytes, 32)
}

/// Whether the SHA-1 at the end is that of the bytes before it. Git may be told to write none.
fn is_sum_right(bytes: &[u8]) -> bool {
    let Some((content, sum)) = bytes.split_last_chunk::<20>() else {
        return false;
    };
    let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha1);
    hasher.update(content);
    *sum == [0; 20] || hasher.try_finalize().is_ok_and(|found| found.as_slice() == sum)
}

/// The folder that `.git` is, or that the file `.git` names.
fn git_folder(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    match small_file(CWD, &git, OFlags::empty(), MOST_PATH_BYTES) {
        Ok((_, text)) => Some(folder.join(path_of(text.strip_prefix(b"gitdir: ")?))),
        Err(_) => rustix::fs::openat(CWD, &git, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .ok()
            .map(|_| git),
    }
}

fn path_of(text: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(text.trim_ascii_end()))
}
