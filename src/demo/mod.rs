//! The embedded default: a rule-based stand-in model and a small backend with the real REST API, so that a newcomer needs
//! neither a key nor a server to walk through the product.

pub mod backend;
pub mod model;
