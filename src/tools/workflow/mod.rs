//! The 17 tools of the workflow profile.
