//! The stores: one contract that every implementation passes, and what is particular to each.

mod approvals;
mod branches;
mod chats;
mod clients;
pub mod contract;
mod conversations;
mod dialog;
mod directives;
mod drafts;
mod explained;
mod files;
mod leases;
mod library;
mod limits;
mod plans;
mod postgres;
pub mod postgres_rare;
mod previews;
pub mod row_security;
mod sqlite;
mod state;
mod summaries;
mod together;
mod trail;
mod views;
mod waiting;
