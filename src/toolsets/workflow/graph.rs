//! A rule's actions and edges as a graph: its summary and its outline in words (contract section 9).

use std::collections::{BTreeSet, HashMap, VecDeque};

use serde_json::{Value, json};

use crate::tools::backend::BackendError;
use crate::tools::keys::{field, text};

/// 40 levels: deeper branches stay there, or blanks would be most of the outline.
const MAX_INDENT: usize = 40;

/// A rule's actions, and what follows on what.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// The actions, in the backend's order.
    pub nodes: Vec<Node>,
    /// All edges, sorted by order and then by target.
    pub edges: Vec<Edge>,
    /// The targets of start edges, in the backend's order.
    starts: Vec<usize>,
}

/// An action.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its type, or "" where the backend knows none.
    pub action_type: String,
    /// Its purpose.
    pub description: String,
    /// Whether it runs.
    pub is_active: bool,
    /// Its configuration; recipients may have been given their names.
    pub config: Value,
}

/// A step from one action to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// The node it leaves: an index of [`Graph::nodes`]; `None` for a start edge or an unknown source.
    pub source: Option<usize>,
    /// The node it leads to; `None` for an unknown target.
    pub target: Option<usize>,
    /// `start`, `sequence` or `always`.
    pub edge_type: String,
    /// The port it leaves from.
    pub output: Option<String>,
}

impl Graph {
    /// The graph in the backend's two lists.
    ///
    /// # Errors
    /// [`BackendError::Shape`] when one of them is not a list.
    pub fn parse(actions: &Value, edges: &Value) -> Result<Self, BackendError> {
        let nodes: Vec<Node> = rows(actions, "actions")?.iter().filter_map(Node::parse).collect();
        let index: HashMap<&str, usize> = nodes.iter().enumerate().map(|(i, node)| (node.id.as_str(), i)).collect();

        let mut ordered: Vec<(i64, &str, Edge)> = rows(edges, "edges")?
            .iter()
            .map(|edge| {
                let target = text(edge, "target_action_id").unwrap_or_default();
                let order = field(edge, "edge_order").and_then(Value::as_i64).unwrap_or(0);
                let parsed = Edge {
                    source: text(edge, "source_action_id").and_then(|id| index.get(id).copied()),
                    target: index.get(target).copied(),
                    edge_type: text(edge, "edge_type").unwrap_or("sequence").to_owned(),
                    output: text(edge, "source_output").map(str::to_owned),
                };
                (order, target, parsed)
            })
            .collect();
        let starts =
            ordered.iter().filter(|(_, _, edge)| edge.is_start()).filter_map(|(_, _, edge)| edge.target).collect();
        ordered.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        let edges = ordered.into_iter().map(|(_, _, edge)| edge).collect();
        Ok(Self { nodes, edges, starts })
    }

    /// The edges that leave each node.
    fn outgoing(&self) -> Vec<Vec<&Edge>> {
        let mut outgoing = vec![Vec::new(); self.nodes.len()];
        for edge in self.edges.iter().filter(|edge| !edge.is_start()) {
            if let Some(source) = edge.source {
                outgoing[source].push(edge);
            }
        }
        outgoing
    }

    /// Each node's distance from the nearest start, in edges; `None` where no start leads.
    pub fn depths(&self) -> Vec<Option<usize>> {
        let outgoing = self.outgoing();
        let mut depths = vec![None; self.nodes.len()];
        let mut queue: VecDeque<(usize, usize)> = self.starts.iter().map(|start| (*start, 0)).collect();
        while let Some((node, depth)) = queue.pop_front() {
            if depths[node].is_some() {
                continue;
            }
            depths[node] = Some(depth);
            queue.extend(outgoing[node].iter().filter_map(|edge| edge.target).map(|target| (target, depth + 1)));
        }
        depths
    }

