//! Bounds for input of others, below all floors: one budget of memory, one reader of JSON, and threads off the
//! runtime's workers for large inputs.
//!
//! **Invariant:** memory whose size a stranger chooses is reserved before it is allocated.

pub mod intake;
pub mod json;
pub mod memory;
