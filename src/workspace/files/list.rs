//! What is in a folder.

use std::time::{Duration, Instant};

use super::Root;
use super::asked::Asked;
use super::error::FileError;
use super::walk::Bounds;

/// More names than this nobody reads.
const MOST_ITEMS: usize = 5_000;

/// How long a slow disk may keep a call.
const MOST_TIME: Duration = Duration::from_secs(10);

/// Files and folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The folder that was asked for, absolute.
    pub path: String,
    /// Absolute paths, sorted; at most 5,000, those of the upper levels first when there are more.
    pub items: Vec<String>,
    /// Whether there are more.
    pub cut: bool,
}

impl Root {
    /// What is in the folder `path`, and with `recursive` in those below it. Names that begin with a dot only when
    /// `hidden`; no folder of [`DEPENDENCY_FOLDERS`](super::walk::DEPENDENCY_FOLDERS) below `path`; `.git` never. Links are
    /// named, but not followed.
    ///
    /// # Errors
    /// Among others `not_found` and `not_a_directory`.
    pub fn list(&self, path: &str, recursive: bool, hidden: bool) -> Result<Listing, FileError> {
        let asked = Asked::parse(path, self)?;
        let top = self.folder(&asked)?;
        let path = self.absolute(&asked.relative());
        let below = if path.ends_with('/') { path.clone() } else { format!("{path}/") };
        let bounds = Bounds { with_hidden: hidden, is_recursive: recursive, until: Instant::now() + MOST_TIME };
        let mut items = Vec::new();
        let is_whole = self.walk(&top, &bounds, |folder| {
            let room = MOST_ITEMS - items.len();
            items.extend(folder.entries.iter().take(room).map(|entry| format!("{below}{}", folder.path(&entry.name))));
            folder.entries.len() <= room
        });
        items.sort_unstable();
        Ok(Listing { path, items, cut: !is_whole })
    }
}
