//! A look at the project: which files there are, what is new of them, and the tree object that tells it all.
//!
//! ```text
//! rules: tracked, ignored ─┐
//! names: touched, also ────┼─▶ walk ─▶ read what has a new stamp ─▶ blobs ─▶ trees of folders that changed
//! memory of the last look ─┘                                                 └─▶ memory ─▶ the kept file
//! ```
//!
//! **Invariant:** no link is followed, nothing but regular files is opened, and nothing is written to the project.

mod kept;
mod memory;
mod names;
mod places;
mod read;
mod rules;
mod stamp;
mod walk;

pub(super) use kept::{load, save};
pub(super) use memory::Folder;
pub use names::Touched;
pub(super) use names::{Names, is_path};
pub(super) use places::Places;
pub(super) use read::MOST_FILE_BYTES;
pub(super) use rules::{List, MOST_RULE_BYTES, Repositories, is_dependency_folder, is_ignored, parse as parse_rules};
pub(super) use walk::{Seen, look};
