//! A rule made of what somebody wants to save.

use std::collections::HashSet;

use serde_json::Value;
use uuid::Uuid;

use super::input::RuleInput;
use super::rule::{Action, Edge, Rule};
use super::validate::Link;
use crate::demo::backend::records::stamp::Stamp;

/// Who saves, and when.
#[derive(Debug, Clone, Copy)]
pub struct Author<'a> {
    /// Their `sub`.
    pub user: &'a str,
    /// The save's time.
    pub at: Stamp,
}

/// The rule that `input` describes, in place of `old` if there is one. An action keeps the id that it shares with one of
/// `old`'s; the actions of `old` that are not mentioned stay, deactivated. `links` are the edges' ends.
pub fn build(input: RuleInput, links: &[Link], old: Option<&Rule>, author: Author<'_>) -> Rule {
    let old_actions = old.map_or(&[][..], |rule| &rule.actions);
    let known: HashSet<Uuid> = old_actions.iter().map(|action| action.id).collect();
    let rule_id = old.map_or_else(Uuid::new_v4, |rule| rule.id);
    let mut rule = assemble(input, links, rule_id, author, |id| known.contains(&id));
    if let Some(old) = old {
        rule.created = old.created;
        rule.created_by.clone_from(&old.created_by);
    }
    let kept: HashSet<Uuid> = rule.actions.iter().map(|action| action.id).collect();
    let left_out = old_actions.iter().filter(|action| !kept.contains(&action.id));
    rule.actions.extend(left_out.map(|action| Action { is_active: false, ..action.clone() }));
    rule
}

/// A rule with this id, made of `input`. Those ids of actions are kept for which `keep` is true; others are minted.
pub fn assemble(input: RuleInput, links: &[Link], id: Uuid, author: Author<'_>, keep: impl Fn(Uuid) -> bool) -> Rule {
    let actions: Vec<Action> = input
        .actions
        .into_iter()
        .map(|action| {
            let mut config = action.config;
            config.insert("action_type".to_owned(), Value::from(action.action_type.as_str()));
            Action {
                id: action.id.filter(|id| keep(*id)).unwrap_or_else(Uuid::new_v4),
                name: action.name,
                description: action.description,
                action_type: action.action_type,
                config,
                is_active: action.is_active,
            }
        })
        .collect();
    let edges = input.edges.into_iter().zip(links).filter_map(|(edge, link)| {
        Some(Edge {
            id: Uuid::new_v4(),
            source: link.source.and_then(|index| actions.get(index)).map(|action| action.id),
            target: actions.get(link.target)?.id,
            kind: edge.kind,
            output: edge.output,
            order: edge.order,
            created: author.at,
        })
    });
    Rule {
        id,
        name: input.name,
        description: input.description,
        entity_id: input.entity_id,
        trigger_type_id: input.trigger_type_id,
        trigger_conditions: input.trigger_conditions,
        canvas_layout: input.canvas_layout,
        // A rule without actions is a draft and cannot run.
        is_active: input.is_active && !actions.is_empty(),
        is_default: false,
        created_by: author.user.to_owned(),
        updated_by: author.user.to_owned(),
        created: author.at,
        updated: author.at,
        edges: edges.collect(),
        actions,
    }
}
