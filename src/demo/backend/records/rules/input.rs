//! What a full save asks for: read leniently, so that everything wrong with its form can be told at once, then turned into
//! a [`RuleInput`] whose form is right. Whether its graph makes sense is the next question, asked by `validate`.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::rule::EdgeType;
use crate::demo::backend::records::action_types::ActionTypes;
use crate::demo::backend::records::fields::FieldErrors;

const NAME: RangeInclusive<usize> = 1..=255;
const DESCRIPTION: RangeInclusive<usize> = 0..=1000;

/// The body of a full save, as it came.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SaveBody {
    name: Option<String>,
    description: Option<String>,
    is_active: Option<bool>,
    /// The table to watch.
    pub entity_id: Option<String>,
    /// What triggers the rule.
    pub trigger_type_id: Option<String>,
    trigger_conditions: Value,
    canvas_layout: Value,
    actions: Option<Vec<ActionBody>>,
    edges: Option<Vec<EdgeBody>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ActionBody {
    id: Option<String>,
    name: Option<String>,
    description: Option<String>,
    action_type: Option<String>,
    action_config: Value,
    is_active: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EdgeBody {
    source_action_id: Option<String>,
    target_action_id: Option<String>,
    edge_type: Option<String>,
    source_output: Option<String>,
    edge_order: Option<i64>,
}

/// A full save of the right form.
#[derive(Debug)]
pub struct RuleInput {
    /// 1 to 255 characters.
    pub name: String,
    /// At most 1000 characters.
    pub description: String,
    /// Whether the rule shall run; true when the body does not say.
    pub is_active: bool,
    /// The table to watch; not checked for existence yet.
    pub entity_id: Uuid,
    /// What triggers the rule; not checked for existence yet.
    pub trigger_type_id: Uuid,
    /// An object or null.
    pub trigger_conditions: Value,
    /// An object or null.
    pub canvas_layout: Value,
    /// The nodes.
    pub actions: Vec<ActionInput>,
    /// The edges.
    pub edges: Vec<EdgeInput>,
}

/// A node of the right form.
#[derive(Debug)]
pub struct ActionInput {
    /// The id of an action that exists already.
    pub id: Option<Uuid>,
    /// 1 to 255 characters.
    pub name: String,
    /// At most 1000 characters.
    pub description: String,
    /// One of the known types.
    pub action_type: String,
    /// Not checked yet.
    pub config: Map<String, Value>,
    /// Whether the action shall run; true when the body does not say.
    pub is_active: bool,
}

/// An edge of the right form. Its ends are still texts: `temp:<index>` or an action's id.
#[derive(Debug)]
pub struct EdgeInput {
    /// The action to leave; empty for none.
    pub source: String,
    /// The action to reach.
    pub target: String,
    /// When to follow it.
    pub kind: EdgeType,
    /// The port to leave by.
    pub output: Option<String>,
    /// Its place among its siblings.
    pub order: u32,
}

impl SaveBody {
    /// The save, when its form is right.
    ///
    /// # Errors
    /// Every field that is missing, too long or not what it should be.
    pub fn check(self, types: &ActionTypes) -> Result<RuleInput, FieldErrors> {
        let mut errors = FieldErrors::default();
        let input = RuleInput {
            name: text(&mut errors, "name", self.name, NAME),
            description: text(&mut errors, "description", self.description, DESCRIPTION),
            is_active: self.is_active.unwrap_or(true),
            entity_id: id(&mut errors, "entity_id", self.entity_id.as_deref()).unwrap_or_default(),
            trigger_type_id: id(&mut errors, "trigger_type_id", self.trigger_type_id.as_deref()).unwrap_or_default(),
            trigger_conditions: object_or_null(&mut errors, "trigger_conditions", self.trigger_conditions),
            canvas_layout: object_or_null(&mut errors, "canvas_layout", self.canvas_layout),
            actions: numbered(self.actions).map(|(i, body)| body.check(&mut errors, i, types)).collect(),
            edges: numbered(self.edges).filter_map(|(i, body)| body.check(&mut errors, i)).collect(),
        };
        let mut seen = HashSet::new();
        if !input.actions.iter().filter_map(|action| action.id).all(|id| seen.insert(id)) {
            errors.push("actions", "two actions have the same id");
        }
        errors.finish()?;
        Ok(input)
    }
}

fn numbered<T>(list: Option<Vec<T>>) -> impl Iterator<Item = (usize, T)> {
    list.unwrap_or_default().into_iter().enumerate()
}

impl ActionBody {
    fn check(self, errors: &mut FieldErrors, index: usize, types: &ActionTypes) -> ActionInput {
        let at = |field: &str| format!("actions[{index}].{field}");
        let id = match self.id.as_deref() {
            None | Some("") => None,
            text => id(errors, &at("id"), text),
        };
        let action_type = self.action_type.unwrap_or_default();
        if types.named(&action_type).is_none() {
            errors.push(at("action_type"), "must be one of the action types");
        }
        let config = match self.action_config {
            Value::Object(config) => config,
            _ => {
                errors.push(at("action_config"), "must be an object");
                Map::new()
            }
        };
        ActionInput {
            id,
            name: text(errors, &at("name"), self.name, NAME),
            description: text(errors, &at("description"), self.description, DESCRIPTION),
            action_type,
            config,
            is_active: self.is_active.unwrap_or(true),
        }
    }
}

impl EdgeBody {
    fn check(self, errors: &mut FieldErrors, index: usize) -> Option<EdgeInput> {
        let at = |field: &str| format!("edges[{index}].{field}");
        let target = self.target_action_id.unwrap_or_default();
        if target.is_empty() {
            errors.push(at("target_action_id"), "is required");
        }
        let order = u32::try_from(self.edge_order.unwrap_or(0)).unwrap_or_else(|_| {
            errors.push(at("edge_order"), "must be 0 or more");
            0
        });
        let kind = match self.edge_type.as_deref() {
            Some("start") => EdgeType::Start,
            Some("sequence") => EdgeType::Sequence,
            Some("always") => EdgeType::Always,
            _ => {
                errors.push(at("edge_type"), "must be one of start, sequence, always");
                return None;
            }
        };
        let source = self.source_action_id.unwrap_or_default();
        let output = self.source_output.filter(|port| !port.is_empty());
        Some(EdgeInput { source, target, kind, output, order })
    }
}

fn text(errors: &mut FieldErrors, field: &str, text: Option<String>, length: RangeInclusive<usize>) -> String {
    let text = text.unwrap_or_default();
    errors.check_length(field, &text, length);
    text
}

fn id(errors: &mut FieldErrors, field: &str, text: Option<&str>) -> Option<Uuid> {
    let id = Uuid::try_parse(text.unwrap_or_default()).ok();
    if id.is_none() {
        errors.push(field, "must be a UUID");
    }
    id
}

fn object_or_null(errors: &mut FieldErrors, field: &str, value: Value) -> Value {
    if !(value.is_object() || value.is_null()) {
        errors.push(field, "must be an object");
    }
    value
}
