//! A draft's document and how it changes: pure.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::damaged;
use crate::tools::ToolError;
use crate::tools::names::{listed, near};
use crate::toolsets::workflow::action_types::{ActionTypes, port_name};
use crate::toolsets::workflow::after::{self, AfterError};

/// 100 actions: a draft is written by hand, one call each.
const MAX_ACTIONS: usize = 100;

/// A workflow in the making. Entity and trigger keep their names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// The workflow's name.
    pub name: String,
    /// `schema.table`, or an id.
    pub entity: String,
    /// The trigger type's name, or its id.
    pub trigger_type: String,
    /// What the workflow is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// When it triggers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_conditions: Option<Value>,
    /// The actions, in the order they were added.
    pub actions: Vec<Action>,
}

/// An action of a draft.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// Unique in its draft.
    pub name: String,
    /// One of the saveable types.
    pub action_type: String,
    /// Its configuration.
    pub action_config: Map<String, Value>,
    /// Whether it runs.
    pub is_active: bool,
    /// The action before it; `None` starts the workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Predecessor>,
}

/// The action before another one. The two parts stay apart: as one text they could also be read as another action's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predecessor {
    /// The name of an action of the same draft.
    pub source: String,
    /// One of its ports.
    pub port: String,
}

impl fmt::Display for Predecessor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source, self.port)
    }
}

impl Document {
    /// The document in a stored body.
    ///
    /// # Errors
    /// When it is not one.
    pub fn from_body(body: Value) -> Result<Self, ToolError> {
        serde_json::from_value(body).map_err(damaged)
    }

    /// The body to store.
    ///
    /// # Errors
    /// Never for a document that was read or made here.
    pub fn to_body(&self) -> Result<Value, ToolError> {
        serde_json::to_value(self).map_err(damaged)
    }

    /// The workflow so far with all its edges, in the shape that `preview_workflow` takes.
    ///
    /// # Errors
    /// [`ToolError::Refused`] when two actions start.
    pub fn workflow(&self) -> Result<Value, ToolError> {
        let edges = self.edges().map_err(|error| ToolError::Refused(error.to_string()))?;
        let mut workflow = self.to_body()?;
        workflow["is_active"] = json!(true);
        workflow["edges"] = json!(edges);
        for action in workflow["actions"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            action.shift_remove("after");
        }
        Ok(workflow)
    }

    fn edges(&self) -> Result<Vec<Value>, AfterError> {
        let names: Vec<&str> = self.actions.iter().map(|known| known.name.as_str()).collect();
        let mut edges = Vec::new();
        let mut start: Option<&Action> = None;
        for (index, action) in self.actions.iter().enumerate() {
            let target = format!("temp:{index}");
            let Some(after) = &action.after else {
                if let Some(first) = start.replace(action) {
                    return Err(AfterError::SecondStart { first: first.name.clone(), second: action.name.clone() });
                }
                edges.push(json!({"target_action_id": target, "edge_type": "start", "edge_order": index}));
                continue;
            };
            let source = after::source_index(&names, &action.name, &after.source)?;
            edges.push(json!({
                "source_action_id": format!("temp:{source}"),
                "target_action_id": target,
                "edge_type": "sequence",
                "source_output": after.port,
                "edge_order": index,
            }));
        }
        Ok(edges)
    }

    /// Adds an action after the one that `after` names, and returns its index and its ports. The action's own `after` is
    /// replaced.
    ///
    /// # Errors
    /// [`ToolError::Refused`] for a name that is taken, an unknown type, a predecessor or port that is not there, and a second
    /// start.
    pub fn add(
        &mut self,
        mut action: Action,
        after: Option<&str>,
        types: &ActionTypes,
    ) -> Result<(usize, Vec<String>), ToolError> {
        let refused = |message: String| Err(ToolError::Refused(message));
        if self.actions.len() >= MAX_ACTIONS {
            return refused(format!("a draft holds at most {MAX_ACTIONS} actions"));
        }
        if self.actions.iter().any(|known| known.name == action.name) {
            return refused(format!("the draft already has an action {:?}; choose another name", action.name));
        }
        if types.names().all(|name| name != action.action_type) {
            return refused(format!(
                "unknown action_type {:?}; the types are: {}",
                action.action_type,
                listed(types.names())
            ));
        }
        action.after = match after {
            Some(after) => Some(self.predecessor(after, types)?),
            None => match self.actions.iter().find(|known| known.after.is_none()) {
                Some(start) => {
                    return refused(format!(
                        "action {:?} needs `after`: the draft already starts with {:?}, and only one action can start",
                        action.name, start.name
                    ));
                }
                None => None,
            },
        };
        let ports = types.ports(&action.action_type).map(<[String]>::to_vec);
        self.actions.push(action);
        Ok((self.actions.len() - 1, ports.unwrap_or_else(|| vec!["success".to_owned(), "failure".to_owned()])))
    }

