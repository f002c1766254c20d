//! Bounds for input of others, below all floors: one budget of memory, one reader of JSON, threads off the runtime's
//! workers for large inputs, and which addresses may be connected to, with the clients that hold to it, and how
//! long their answers ask to wait.
//!
//! **Invariant:** memory whose size a stranger chooses is reserved before it is allocated.

pub mod address;
pub mod base64;
pub mod client;
pub mod intake;
pub mod json;
pub mod lines;
pub mod memory;
pub mod retry_after;
