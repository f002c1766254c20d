//! What can be seen of a running server: the names of spans and fields, every metric, and what a request carries along
//! for them. Below everything else, so that each floor can tell what it does with the same words.
//!
//! **Invariant:** nothing here waits, fails or does I/O on a request's way; with telemetry off each function costs a
//! look at one flag. **Invariant:** no token, key, prompt or content is ever a field, an attribute or a label, and a label's
//! values are a closed set.

pub mod ambient;
pub mod metrics;
pub mod names;
mod process;
pub mod prometheus;
pub mod spans;
pub mod trace_context;
pub mod within;
