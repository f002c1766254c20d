//! What the process may hold of what others send, below all floors: one budget of memory, one reader of JSON, and a place off
//! the runtime's workers where what is large is read.
//!
//! **Invariant:** memory whose size a stranger chooses is reserved before it is allocated.

pub mod intake;
pub mod json;
pub mod memory;
