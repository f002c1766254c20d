//! The seams of the product: what the loop, and the floors beside each other, ask of the outside. One small trait each.

pub mod approvals;
pub mod audit;
pub mod chats;
pub mod clock;
pub mod commit;
pub mod conversations;
pub mod data;
pub mod drafts;
pub mod embeddings;
pub mod events;
pub mod identity;
pub mod leases;
pub mod llm;
pub mod names;
pub mod payloads;
pub mod pins;
pub mod places;
pub mod plans;
pub mod previews;
pub mod quotas;
pub mod sessions;
pub mod store;
pub mod store_error;
pub mod summaries;
pub mod tools;
pub mod usage;
