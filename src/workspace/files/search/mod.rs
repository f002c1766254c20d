//! Searching files line by line for an expression.
//!
//! ```text
//! walk ─▶ files by name ─▶ two threads: read, decode ─▶ expression: lines that match ─▶ hits in the order of files
//! ```

mod expression;
mod files;
mod lines;
mod pattern;

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use super::Root;
use super::asked::Asked;
use super::error::FileError;
use super::walk::Bounds;
use expression::Expression;
use files::Files;
use pattern::Pattern;

/// What a model can take in.
const MOST_HITS: usize = 1_000;

/// 1 MB, of the same reason.
const MOST_BYTES: usize = 1_000_000;

/// A few seconds: then what was found must do.
const MOST_TIME: Duration = Duration::from_secs(4);

/// A line that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Absolute.
    pub file: String,
    /// From 1 on.
    pub line: usize,
    /// The line with up to two lines around it, joined by LF, without the last end of line; long lines are cut.
    pub context: String,
}

/// Lines that match, in the order of files and lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hits {
    /// At most 1,000, and at most about 1 MB.
    pub hits: Vec<Hit>,
    /// Whether there may be more: too many were found, time was over, or lines over 4 KiB were left out by an
    /// expression with look-around.
    pub cut: bool,
}

impl Root {
    /// Lines of files below the folder `path` that match `regex`, whose look-around and back-references may be used.
    /// `file_pattern` is a glob for names, or with a `/` for paths below `path`.
    ///
    /// Hidden files, binary files, files over 10 MB and dependency folders are left out. Ends within seconds.
    ///
    /// # Errors
    /// `regex_error` for an expression or a pattern that is none, and for one that took all the time and found nothing.
    pub fn search(&self, path: &str, regex: &str, file_pattern: Option<&str>) -> Result<Hits, FileError> {
        self.search_for(MOST_TIME, path, regex, file_pattern)
    }

    fn search_for(
        &self,
        time: Duration,
        path: &str,
        regex: &str,
        file_pattern: Option<&str>,
    ) -> Result<Hits, FileError> {
        let until = Instant::now() + time;
        let asked = Asked::parse(path, self)?;
        let top = self.folder(&asked)?;
        let expression = Expression::parse(regex)?;
        let pattern = file_pattern.filter(|pattern| !pattern.trim().is_empty()).map(Pattern::parse).transpose()?;
        let mut files = Files::default();
        let bounds = Bounds { with_hidden: false, is_recursive: true, until };
        let is_whole = self.walk(&top, &bounds, |folder| {
            files.add(folder, pattern.as_ref());
            true
        });
        let (hits, cut) = files.search(&top, &expression, until)?;
        let base = self.absolute(&asked.relative());
        let below = if base.ends_with('/') { base } else { format!("{base}/") };
        let hits = hits.into_iter().map(|hit| Hit { file: format!("{below}{}", hit.file), ..hit }).collect();
        Ok(Hits { hits, cut: cut || !is_whole })
    }
}
