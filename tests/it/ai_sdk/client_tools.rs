//! Tools that the page runs itself.
