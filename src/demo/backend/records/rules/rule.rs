//! Rules: a trigger on an entity, and the graph of actions that follows.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::demo::backend::records::stamp::Stamp;

/// A saved rule.
///
/// **Invariant:** its graph has passed [`super::validate::check`], and every edge joins two of its actions.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its id.
    pub id: Uuid,
    /// Its name; several rules may share one.
    pub name: String,
    /// What it is for; may be empty.
    pub description: String,
    /// The table it watches.
    pub entity_id: Uuid,
    /// What triggers it.
    pub trigger_type_id: Uuid,
    /// When the trigger counts: an object, or null for always.
    pub trigger_conditions: Value,
    /// Where a canvas draws the nodes: an object or null.
    pub canvas_layout: Value,
    /// Whether it runs.
    pub is_active: bool,
    /// Whether it came with the product and cannot be changed.
    pub is_default: bool,
    /// The first author's `sub`.
    pub created_by: String,
    /// The last author's `sub`.
    pub updated_by: String,
    /// When it was made.
    pub created: Stamp,
    /// When it was last saved.
    pub updated: Stamp,
    /// Its actions, those that an update left out included: they are inactive and have no edges.
    pub actions: Vec<Action>,
    /// Its edges.
    pub edges: Vec<Edge>,
}

/// A node of a rule's graph.
#[derive(Debug, Clone)]
pub struct Action {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// What it is for; may be empty.
    pub description: String,
    /// One of the action types.
    pub action_type: String,
    /// Its settings, with `action_type` among them.
    pub config: Map<String, Value>,
    /// Whether it runs.
    pub is_active: bool,
}

/// An edge of a rule's graph.
#[derive(Debug, Clone)]
pub struct Edge {
    /// Its id.
    pub id: Uuid,
    /// The action it leaves; `None` for the start.
    pub source: Option<Uuid>,
    /// The action it leads to.
    pub target: Uuid,
    /// When it is followed.
    pub kind: EdgeType,
    /// The port it leaves by.
    pub output: Option<String>,
    /// Its place among its siblings.
    pub order: u32,
    /// When it was made.
    pub created: Stamp,
}

/// When an edge is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeType {
    /// At the rule's start.
    Start,
    /// After its source ended through the port.
    Sequence,
    /// After its source, whatever came of it.
    Always,
}
