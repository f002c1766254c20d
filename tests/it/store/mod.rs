//! The stores: one contract that every implementation passes, and what is particular to each.

mod approvals;
mod branches;
mod chats;
mod clients;
mod contract;
mod conversations;
mod drafts;
mod leases;
mod limits;
mod postgres;
mod postgres_rare;
mod previews;
mod sqlite;
mod summaries;
mod together;
mod trail;
mod views;
mod waiting;
