//! The routes of rules.

pub mod read;
pub mod save;
mod view;
