//! The event log of runs: one contract for all kinds, and what each kind adds to it.

mod chaos;
pub mod contract;
mod ends;
mod faults;
mod local;
mod redis;
mod stories;
mod streams;
