//! Which files count: what the user's git tracks, and what no rule leaves out.

mod ignore;
mod index;
mod outer;
mod repository;

pub(crate) use ignore::{List, MOST_RULE_BYTES, is_dependency_folder, is_ignored, parse};
pub(crate) use outer::Outer;
pub(crate) use repository::Repositories;
