//! The shipped tools at the boundary: a scripted model calls them, the whole product runs them.

mod tables;
