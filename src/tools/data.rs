//! The data loaders: REST calls whose answers prompts show.

use async_trait::async_trait;

use crate::agent::ports::data::{DataLoader, Loaded};
use crate::agent::ports::tools::ToolContext;

/// All loaders by name.
#[derive(Debug, Default)]
pub struct Loaders {}

#[async_trait]
impl DataLoader for Loaders {
    async fn load(&self, _loader: &str, _cx: &ToolContext<'_>) -> Loaded {
        Loaded::Nothing
    }
}
