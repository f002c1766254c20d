//! Rules: the list, and one rule with its flow in words.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::graph::Graph;
use super::{Kit, projection, recipients};
use crate::agent::ports::tools::ToolContext;
use crate::chat::caller::Caller;
use crate::chat::tool::ToolOutput;
use crate::tools::backend::{BackendError, Request};
use crate::tools::pages::all_rows;
use crate::tools::{Tool, ToolError};

/// `list_workflow_rules`: all rules, briefly.
pub struct ListRules(pub Arc<Kit>);

/// `get_workflow_rule`: one rule without its bulk, and its summary.
pub struct GetRule(pub Arc<Kit>);

#[async_trait]
impl Tool for ListRules {
    async fn call(&self, _args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let rows = all_rows(&self.0.backend, cx.caller, &["v1", "workflow", "rules"]).await?;
        Ok(ToolOutput::ok(projection::rules(&rows).to_string()))
    }
}

#[async_trait]
impl Tool for GetRule {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let kit = &*self.0;
        let rule_ref = kit.resolver.open_rule(args.get("workflow_id"), cx).await?;
        let rule = kit.backend.call(cx.caller, Request::get(["v1", "workflow", "rules", &rule_ref.id]));
        let (rule, (actions, edges)) = futures::try_join!(rule, parts(kit, cx.caller, &rule_ref.id))?;

        if !rule.is_object() {
            return Err(BackendError::Shape("not a rule".to_owned()).into());
        }

        let mut result = json!({
            "workflow_id": rule_ref.id,
            "rule": projection::rule_without_bulk(rule, &actions),
        });
        match Graph::parse(&actions, &edges) {
            Ok(mut graph) => {
                recipients::name_all(kit, cx.caller, graph.nodes.iter_mut()).await;
                result["summary"] = graph.summary();
            }
            Err(error) => result["summary_error"] = json!(error.to_string()),
        }
        if let Some(note) = rule_ref.note {
            result["note"] = json!(note);
        }
        Ok(ToolOutput::ok(result.to_string()))
    }
}

/// A rule's actions and edges.
///
/// # Errors
/// See [`BackendError`].
pub async fn parts(kit: &Kit, caller: &Caller, rule: &str) -> Result<(Value, Value), BackendError> {
    let list = |part| kit.backend.call(caller, Request::get(["v1", "workflow", "rules", rule, part]));
    futures::try_join!(list("actions"), list("edges"))
}
