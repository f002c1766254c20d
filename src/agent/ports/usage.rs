//! The usage's port: what model calls have used, added up by owner, day and model. It is written with the commits of runs
//! (`RunCommits`), and read here. Here too is written what belongs to no run that lives.

use async_trait::async_trait;

use super::store_error::StoreError;
use crate::chat::caller::Owner;
use crate::chat::cost::Cost;
use crate::chat::day::{Day, Days};
use crate::chat::ids::ConversationId;
use crate::chat::stream::Spent;

/// The code of whatever is refused, or ends, since a budget is used up.
pub const QUOTA_EXCEEDED: &str = "quota_exceeded";

/// The owner of usage.
#[derive(Debug, Clone, Copy)]
pub enum Of<'a> {
    /// One user's.
    User(&'a Owner),
    /// That of all users of a tenant.
    Tenant(&'a str),
}

/// Tells what was used, and takes what no commit of a run brings.
#[async_trait]
pub trait UsageStore: Send + Sync {
    /// All that was used on these days.
    ///
    /// # Errors
    /// When the store failed.
    async fn used(&self, of: Of<'_>, days: Days) -> Result<Used, StoreError>;

    /// The same by day and model, newest day first; at most `most` of them.
    ///
    /// # Errors
    /// When the store failed.
    async fn used_by_day(&self, of: Of<'_>, days: Days, most: u32) -> Result<Vec<UsedOnDay>, StoreError>;

    /// The same by month and model, newest month first.
    ///
    /// # Errors
    /// When the store failed.
    async fn used_by_month(&self, of: Of<'_>, days: Days, most: u32) -> Result<Vec<UsedInMonth>, StoreError>;

    /// What the runs have used that began on these days, by their conversations: those with the highest cost first, then
    /// those with the most tokens; at most `most` of them. What belongs to no run is not among it.
    ///
    /// # Errors
    /// When the store failed.
    async fn used_by_conversation(
        &self,
        owner: &Owner,
        days: Days,
        most: u32,
    ) -> Result<Vec<UsedInConversation>, StoreError>;

    /// Adds the usage of model calls to the owner's, each time that it is called: as calls of no run.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn charge(&self, owner: &Owner, spent: &[Spent]) -> Result<(), StoreError>;
}

/// Usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    /// Runs that have called a model.
    pub runs: u64,
    /// Model calls, those that broke off included.
    pub turns: u64,
    /// Prompt tokens, cached ones included.
    pub input_tokens: u64,
    /// Answer tokens, reasoning included.
    pub output_tokens: u64,
    /// Of the input, those read from a cache.
    pub cached_input_tokens: u64,
    /// The cost of those that have a price.
    pub cost: Cost,
}

/// The usage of one model on one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedOnDay {
    /// The day.
    pub day: Day,
    /// `provider:model`.
    pub model: String,
    /// How much. A run counts for the model that answered its first turn.
    pub used: Used,
}

/// The usage of one model in one month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedInMonth {
    /// The month, as `2026-11`.
    pub month: String,
    /// `provider:model`.
    pub model: String,
    /// How much.
    pub used: Used,
}

/// The usage of a conversation's runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedInConversation {
    /// The conversation.
    pub conversation: ConversationId,
    /// What lists call it.
    pub title: String,
    /// How much.
    pub used: Used,
}
