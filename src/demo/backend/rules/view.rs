//! Rules as clients read them: the reading routes' shape, and the shape that a full save answers with.

use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::demo::backend::records::reference::Reference;
use crate::demo::backend::records::rules::rule::{Action, Edge, EdgeType, Rule};
use crate::demo::backend::records::stamp::Stamp;

/// A rule of the list, or a single one with its actions.
#[derive(Debug, Serialize)]
pub struct RuleView<'a> {
    id: Uuid,
    name: &'a str,
    description: &'a str,
    entity_id: Uuid,
    entity_name: &'a str,
    entity_schema_name: &'a str,
    entity_type_id: Option<Uuid>,
    entity_type_name: &'a str,
    trigger_type_id: Uuid,
    trigger_type_name: &'a str,
    trigger_conditions: &'a Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    canvas_layout: &'a Value,
    is_active: bool,
    is_default: bool,
    created_by: &'a str,
    updated_by: &'a str,
    created_date: Stamp,
    updated_date: Stamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    actions: Option<Vec<ActionView<'a>>>,
}

/// An action of a rule.
#[derive(Debug, Serialize)]
pub struct ActionView<'a> {
    id: Uuid,
    rule_id: Uuid,
    name: &'a str,
    description: &'a str,
    action_type: &'a str,
    action_config: &'a Map<String, Value>,
    is_active: bool,
}

/// An edge of a rule.
#[derive(Debug, Serialize)]
pub struct EdgeView<'a> {
    id: Uuid,
    rule_id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_action_id: Option<Uuid>,
    target_action_id: Uuid,
    edge_type: EdgeType,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_output: Option<&'a str>,
    edge_order: u32,
    created_date: Stamp,
}

/// The answer to a full save.
#[derive(Debug, Serialize)]
pub struct SavedView<'a> {
    id: Uuid,
    name: &'a str,
    description: &'a str,
    is_active: bool,
    entity_id: Uuid,
    trigger_type_id: Uuid,
    trigger_conditions: &'a Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    canvas_layout: &'a Value,
    actions: Vec<ActionView<'a>>,
    edges: Vec<SavedEdge<'a>>,
    created_date: Stamp,
    updated_date: Stamp,
}

#[derive(Debug, Serialize)]
struct SavedEdge<'a> {
    id: Uuid,
    // Empty for the start, as in the request.
    source_action_id: String,
    target_action_id: Uuid,
    edge_type: EdgeType,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_output: Option<&'a str>,
    edge_order: u32,
}

impl<'a> RuleView<'a> {
    /// The rule without its actions.
    pub fn brief(rule: &'a Rule, reference: &'a Reference) -> Self {
        let entity = reference.entity(rule.entity_id);
        let kind = entity.and_then(|entity| reference.entity_type(entity.entity_type_id));
        let trigger = reference.trigger(rule.trigger_type_id);
        Self {
            id: rule.id,
            name: &rule.name,
            description: &rule.description,
            entity_id: rule.entity_id,
            entity_name: entity.map_or("", |entity| &entity.name),
            entity_schema_name: entity.map_or("", |entity| &entity.schema_name),
            entity_type_id: entity.map(|entity| entity.entity_type_id),
            entity_type_name: kind.map_or("", |kind| &kind.name),
            trigger_type_id: rule.trigger_type_id,
            trigger_type_name: trigger.map_or("", |trigger| &trigger.name),
            trigger_conditions: &rule.trigger_conditions,
            canvas_layout: &rule.canvas_layout,
            is_active: rule.is_active,
            is_default: rule.is_default,
            created_by: &rule.created_by,
            updated_by: &rule.updated_by,
            created_date: rule.created,
            updated_date: rule.updated,
            actions: None,
        }
    }

    /// The rule with its actions.
    pub fn whole(rule: &'a Rule, reference: &'a Reference) -> Self {
        Self { actions: Some(ActionView::all(rule)), ..Self::brief(rule, reference) }
    }
}

impl<'a> ActionView<'a> {
    /// A rule's actions, inactive ones included.
    pub fn all(rule: &'a Rule) -> Vec<Self> {
        let view = |action: &'a Action| Self {
            id: action.id,
            rule_id: rule.id,
            name: &action.name,
            description: &action.description,
            action_type: &action.action_type,
            action_config: &action.config,
            is_active: action.is_active,
        };
        rule.actions.iter().map(view).collect()
    }
}

impl<'a> EdgeView<'a> {
    /// A rule's edges.
    pub fn all(rule: &'a Rule) -> Vec<Self> {
        let view = |edge: &'a Edge| Self {
            id: edge.id,
            rule_id: rule.id,
            source_action_id: edge.source,
            target_action_id: edge.target,
            edge_type: edge.kind,
            source_output: edge.output.as_deref(),
            edge_order: edge.order,
            created_date: edge.created,
        };
        rule.edges.iter().map(view).collect()
    }
}

impl<'a> SavedView<'a> {
    /// The rule as it was saved.
    pub fn new(rule: &'a Rule) -> Self {
        let edge = |edge: &'a Edge| SavedEdge {
            id: edge.id,
            source_action_id: edge.source.map(|id| id.to_string()).unwrap_or_default(),
            target_action_id: edge.target,
            edge_type: edge.kind,
            source_output: edge.output.as_deref(),
            edge_order: edge.order,
        };
        Self {
            id: rule.id,
            name: &rule.name,
            description: &rule.description,
            is_active: rule.is_active,
            entity_id: rule.entity_id,
            trigger_type_id: rule.trigger_type_id,
            trigger_conditions: &rule.trigger_conditions,
            canvas_layout: &rule.canvas_layout,
            actions: ActionView::all(rule),
            edges: rule.edges.iter().map(edge).collect(),
            created_date: rule.created,
            updated_date: rule.updated,
        }
    }
}
