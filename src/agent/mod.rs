//! The agentic loop: model → tools → model, bounded, until an answer stands. It sees the world through [`ports`] only.
//!
//! **Invariant:** nothing here names a vendor, a wire, a database, a product or an SSE event.

pub mod ports;
pub mod turn;