    /// `{node_count, edge_count, branch_count, action_types_used, flow_outline}`.
    pub fn summary(&self) -> Value {
        let types: BTreeSet<&str> =
            self.nodes.iter().map(|node| node.action_type.as_str()).filter(|name| !name.is_empty()).collect();
        json!({
            "node_count": self.nodes.len(),
            "edge_count": self.edges.len(),
            "branch_count": self.outgoing().iter().filter(|edges| edges.len() > 1).count(),
            "action_types_used": types,
            "flow_outline": self.outline(),
        })
    }

    /// The flow in words, one line per action, depth first; branches are indented.
    pub fn outline(&self) -> String {
        if self.nodes.is_empty() {
            return "(empty workflow)".to_owned();
        }
        if self.starts.is_empty() {
            return "(no start edge defined)".to_owned();
        }
        let outgoing = self.outgoing();
        let mut seen = vec![false; self.nodes.len()];
        let mut lines = Vec::new();
        // A stack of our own: a chain as long as the backend likes must not use up the thread's.
        let mut stack: Vec<(usize, &str, usize)> = self.starts.iter().rev().map(|start| (*start, "", 0)).collect();
        while let Some((node, label, depth)) = stack.pop() {
            let label = if label.is_empty() { String::new() } else { format!("[{label}] ") };
            let again = if seen[node] { "  ↻ (continues above)" } else { "" };
            lines.push(format!("{:1$}{label}{2}{again}", "", 2 * depth.min(MAX_INDENT), self.nodes[node].line()));
            if std::mem::replace(&mut seen[node], true) {
                continue;
            }
            let next_depth = if outgoing[node].len() > 1 { depth + 1 } else { depth };
            for edge in outgoing[node].iter().rev() {
                if let Some(target) = edge.target {
                    stack.push((target, edge.label(), next_depth));
                }
            }
        }
        lines.join("\n")
    }
}

impl Node {
    fn parse(action: &Value) -> Option<Self> {
        let id = text(action, "id")?.to_owned();
        Some(Self {
            name: text(action, "name").unwrap_or(&id).to_owned(),
            action_type: text(action, "action_type").unwrap_or_default().to_owned(),
            description: text(action, "description").unwrap_or_default().to_owned(),
            is_active: field(action, "is_active").and_then(Value::as_bool).unwrap_or(true),
            config: field(action, "action_config").cloned().unwrap_or(Value::Null),
            id,
        })
    }

    fn line(&self) -> String {
        format!("{} ({}){}", self.name, self.action_type, self.alerts())
    }

    /// ` — alerts: A (mail), B (role)` for an alert whose recipients have been given their names.
    fn alerts(&self) -> String {
        if self.action_type != "create_alert" {
            return String::new();
        }
        let recipients = |kind: &str| {
            let list = self.config.get("recipients").and_then(|recipients| recipients.get(kind));
            list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
        };
        let users = recipients("users").iter().filter_map(|user| {
            let name = text(user, "name")?;
            Some(text(user, "email").map_or_else(|| name.to_owned(), |email| format!("{name} ({email})")))
        });
        let roles = recipients("roles").iter().filter_map(|role| Some(format!("{} (role)", text(role, "name")?)));
        let all: Vec<String> = users.chain(roles).collect();
        if all.is_empty() { String::new() } else { format!(" — alerts: {}", all.join(", ")) }
    }
}

impl Edge {
    /// Whether it leads from the trigger.
    pub fn is_start(&self) -> bool {
        self.edge_type == "start"
    }

    fn label(&self) -> &str {
        match &self.output {
            Some(output) => output,
            None if self.edge_type == "always" => "always",
            None => "",
        }
    }
}

