//! Which files are searched: a glob for their names, or for their paths.

use globset::{GlobBuilder, GlobMatcher};

use crate::workspace::files::FileError;

/// More than this is no pattern for names, in bytes.
const MOST_BYTES: usize = 1_000;

/// A glob.
pub(super) struct Pattern {
    glob: GlobMatcher,
    is_for_paths: bool,
}

impl Pattern {
    /// A pattern with a `/` is for paths below the folder that was asked for.
    ///
    /// # Errors
    /// `regex_error` for what is no glob.
    pub(super) fn parse(pattern: &str) -> Result<Self, FileError> {
        let bad = |reason: String| FileError::Regex { reason: format!("file_pattern is no glob: {reason}") };
        if pattern.len() > MOST_BYTES {
            return Err(bad("it is too long".to_owned()));
        }
        let is_for_paths = pattern.contains('/');
        let pattern = pattern.trim_start_matches("./").trim_start_matches('/');
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        let glob = glob.map_err(|error| bad(error.kind().to_string()))?.compile_matcher();
        Ok(Self { glob, is_for_paths })
    }

    /// Whether the file `name`, whose path is given by `path`, is meant.
    pub(super) fn is_match(&self, name: &str, path: impl FnOnce() -> String) -> bool {
        if self.is_for_paths { self.glob.is_match(path()) } else { self.glob.is_match(name) }
    }
}
