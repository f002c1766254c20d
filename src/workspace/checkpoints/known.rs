//! What is kept, by its ids.

use super::store::{self, Id};
use super::{CheckpointError, Checkpoints, parse};

impl Checkpoints {
    /// The ids of everything that a reference keeps.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn ids(&self) -> Result<Vec<String>, CheckpointError> {
        Ok(self.store.referenced()?.iter().map(Id::to_string).collect())
    }

    /// Whether each file of `tree` is in `other` as it is.
    ///
    /// # Errors
    /// One of them is unknown or damaged.
    pub fn is_within(&self, tree: &str, other: &str) -> Result<bool, CheckpointError> {
        let mut is_within = true;
        store::differences(&self.store, Some(parse(other)?), Some(parse(tree)?), &mut |_, _, here| {
            is_within &= here.is_none();
        })?;
        Ok(is_within)
    }

    /// Whether a tree has a file of that path.
    ///
    /// # Errors
    /// The tree is unknown or damaged.
    pub fn has(&self, tree: &str, path: &[u8]) -> Result<bool, CheckpointError> {
        Ok(store::leaf_at(&self.store, parse(tree)?, path)?.is_some())
    }
}