    /// What `after` means, the default port filled in.
    fn predecessor(&self, after: &str, types: &ActionTypes) -> Result<Predecessor, ToolError> {
        let (name, port) = after::split(after, |text| self.actions.iter().any(|known| known.name == text));
        let Some(source) = self.actions.iter().find(|known| known.name == name) else {
            let names = self.actions.iter().map(|known| known.name.as_str());
            return Err(ToolError::Refused(format!(
                "`after` refers to {name:?}, which is not in the draft; its actions: {}",
                listed(near(names, name))
            )));
        };
        let port = match port {
            Some(port) => port_name(&source.action_type, port),
            None => types.default_port(&source.action_type),
        };
        match types.ports(&source.action_type) {
            Some(ports) if !ports.iter().any(|known| known == port) => Err(ToolError::Refused(format!(
                "action {name:?} has no port {port:?}; its ports: {}",
                listed(ports.iter().map(String::as_str))
            ))),
            _ => Ok(Predecessor { source: name.to_owned(), port: port.to_owned() }),
        }
    }

    /// Removes an action and returns how those after it go on: they follow its predecessor, or start.
    ///
    /// # Errors
    /// [`ToolError::Refused`] when there is no such action.
    pub fn remove(&mut self, name: &str) -> Result<String, ToolError> {
        let Some(index) = self.actions.iter().position(|action| action.name == name) else {
            let names = self.actions.iter().map(|known| known.name.as_str());
            return Err(ToolError::Refused(format!(
                "no action {name:?} in the draft; its actions: {}",
                listed(near(names, name))
            )));
        };
        let removed = self.actions.remove(index);
        let mut followers = Vec::new();
        for action in &mut self.actions {
            if action.after.as_ref().is_some_and(|after| after.source == name) {
                action.after.clone_from(&removed.after);
                followers.push(action.name.as_str());
            }
        }
        let mut message = format!("Action {name:?} removed.");
        match (&removed.after, followers.as_slice()) {
            (_, []) => {}
            (Some(before), followers) => {
                message.push_str(&format!(" {} now after {:?}.", are(followers), before.to_string()));
            }
            (None, [one]) => message.push_str(&format!(" {one:?} now starts the workflow.")),
            (None, several) => message.push_str(&format!(
                " {} now without a predecessor, but only one action can start: remove all but one of them and add them \
                 again with `after`.",
                are(several)
            )),
        }
        Ok(message)
    }
}

