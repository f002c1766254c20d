//! Rules: what one is, and how it is made of what somebody wants to save.

pub mod build;
pub mod input;
pub mod rule;
pub mod validate;
