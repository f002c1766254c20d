//! The data loaders' port: the backend's data for a profile's prompt, loaded before the first model call.

use async_trait::async_trait;
use serde_json::Value;

use super::store_error::StoreError;
use super::tools::ToolContext;
use crate::chat::caller::Owner;

/// Loads what prompts show.
#[async_trait]
pub trait DataLoader: Send + Sync {
    /// The data of the loader of this name for this caller and screen. It never fails: a text for the model names what
    /// could not be loaded.
    async fn load(&self, loader: &str, cx: &ToolContext<'_>) -> Loaded;

    /// Has that data at hand for a run that comes soon. What is not kept is not loaded.
    async fn warm(&self, loader: &str, cx: &ToolContext<'_>) -> Warm;
}

/// How data became at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warm {
    /// It was loaded just now.
    Loaded {
        /// When, in milliseconds since the Unix epoch.
        at_ms: i64,
    },
    /// It was at hand already.
    Kept {
        /// Since when, in milliseconds since the Unix epoch.
        at_ms: i64,
    },
    /// There is nothing to load at that place, or it is not kept.
    Nothing,
    /// It could not be loaded; the run will try it again.
    Failed(NotLoaded),
}

/// Knows since when what is kept of a user's data is out of date, in all replicas.
#[async_trait]
pub trait DataChanges: Send + Sync {
    /// Data with one of these tags changes.
    ///
    /// # Errors
    /// When it could not be committed.
    async fn data_changes(&self, owner: &Owner, tags: &[String]) -> Result<(), StoreError>;

    /// A number that is another one after each change of data with one of these tags.
    ///
    /// # Errors
    /// When it could not be read.
    async fn data_version(&self, owner: &Owner, tags: &[String]) -> Result<i64, StoreError>;
}

/// The result of loading.
#[derive(Debug, Clone, PartialEq)]
pub enum Loaded {
    /// The data.
    Value(Value),
    /// There is nothing to load on this screen.
    Nothing,
    /// It could not be loaded.
    Failed {
        /// Why, in words for the model.
        words: String,
        /// Why, for who asks.
        why: NotLoaded,
    },
}

/// Why data could not be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotLoaded {
    /// The backend says that the caller may not have it.
    Denied,
    /// The backend says that it is not there.
    NotThere,
    /// Anything else.
    Failed,
}
