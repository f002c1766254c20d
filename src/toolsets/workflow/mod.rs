//! The 17 tools of the workflow profile, against the backend's `/v1/workflow`.
//!
//! Tools: `discover`, `rules`, `node`, `alerts`, `write`, `preview`, `draft`. Between the model's words and the
//! backend: `prepare`, `after` and `kept` on the way in; `projection`, `graph` and `recipients` on the way out.
//!
//! **Invariant:** no tool here saves anything. A change is validated and previewed; saving is the preview desk's, after
//! the user's decision.

mod action_types;
mod after;
mod alerts;
mod args;
mod discover;
mod draft;
mod graph;
mod kept;
mod node;
mod prepare;
mod preview;
mod projection;
mod reader;
mod recipients;
mod resolve;
mod rules;
mod write;

use std::sync::Arc;

use crate::agent::ports::drafts::DraftStore;
use crate::agent::ports::previews::PreviewStore;
use crate::tools::backend::Backend;
use crate::tools::executor::Handler;
use crate::tools::previews::Recorder;
use crate::tools::{Deps, Tool, Unready};
use crate::toolsets::Toolset;
use reader::RuleReader;
use resolve::Resolver;

/// Its part of the page.
#[derive(rust_embed::RustEmbed)]
#[folder = "src/toolsets/workflow/page/"]
struct Page;

/// The tools beside the workflow canvas.
pub const TOOLSET: Toolset = Toolset {
    name: "workflow",
    page: super::files::<Page>,
    tools,
    reader: Some((reader::NAME, |backend| Arc::new(RuleReader(backend)))),
};

/// What every workflow tool works with.
struct Kit {
    backend: Arc<Backend>,
    resolver: Resolver,
    drafts: Arc<dyn DraftStore>,
    previews: Arc<dyn PreviewStore>,
    recorder: Recorder,
}

/// What these tools change, as a preview calls it.
const WHAT: &str = "workflow";

/// The handlers, in catalogue order, and `discover`, which is answered but not offered.
fn tools(deps: &Deps) -> Result<Vec<Handler>, Unready> {
    let kit = Arc::new(Kit {
        backend: deps.backend.clone(),
        resolver: Resolver::new(deps.backend.clone()),
        drafts: deps.drafts.clone(),
        previews: deps.previews.clone(),
        recorder: deps.recorder(),
    });
    let handler = |name: &'static str, tool: fn(Arc<Kit>) -> Arc<dyn Tool>| (name.into(), tool(kit.clone()));
    Ok(vec![
        handler("discover_action_types", |kit| Arc::new(discover::ActionTypes(kit))),
        handler("discover_trigger_types", |kit| Arc::new(discover::TriggerTypes(kit))),
        handler("discover_entities", |kit| Arc::new(discover::Entities(kit))),
        handler("get_workflow_rule", |kit| Arc::new(rules::GetRule(kit))),
        handler("explain_workflow_node", |kit| Arc::new(node::ExplainNode(kit))),
        handler("list_workflow_rules", |kit| Arc::new(rules::ListRules(kit))),
        handler("list_my_alerts", |kit| Arc::new(alerts::ListMine(kit))),
        handler("get_alert_detail", |kit| Arc::new(alerts::GetDetail(kit))),
        handler("list_alerts_for_rule", |kit| Arc::new(alerts::ListForRule(kit))),
        handler("create_workflow", |kit| Arc::new(write::Create(kit))),
        handler("update_workflow", |kit| Arc::new(write::Update(kit))),
        handler("validate_workflow", |kit| Arc::new(write::Validate(kit))),
        handler("preview_workflow", |kit| Arc::new(preview::PreviewWorkflow(kit))),
        handler("start_draft", |kit| Arc::new(draft::Start(kit))),
        handler("add_draft_action", |kit| Arc::new(draft::AddAction(kit))),
        handler("remove_draft_action", |kit| Arc::new(draft::RemoveAction(kit))),
        handler("preview_draft", |kit| Arc::new(draft::PreviewDraft(kit))),
        handler("discover", |kit| Arc::new(discover::Discover(kit))),
    ])
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::action_types::SAVEABLE;

    const DEFINITIONS: &str = include_str!("../../../config/tools/workflow.json");

    /// All keywords at any depth of a schema; what stands below `properties` are names, not keywords.
    fn keywords(schema: &Value, found: &mut Vec<String>) {
        for (key, value) in schema.as_object().into_iter().flatten() {
            found.push(key.clone());
            if key == "properties" {
                value.as_object().into_iter().flatten().for_each(|(_, property)| keywords(property, found));
            } else {
                keywords(value, found);
            }
        }
    }

    #[test]
    fn the_catalogue_offers_the_documented_tools_in_order_with_plain_schemas() {
        let definitions: Vec<Value> = serde_json::from_str(DEFINITIONS).unwrap();
        let names: Vec<&str> = definitions.iter().filter_map(|tool| tool["name"].as_str()).collect();
        let documented = [
            "discover_action_types",
            "discover_trigger_types",
            "discover_entities",
            "get_workflow_rule",
            "explain_workflow_node",
            "list_workflow_rules",
            "list_my_alerts",
            "get_alert_detail",
            "list_alerts_for_rule",
            "create_workflow",
            "update_workflow",
            "validate_workflow",
            "preview_workflow",
            "start_draft",
            "add_draft_action",
            "remove_draft_action",
            "preview_draft",
        ];
        assert_eq!(names, documented);

        for tool in &definitions {
            assert_eq!(tool["input_schema"]["type"], "object", "{}", tool["name"]);
            let mut found = Vec::new();
            keywords(&tool["input_schema"], &mut found);
            // Some vendors refuse schemas with any other keyword.
            found.retain(|k| !["type", "properties", "required", "enum", "description", "items"].contains(&k.as_str()));
            assert_eq!(found, Vec::<String>::new(), "{}", tool["name"]);
            let properties = &tool["input_schema"]["properties"];
            for required in tool["input_schema"]["required"].as_array().into_iter().flatten() {
                assert!(properties.get(required.as_str().unwrap()).is_some(), "{}: {required}", tool["name"]);
            }
        }
    }

    #[test]
    fn the_catalogue_names_exactly_the_action_types_that_can_be_saved() {
        let definitions: Vec<Value> = serde_json::from_str(DEFINITIONS).unwrap();
        let schema =
            |name: &str| &definitions.iter().find(|tool| tool["name"] == name).unwrap()["input_schema"]["properties"];
        let saveable: Vec<&str> = SAVEABLE.iter().map(|(name, _)| *name).collect();
        let in_preview = &schema("preview_workflow")["workflow"]["properties"]["actions"]["items"]["properties"]["action_type"]
            ["enum"];
        assert_eq!(*in_preview, Value::from(saveable.clone()));
        assert_eq!(schema("add_draft_action")["action_type"]["enum"], Value::from(saveable));
    }
}
