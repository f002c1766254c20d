//! What workflows can be made of: action types, trigger types, entities.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Kit, projection};
use crate::agent::ports::tools::ToolContext;
use crate::chat::tool::ToolOutput;
use crate::tools::backend::{BackendError, Request};
use crate::tools::{Tool, ToolError, parse_args};

/// `discover_action_types`: types with field names and ports, without their schemas.
pub struct ActionTypes(pub Arc<Kit>);

/// `discover_trigger_types`: the backend's rows as they are.
pub struct TriggerTypes(pub Arc<Kit>);

/// `discover_entities`: the backend's rows as they are.
pub struct Entities(pub Arc<Kit>);

/// `discover {category}`: the three above under one name, for clients and prompts that know that one.
pub struct Discover(pub Arc<Kit>);

#[derive(Deserialize)]
struct DiscoverArgs {
    category: Category,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Category {
    ActionTypes,
    TriggerTypes,
    Entities,
}

#[async_trait]
impl Tool for ActionTypes {
    async fn call(&self, _args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        discover(&self.0, Category::ActionTypes, cx).await
    }
}

#[async_trait]
impl Tool for TriggerTypes {
    async fn call(&self, _args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        discover(&self.0, Category::TriggerTypes, cx).await
    }
}

#[async_trait]
impl Tool for Entities {
    async fn call(&self, _args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        discover(&self.0, Category::Entities, cx).await
    }
}

#[async_trait]
impl Tool for Discover {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let args: DiscoverArgs = parse_args(args)?;
        discover(&self.0, args.category, cx).await
    }
}

async fn discover(kit: &Kit, category: Category, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
    let list = match category {
        Category::ActionTypes => "action-types",
        Category::TriggerTypes => "trigger-types",
        Category::Entities => "entities",
    };
    let rows = match kit.backend.call(cx.caller, Request::get(["v1", "workflow", list])).await? {
        Value::Array(rows) => rows.into_iter().filter(Value::is_object).collect(),
        // A list without entries may come without a body.
        Value::Null => Vec::new(),
        _ => return Err(BackendError::Shape("not a list".to_owned()).into()),
    };
    let rows = Value::Array(rows);
    let listed = match category {
        // Entries of another shape are still better than none.
        Category::ActionTypes => projection::action_types(&rows).unwrap_or(rows),
        Category::TriggerTypes | Category::Entities => rows,
    };
    Ok(ToolOutput::ok(listed.to_string()))
}
