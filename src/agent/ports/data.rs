//! The data loaders' port: what a profile's prompt wants to know of the backend before the model is asked.

use async_trait::async_trait;
use serde_json::Value;

use super::tools::ToolContext;

/// Loads what prompts show.
#[async_trait]
pub trait DataLoader: Send + Sync {
    /// What the loader of this name has for this caller and screen. It never fails: what could not be loaded is said in
    /// words for the model.
    async fn load(&self, loader: &str, cx: &ToolContext<'_>) -> Loaded;
}

/// What came of loading.
#[derive(Debug, Clone, PartialEq)]
pub enum Loaded {
    /// The data.
    Value(Value),
    /// There is nothing to load on this screen.
    Nothing,
    /// It could not be loaded; in words for the model.
    Failed(String),
}
