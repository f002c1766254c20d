//! The 12 tools of the tables profile.
