//! The checkpoints beside real repositories of git, from the outside.

mod diffs;
mod excluded;
mod git;
mod history;
mod kit;
mod odd;
mod restored;
mod seen;
