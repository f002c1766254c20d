//! The workspace: files below one folder, as tools of an agent read and change them, commands that run there, and what is
//! kept so that all of it can be taken back.
//!
//! ```text
//! Folders ─owner─▶ Place ─▶ files/        one open folder: read, write, replace, delete, list, search
//!                       ├─▶ command/      a shell in a sandbox
//!                       └─▶ Keeper ─▶ checkpoints/  the files as git objects: look, compare, bring back
//!                                 └─▶ Journal       which states a conversation has, and why
//! ```
//!
//! **Invariant:** one process holds a folder, by a lock in its state.
//! **Invariant:** no name leads outside of the folder: each is looked up below the open folder.
//! **Invariant:** the project's own `.git` is read and never written.

pub mod config;

#[cfg(feature = "workspace")]
mod checkpoints;
#[cfg(feature = "workspace")]
pub mod command;
#[cfg(feature = "workspace")]
mod diff;
#[cfg(feature = "workspace")]
mod files;
#[cfg(feature = "workspace")]
mod folders;
#[cfg(feature = "workspace")]
mod journal;
#[cfg(feature = "workspace")]
mod keeper;
#[cfg(feature = "workspace")]
mod place;
#[cfg(feature = "workspace")]
mod quota;
#[cfg(feature = "workspace")]
mod status;
#[cfg(feature = "workspace")]
mod template;
#[cfg(feature = "workspace")]
pub mod texts;

#[cfg(feature = "workspace")]
pub use folders::{Folders, Shared};
#[cfg(feature = "workspace")]
pub use place::OpenError;
#[cfg(feature = "workspace")]
pub use status::StatusFile;
