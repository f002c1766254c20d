//! Keeping trees: as checkpoints, and together with what files were before a tool's first touch.
//!
//! Ignored files are in no snapshot until a tool touches them, so that their content is kept when that happens.

use std::collections::BTreeMap;

use super::look::{MOST_FILE_BYTES, is_path};
use super::store::{self, Id, Intake, Item, Kind, Leaf, Mode};
use super::{CheckpointError, Checkpoints, parse};

/// The name of the one file in the tree that keeps a pre-image.
const NAME: &[u8] = b"before";

/// What a file was before a tool's first touch. Made by [`Checkpoints::keep_before`], kept by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreImage {
    /// Relative to the project's folder.
    pub path: Vec<u8>,
    /// What keeps the content, as a checkpoint's id: [`Checkpoints::forget`] takes it. `None`: there was no file.
    pub id: Option<String>,
}

impl Checkpoints {
    /// Keeps what a file was, or that it was not there, before a tool touches it. It is on the disk afterwards.
    ///
    /// # Errors
    /// The path leads elsewhere ([`CheckpointError::Unknown`]), the content is over 64 MiB, or it cannot be written.
    pub fn keep_before(&mut self, path: &[u8], before: Option<(&[u8], Mode)>) -> Result<PreImage, CheckpointError> {
        if !is_path(path) || self.places.is_anywhere_outside(path) {
            return Err(CheckpointError::Unknown);
        }
        let Some((content, mode)) = before else {
            return Ok(PreImage { path: path.to_vec(), id: None });
        };
        if content.len() as u64 > MOST_FILE_BYTES {
            return Err(CheckpointError::TooLarge);
        }
        let intake = Intake::new(&self.store);
        let forged = || CheckpointError::Unknown;
        let id = intake.write(&self.store, Kind::Blob, content)?.ok_or_else(forged)?;
        let tree = store::encode(vec![(NAME, Item::File(Leaf { mode, id }))]);
        let tree = intake.write(&self.store, Kind::Tree, &tree)?.ok_or_else(forged)?;
        let id = self.store.commit(intake, tree, &[], "before the first touch of a tool")?;
        Ok(PreImage { path: path.to_vec(), id: Some(id.to_string()) })
    }

    /// The tree together with what these files were. A path that the tree has stays as it is there. The new tree's
    /// objects are on the disk; like a snapshot's they are kept by [`Checkpoints::keep`] only.
    ///
    /// # Errors
    /// A tree or a pre-image is unknown or damaged, or something cannot be written.
    pub fn with_files_before(&mut self, tree: &str, before: &[PreImage]) -> Result<String, CheckpointError> {
        let intake = Intake::new(&self.store);
        let tree = self.with_files(&intake, parse(tree)?, before)?;
        intake.finish(&self.store)?;
        Ok(tree.to_string())
    }

    /// The same, with the new tree's objects in `intake`.
    pub(super) fn with_files(&self, intake: &Intake, tree: Id, before: &[PreImage]) -> Result<Id, CheckpointError> {
        let mut files = BTreeMap::new();
        for image in before.iter().filter(|image| is_path(&image.path) && !self.places.is_anywhere_outside(&image.path))
        {
            let Some(id) = &image.id else {
                continue;
            };
            let kept = self.store.tree_of(parse(id)?)?.ok_or(CheckpointError::Unknown)?;
            let leaf = store::leaf_at(&self.store, kept, NAME)?.ok_or(CheckpointError::Unknown)?;
            files.insert(image.path.as_slice(), leaf);
        }
        match files.is_empty() {
            true => Ok(tree),
            false => store::add(&self.store, intake, Some(tree), &files),
        }
    }

    /// Keeps a tree as a checkpoint, and returns the checkpoint's id, which is that of no other one. Commit and
    /// reference are on the disk afterwards. `parents` are ids of checkpoints; `message` is for whoever reads the
    /// history with git.
    ///
    /// # Errors
    /// The tree or a parent is unknown, or something cannot be written.
    pub fn keep(&mut self, tree: &str, parents: &[&str], message: &str) -> Result<String, CheckpointError> {
        let tree = parse(tree)?;
        if !self.store.contains(tree) {
            return Err(CheckpointError::Unknown);
        }
        let mut known = Vec::new();
        for parent in parents {
            let parent = parse(parent)?;
            self.store.tree_of(parent)?.ok_or(CheckpointError::Unknown)?;
            known.push(parent);
        }
        Ok(self.store.commit(Intake::new(&self.store), tree, &known, message)?.to_string())
    }

    /// The tree of a checkpoint; `None` when there is none with this id. Only whole ids are ids.
    ///
    /// # Errors
    /// What is kept is damaged, or cannot be read.
    pub fn tree_of(&self, id: &str) -> Result<Option<String>, CheckpointError> {
        let Some(id) = Id::parse(id) else {
            return Ok(None);
        };
        Ok(self.store.tree_of(id)?.map(|tree| tree.to_string()))
    }
}
