//! The embedded default: a rule-based stand-in model and a small backend with the real REST API.

pub mod model;
