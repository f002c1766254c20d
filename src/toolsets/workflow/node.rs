//! `explain_workflow_node`: everything about one action, and what comes before and after it.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::graph::{Edge, Graph};
use super::{Kit, args, recipients, rules};
use crate::agent::ports::tools::ToolContext;
use crate::chat::tool::ToolOutput;
use crate::tools::names::{listed, near};
use crate::tools::{Tool, ToolError, parse_args};

/// `explain_workflow_node`.
pub struct ExplainNode(pub Arc<Kit>);

#[derive(Deserialize)]
struct Args {
    #[serde(default)]
    workflow_id: Option<Value>,
    #[serde(default, deserialize_with = "args::optional_text")]
    node_name: Option<String>,
}

/// Which actions a name means: indexes of the graph's nodes.
#[derive(Debug, PartialEq, Eq)]
enum Match {
    One(usize),
    ByType(Vec<usize>),
}

#[async_trait]
impl Tool for ExplainNode {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let kit = &*self.0;
        let args: Args = parse_args(args)?;
        let name = args::required("node_name", args.node_name)?;
        let rule = kit.resolver.open_rule(args.workflow_id.as_ref(), cx).await?;
        let (actions, edges) = rules::parts(kit, cx.caller, &rule.id).await?;
        let mut graph = Graph::parse(&actions, &edges)?;

        let found = find(&graph, &name).ok_or_else(|| {
            let names = near(graph.nodes.iter().map(|node| node.name.as_str()), &name);
            let elsewhere = rule.note.as_deref().map(|note| format!(" ({note})")).unwrap_or_default();
            ToolError::Refused(format!(
                "no action {name:?} in this workflow{elsewhere}; its actions: {}",
                listed(names)
            ))
        })?;
        let wanted = match &found {
            Match::One(index) => vec![*index],
            Match::ByType(indexes) => indexes.clone(),
        };
        let nodes = graph.nodes.iter_mut().enumerate().filter(|(index, _)| wanted.contains(index));
        recipients::name_all(kit, cx.caller, nodes.map(|(_, node)| node)).await;

        let mut result = match found {
            Match::One(index) => explanation(&graph, index),
            Match::ByType(indexes) => json!({
                "matched_by": "action_type",
                "match_count": indexes.len(),
                "message": format!("{} actions are of type {name:?}; all of them are explained", indexes.len()),
                "explanations": indexes.iter().map(|index| explanation(&graph, *index)).collect::<Vec<_>>(),
            }),
        };
        if let Some(note) = rule.note {
            result["note"] = json!(note);
        }
        Ok(ToolOutput::ok(result.to_string()))
    }
}

/// What `wanted` means: a type that several actions have, else a name, an id, a name in another case, the only one of a type.
fn find(graph: &Graph, wanted: &str) -> Option<Match> {
    let of_type: Vec<usize> =
        graph.nodes.iter().enumerate().filter(|(_, node)| node.action_type == wanted).map(|(index, _)| index).collect();
    if of_type.len() > 1 {
        return Some(Match::ByType(of_type));
    }
    let lower = wanted.to_lowercase();
    let by_name = graph.nodes.iter().position(|node| node.name == wanted);
    let by_id = || graph.nodes.iter().position(|node| node.id == wanted);
    let by_name_in_other_case = || graph.nodes.iter().position(|node| node.name.to_lowercase() == lower);
    by_name.or_else(by_id).or_else(by_name_in_other_case).or(of_type.first().copied()).map(Match::One)
}

fn explanation(graph: &Graph, index: usize) -> Value {
    let Some(node) = graph.nodes.get(index) else { return Value::Null };
    let incoming = graph.edges.iter().filter(|edge| edge.target == Some(index));
    let incoming = incoming.filter_map(|edge| step(graph, edge, edge.source, edge.is_start()));
    let outgoing = graph.edges.iter().filter(|edge| edge.source == Some(index) && !edge.is_start());
    let outgoing = outgoing.filter_map(|edge| step(graph, edge, edge.target, false));
    let depth = graph.depths().get(index).copied().flatten();
    json!({
        "action": {
            "id": node.id,
            "name": node.name,
            "action_type": node.action_type,
            "description": node.description,
            "is_active": node.is_active,
            "action_config": node.config,
        },
        "depth_from_start": depth.map_or(json!(-1), |depth| json!(depth)),
        "incoming_from": incoming.collect::<Vec<_>>(),
        "outgoing_to": outgoing.collect::<Vec<_>>(),
    })
}

/// An edge as seen from one of its ends: the other end is `neighbour`, or the trigger.
fn step(graph: &Graph, edge: &Edge, neighbour: Option<usize>, from_trigger: bool) -> Option<Value> {
    let (id, name) = match neighbour.and_then(|index| graph.nodes.get(index)) {
        _ if from_trigger => ("", "(trigger)"),
        Some(node) => (node.id.as_str(), node.name.as_str()),
        None => return None,
    };
    let mut step = json!({"action_id": id, "action_name": name, "edge_type": edge.edge_type});
    if let Some(output) = &edge.output {
        step["output_port"] = json!(output);
    }
    Some(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph() -> Graph {
        Graph::parse(
            &json!([
                {"id": "a", "name": "Check", "action_type": "evaluate_condition", "action_config": {"conditions": []}},
                {"id": "b", "name": "High", "action_type": "create_alert", "is_active": false, "description": "urgent"},
                {"id": "c", "name": "Low", "action_type": "create_alert"},
                {"id": "d", "name": "Loose", "action_type": "delay"},
            ]),
            &json!([
                {"source_action_id": "", "target_action_id": "a", "edge_type": "start", "edge_order": 0},
                {"source_action_id": "a", "target_action_id": "b", "edge_type": "sequence", "source_output": "true", "edge_order": 1},
                {"source_action_id": "a", "target_action_id": "c", "edge_type": "sequence", "source_output": "false", "edge_order": 2},
            ]),
        )
        .unwrap()
    }

    #[test]
    fn an_action_is_found_by_name_id_or_type() {
        let rows = [
            ("High", Some(Match::One(1)), "name"),
            ("c", Some(Match::One(2)), "id"),
            ("high", Some(Match::One(1)), "name in another case"),
            ("evaluate_condition", Some(Match::One(0)), "the only one of its type"),
            ("create_alert", Some(Match::ByType(vec![1, 2])), "several of a type"),
            ("Medium", None, "nothing"),
        ];
        for (wanted, expected, reason) in rows {
            assert_eq!(find(&graph(), wanted), expected, "{reason}");
        }
    }

    #[test]
    fn an_explanation_tells_what_comes_before_and_after() {
        let start = json!({"action_id": "", "action_name": "(trigger)", "edge_type": "start"});
        let high = json!({"action_id": "b", "action_name": "High", "edge_type": "sequence", "output_port": "true"});
        let low = json!({"action_id": "c", "action_name": "Low", "edge_type": "sequence", "output_port": "false"});
        assert_eq!(
            explanation(&graph(), 0),
            json!({
                "action": {"id": "a", "name": "Check", "action_type": "evaluate_condition", "description": "",
                           "is_active": true, "action_config": {"conditions": []}},
                "depth_from_start": 0, "incoming_from": [start], "outgoing_to": [high, low],
            })
        );
        assert_eq!(
            explanation(&graph(), 3),
            json!({
                "action": {"id": "d", "name": "Loose", "action_type": "delay", "description": "",
                           "is_active": true, "action_config": null},
                "depth_from_start": -1, "incoming_from": [], "outgoing_to": [],
            })
        );
    }
}
