//! The data loaders: REST calls whose answers prompts show.

use std::collections::HashMap;

use async_trait::async_trait;

use crate::agent::ports::data::{DataLoader, Loaded};
use crate::agent::ports::tools::ToolContext;

/// One loader, as a profile's file describes it.
#[derive(Debug, Clone)]
pub struct Loader {
    /// Its name, unique among all.
    pub name: String,
}

/// All loaders by name.
#[derive(Debug, Default)]
pub struct Loaders {
    by_name: HashMap<String, Loader>,
}

#[async_trait]
impl DataLoader for Loaders {
    async fn load(&self, loader: &str, _cx: &ToolContext<'_>) -> Loaded {
        let _ = self.by_name.get(loader);
        Loaded::Nothing
    }
}
