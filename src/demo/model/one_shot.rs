//! A whole workflow from one sentence: look at the action types, then send a complete preview (protocol, section 2, third example).

use serde_json::{Value, json};

use super::comparison::Comparison;
use super::entities::Subject;
use super::errors;
use super::scene::{Pause, Scene, Script};
use super::steps::{Kind, Step};
use super::words;

/// A workflow as one sentence describes it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NewWorkflow {
    /// Its name, where the user gave one.
    pub name: Option<String>,
    /// What it watches.
    pub subject: Subject,
    /// What sets it off.
    pub trigger: &'static str,
    /// What it checks first.
    pub condition: Option<Comparison>,
    /// What it then does; an alert when the user did not say.
    pub kind: Option<Kind>,
}

/// Previews `wish`.
pub(super) fn preview(scene: &Scene<'_>, wish: &NewWorkflow) -> Script {
    let entity = wish.subject.table(scene)?;
    let workflow = describe(wish, &entity).map_err(Pause::Say)?;
    let catalogue = scene.ask("discover_action_types", json!({}))?;
    if let Some(missing) = missing_type(catalogue, &workflow) {
        let text =
            format!("This server has no action type {}, so I cannot build that workflow here.", words::code(missing));
        return Err(Pause::Say(text));
    }
    let name = words::str_at(&workflow, &["name"]).unwrap_or("the workflow").to_owned();
    let steps: Vec<String> = words::items(&workflow, &["actions"])
        .iter()
        .filter_map(|action| words::str_at(action, &["name"]))
        .map(words::bold)
        .collect();
    let trigger = trigger_words(wish.trigger, &entity);
    let description = match &wish.condition {
        Some(condition) => format!("{name}: {trigger}, check whether {}.", condition.words()),
        None => format!("{name}: {trigger}."),
    };
    let result = scene.ask("preview_workflow", json!({ "workflow": workflow, "description": description }))?;
    if let Some(text) = errors::refused_preview(result) {
        return Err(Pause::Say(text));
    }
    let mut text = format!(
        "I've sent a preview of {} for your review; nothing is saved yet. It runs {trigger} and has {}: {}.",
        words::bold(&name),
        words::count(steps.len(), "step"),
        words::joined(&steps),
    );
    if let Some(condition) = &wish.condition {
        text.push_str(&format!(
            " It goes on only where {}; all other changes are written to the audit log.",
            condition.words()
        ));
    }
    text.push_str("\n\nAccept the preview to save it, or tell me what should be different.");
    Ok(text)
}

/// The workflow as the preview tool takes it, its steps chained by `after`.
fn describe(wish: &NewWorkflow, entity: &str) -> Result<Value, String> {
    let kind = wish.kind.clone().unwrap_or(Kind::Alert { severity: "high", title: None });
    let name = wish.name.clone().unwrap_or_else(|| usual_name(wish, entity));
    let mut actions = Vec::new();
    match &wish.condition {
        Some(condition) => {
            let check = Kind::Condition(Some(condition.clone()));
            let check_name = check.usual_name();
            let audit = Kind::Audit { message: Some(format!("{name}: nothing to do")) };
            actions.push(action(&check, &name, entity, None)?);
            actions.push(action(&kind, &name, entity, Some(format!("{check_name}:true")))?);
            actions.push(action(&audit, &name, entity, Some(format!("{check_name}:false")))?);
        }
        None => actions.push(action(&kind, &name, entity, None)?),
    }
    Ok(json!({
        "name": name,
        "is_active": true,
        "entity": entity,
        "trigger_type": wish.trigger,
        "actions": actions,
    }))
}

fn action(kind: &Kind, workflow: &str, entity: &str, after: Option<String>) -> Result<Value, String> {
    let mut action = json!({
        "name": kind.usual_name(),
        "action_type": kind.action_type(),
        "action_config": kind.config(workflow, Some(entity))?,
        "is_active": true,
    });
    if let (Some(after), Some(fields)) = (after, action.as_object_mut()) {
        fields.insert("after".to_owned(), Value::String(after));
    }
    Ok(action)
}

fn usual_name(wish: &NewWorkflow, entity: &str) -> String {
    let does = match &wish.kind {
        None | Some(Kind::Alert { .. }) => "Alert".to_owned(),
        Some(Kind::Email { .. }) => "Email".to_owned(),
        Some(Kind::Notification { .. }) => "Notification".to_owned(),
        Some(kind) => kind.usual_name(),
    };
    let is_low_stock =
        wish.condition.as_ref().is_some_and(|c| c.field == "quantity" && c.operator.words() == "is less than");
    match (is_low_stock, &wish.condition) {
        (true, _) => format!("Low Stock {does}"),
        (false, Some(condition)) => format!("{} {does}", words::titled(&condition.field)),
        (false, None) => {
            let table = entity.rsplit_once('.').map_or(entity, |(_, table)| table);
            format!("{does} for {}", words::titled(table))
        }
    }
}

/// The first type of `workflow` that a readable catalogue lacks.
fn missing_type<'w>(catalogue: &Value, workflow: &'w Value) -> Option<&'w str> {
    let known: Vec<&str> =
        words::items(catalogue, &["action_types"]).iter().filter_map(|entry| words::str_at(entry, &["type"])).collect();
    let mut used =
        words::items(workflow, &["actions"]).iter().filter_map(|action| words::str_at(action, &["action_type"]));
    used.find(|used| !known.is_empty() && !known.contains(used))
}

/// When a workflow runs, as the end of a sentence: `when a record of … is updated`.
pub(super) fn trigger_words(trigger: &str, entity: &str) -> String {
    let entity = words::code(entity);
    match trigger {
        "on_create" => format!("when a record of {entity} is created"),
        "on_update" => format!("when a record of {entity} is updated"),
        "on_delete" => format!("when a record of {entity} is deleted"),
        "scheduled" => format!("on a schedule, over {entity}"),
        "" => format!("on changes of {entity}"),
        other => format!("on {} of {entity}", words::code(other)),
    }
}

/// A name for `step` that no action in `taken` has.
pub(super) fn free_name<'t>(step: &Step, taken: impl Iterator<Item = &'t str> + Clone) -> String {
    let wanted = step.name.clone().unwrap_or_else(|| step.kind.usual_name());
    let is_free = |name: &str| step.name.is_some() || !taken.clone().any(|other| other == name);
    let numbered = (2..100).map(|n| format!("{wanted} {n}"));
    std::iter::once(wanted.clone()).chain(numbered).find(|name| is_free(name)).unwrap_or(wanted)
}
