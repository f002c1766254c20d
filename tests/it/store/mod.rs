//! The stores: one contract that every implementation passes, and what is particular to each.

mod contract;
mod conversations;
mod drafts;
mod postgres;
mod previews;
mod sqlite;