/// `"A" is` or `"A", "B" are`.
fn are(names: &[&str]) -> String {
    format!("{} {}", listed(names.iter().copied()), if names.len() == 1 { "is" } else { "are" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(name: &str, action_type: &str) -> Action {
        Action {
            name: name.to_owned(),
            action_type: action_type.to_owned(),
            action_config: Map::new(),
            is_active: true,
            after: None,
        }
    }

    fn draft(actions: &[(&str, &str, Option<&str>)]) -> Document {
        let mut draft = Document {
            name: "D".into(),
            entity: "sales.orders".into(),
            trigger_type: "on_create".into(),
            description: None,
            trigger_conditions: None,
            actions: Vec::new(),
        };
        for (name, action_type, after) in actions {
            draft.add(action(name, action_type), *after, &ActionTypes::shipped()).unwrap();
        }
        draft
    }

    type Link = (&'static str, Option<&'static str>);

    fn links(draft: &Document) -> Vec<(&str, Option<String>)> {
        draft
            .actions
            .iter()
            .map(|action| (action.name.as_str(), action.after.as_ref().map(ToString::to_string)))
            .collect()
    }

    #[test]
    fn an_added_action_knows_its_predecessors_port() {
        let mut draft = draft(&[
            ("Check", "evaluate_condition", None),
            ("High", "create_alert", Some("Check:output-false")),
            ("Mail", "send_email", Some("Check")),
        ]);
        let expected =
            [("Check", None), ("High", Some("Check:false".to_owned())), ("Mail", Some("Check:true".to_owned()))];
        assert_eq!(links(&draft), expected);
        let ports = vec!["approved".to_owned(), "rejected".to_owned(), "timed_out".to_owned()];
        let added = draft.add(action("Ask", "seek_approval"), Some("Mail"), &ActionTypes::shipped());
        assert_eq!(added.ok(), Some((3, ports)));
    }

    #[test]
    fn an_action_that_does_not_fit_is_refused_with_the_choices() {
        let rows = [
            ("Check", Some("Check"), "the draft already has an action \"Check\"; choose another name"),
            (
                "B",
                None,
                "action \"B\" needs `after`: the draft already starts with \"Check\", and only one action can start",
            ),
            ("B", Some("Chek"), "`after` refers to \"Chek\", which is not in the draft; its actions: \"Check\""),
            ("B", Some("Check:maybe"), "action \"Check\" has no port \"maybe\"; its ports: \"true\", \"false\""),
        ];
        for (name, after, message) in rows {
            let mut draft = draft(&[("Check", "evaluate_condition", None)]);
            let before = draft.clone();
            let added = draft.add(action(name, "delay"), after, &ActionTypes::shipped());
            assert_eq!(added.map_err(|e| e.to_string()), Err(message.to_owned()));
            assert_eq!(draft, before, "{message}");
        }
        let unknown = draft(&[]).add(action("B", "send_mail"), None, &ActionTypes::shipped()).unwrap_err().to_string();
        assert_eq!(unknown.matches('"').count(), 2 * 18, "the wrong type and all 17: {unknown}");
    }

    #[test]
    fn removing_an_action_reconnects_its_followers() {
        let chain =
            [("A", "create_alert", None), ("B", "create_alert", Some("A:failure")), ("C", "create_alert", Some("B"))];
        let fork = [
            ("A", "evaluate_condition", None),
            ("B", "create_alert", Some("A:true")),
            ("C", "create_alert", Some("A:false")),
        ];
        let rows: [(&[_], &str, &[Link], &str); 4] = [
            (
                &chain,
                "B",
                &[("A", None), ("C", Some("A:failure"))],
                "Action \"B\" removed. \"C\" is now after \"A:failure\".",
            ),
            (&chain, "C", &[("A", None), ("B", Some("A:failure"))], "Action \"C\" removed."),
            (
                &chain,
                "A",
                &[("B", None), ("C", Some("B:success"))],
                "Action \"A\" removed. \"B\" now starts the workflow.",
            ),
            (
                &fork,
                "A",
                &[("B", None), ("C", None)],
                "Action \"A\" removed. \"B\", \"C\" are now without a predecessor, but only one action can start: remove \
                 all but one of them and add them again with `after`.",
            ),
        ];
        for (actions, name, expected, message) in rows {
            let mut draft = draft(actions);
            assert_eq!(draft.remove(name).map_err(|e| e.to_string()), Ok(message.to_owned()));
            let expected: Vec<_> = expected.iter().map(|(name, after)| (*name, after.map(str::to_owned))).collect();
            assert_eq!(links(&draft), expected, "{message}");
        }
        let missing = draft(&chain).remove("D").unwrap_err().to_string();
        assert_eq!(missing, "no action \"D\" in the draft; its actions: \"A\", \"B\", \"C\"");
    }

    #[test]
    fn a_name_that_looks_like_another_actions_port_changes_no_edge() {
        let draft = draft(&[
            ("Check", "evaluate_condition", None),
            ("High", "create_alert", Some("Check:true")),
            ("Check:true", "delay", Some("Check:false")),
            ("Last", "delay", Some("Check:true")),
        ]);
        let links: Vec<_> = draft.workflow().unwrap()["edges"]
            .as_array()
            .unwrap()
            .iter()
            .map(|edge| (edge["source_action_id"].clone(), edge["source_output"].clone()))
            .collect();
        let expected = [
            (json!(null), json!(null)),
            (json!("temp:0"), json!("true")),
            (json!("temp:0"), json!("false")),
            (json!("temp:2"), json!("success")),
        ];
        assert_eq!(links, expected, "what was written later is the whole name, what stood before stays");
    }

    #[test]
    fn two_starts_are_no_workflow() {
        let mut draft = draft(&[
            ("A", "evaluate_condition", None),
            ("B", "delay", Some("A:true")),
            ("C", "delay", Some("A:false")),
        ]);
        draft.remove("A").unwrap();
        let message = "only one start action is allowed: \"B\" and \"C\" both have no `after`";
        assert_eq!(draft.workflow().map_err(|error| error.to_string()), Err(message.to_owned()));
    }

    #[test]
    fn a_document_survives_its_storage_and_becomes_a_workflow() {
        let mut draft = draft(&[("A", "delay", None)]);
        draft.description = Some("why".into());
        draft.trigger_conditions = Some(json!({"field_conditions": []}));
        assert_eq!(Document::from_body(draft.to_body().unwrap()).unwrap(), draft);
        assert_eq!(
            draft.workflow().unwrap(),
            json!({"name": "D", "entity": "sales.orders", "trigger_type": "on_create", "description": "why",
                   "trigger_conditions": {"field_conditions": []},
                   "actions": [{"name": "A", "action_type": "delay", "action_config": {}, "is_active": true}],
                   "is_active": true, "edges": [{"target_action_id": "temp:0", "edge_type": "start", "edge_order": 0}]})
        );
        assert!(Document::from_body(json!({"name": 1})).is_err());
    }
}
