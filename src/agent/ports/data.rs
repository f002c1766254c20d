//! The data loaders' port: the backend's data for a profile's prompt, loaded before the first model call.

use async_trait::async_trait;
use serde_json::Value;

use super::tools::ToolContext;

/// Loads what prompts show.
#[async_trait]
pub trait DataLoader: Send + Sync {
    /// The data of the loader of this name for this caller and screen. It never fails: a text for the model names what
    /// could not be loaded.
    async fn load(&self, loader: &str, cx: &ToolContext<'_>) -> Loaded;
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
        /// Whether the caller may not have it, or it is not there.
        is_denied: bool,
    },
}