/// The list's rows; `null` is how some encoders write an empty one.
fn rows<'a>(list: &'a Value, what: &str) -> Result<&'a [Value], BackendError> {
    match list {
        Value::Array(rows) => Ok(rows),
        Value::Null => Ok(&[]),
        _ => Err(BackendError::Shape(format!("{what} are not a list"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(id: &str, action_type: &str) -> Value {
        json!({"id": id, "name": id.to_uppercase(), "action_type": action_type, "is_active": true})
    }

    fn edge(source: &str, target: &str, kind: &str, output: &str, order: i64) -> Value {
        json!({"source_action_id": source, "target_action_id": target, "edge_type": kind,
               "source_output": output, "edge_order": order})
    }

    fn graph(actions: Value, edges: Value) -> Graph {
        Graph::parse(&actions, &edges).unwrap()
    }

    #[test]
    fn a_branching_workflow_is_summarised_and_outlined() {
        let mut alert = action("b", "create_alert");
        alert["action_config"] = json!({"recipients": {
            "users": [{"id": "u1", "name": "Ada Byron", "email": "ada@example.com"}, {"id": "u2", "name": "Unknown User"}],
            "roles": [{"id": "r1", "name": "Managers"}]}});
        let graph = graph(
            json!([
                action("a", "evaluate_condition"),
                alert,
                action("c", "send_email"),
                action("d", "delay"),
                action("x", "delay")
            ]),
            json!([
                edge("a", "c", "sequence", "false", 2),
                edge("a", "b", "sequence", "true", 1),
                edge("", "a", "start", "", 0),
                edge("b", "d", "sequence", "success", 3),
                edge("c", "d", "always", "", 4),
                edge("d", "gone", "sequence", "success", 5),
            ]),
        );
        let outline = "\
A (evaluate_condition)
  [true] B (create_alert) — alerts: Ada Byron (ada@example.com), Unknown User, Managers (role)
  [success] D (delay)
  [false] C (send_email)
  [always] D (delay)  ↻ (continues above)";
        assert_eq!(
            graph.summary(),
            json!({"node_count": 5, "edge_count": 6, "branch_count": 1,
                   "action_types_used": ["create_alert", "delay", "evaluate_condition", "send_email"],
                   "flow_outline": outline})
        );
        assert_eq!(graph.depths(), [Some(0), Some(1), Some(1), Some(2), None]);
    }

    #[test]
    fn an_outline_copes_with_whatever_the_backend_holds() {
        let ab = || json!([action("a", "delay"), action("b", "delay")]);
        let rows = [
            (json!([]), json!([]), "(empty workflow)", "nothing at all"),
            (json!(null), json!(null), "(empty workflow)", "null lists"),
            (ab(), json!([edge("a", "b", "sequence", "", 0)]), "(no start edge defined)", "no way in"),
            (
                ab(),
                json!([
                    edge("", "a", "start", "", 0),
                    edge("a", "b", "sequence", "", 1),
                    edge("b", "a", "sequence", "", 2)
                ]),
                "A (delay)\nB (delay)\nA (delay)  ↻ (continues above)",
                "a cycle ends",
            ),
            (
                ab(),
                json!([edge("", "b", "start", "", 1), edge("", "a", "start", "", 0)]),
                "B (delay)\nA (delay)",
                "starts in list order",
            ),
            (
                json!([action("a", "delay"), action("c", "delay"), action("b", "delay")]),
                json!([
                    edge("", "a", "start", "", 0),
                    edge("a", "c", "sequence", "", 1),
                    edge("a", "b", "sequence", "", 1)
                ]),
                "A (delay)\n  B (delay)\n  C (delay)",
                "equal orders are sorted by target",
            ),
        ];
        for (actions, edges, outline, reason) in rows {
            assert_eq!(graph(actions, edges).outline(), outline, "{reason}");
        }
    }

    #[test]
    fn a_chain_of_any_length_is_outlined() {
        let actions: Vec<Value> = (0..20_000).map(|i| action(&format!("n{i}"), "delay")).collect();
        let mut edges = vec![edge("", "n0", "start", "", 0)];
        edges.extend((1..20_000).map(|i| edge(&format!("n{}", i - 1), &format!("n{i}"), "sequence", "", i)));
        assert_eq!(graph(Value::Array(actions), Value::Array(edges)).outline().lines().count(), 20_000);
    }

    #[test]
    fn lists_that_are_no_lists_are_refused() {
        assert!(Graph::parse(&json!({}), &json!([])).is_err());
        assert!(Graph::parse(&json!([]), &json!("x")).is_err());
    }
}
