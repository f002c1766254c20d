//! Scripts that build a draft: start it, add and remove steps, preview it. The draft's id comes from earlier results.

use serde_json::{Value, json};

use super::entities::Subject;
use super::errors;
use super::history::{Draft, DraftAction};
use super::one_shot::{free_name, trigger_words};
use super::scene::{Pause, Scene, Script};
use super::steps::{Kind, Step};
use super::{questions, words};

/// One thing to do with a draft.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum DraftStep {
    /// Begin a new one.
    Start {
        /// The workflow's name, where the user gave one.
        name: Option<String>,
        /// What it watches.
        subject: Subject,
        /// What sets it off.
        trigger: &'static str,
    },
    /// Add a step.
    Add(Step),
    /// Add a step of a type that could not be made out.
    AddUnknown,
    /// Remove the step of this name.
    Remove(String),
    /// Show it to the user.
    Preview,
}

impl DraftStep {
    /// What the step it adds does, where it adds one.
    pub(super) fn into_kind(self) -> Option<Kind> {
        match self {
            Self::Add(step) => Some(step.kind),
            Self::Start { .. } | Self::AddUnknown | Self::Remove(_) | Self::Preview => None,
        }
    }
}

/// How many steps of one message are carried out: each takes a turn, and a run has a bounded number of turns.
const MAX_STEPS: usize = 12;

/// Carries out `steps`, in order, up to the first that fails; none at all only tells what the draft has.
pub(super) fn build(scene: &Scene<'_>, steps: &[DraftStep]) -> Script {
    let mut draft = scene.draft.clone();
    if steps.is_empty() {
        return open(&mut draft).map(|draft| next_words(Some(draft)));
    }
    let mut said: Vec<String> = Vec::new();
    for step in steps.iter().take(MAX_STEPS) {
        match carry_out(scene, &mut draft, step) {
            Ok(text) => said.push(text),
            Err(Pause::Call(call)) => return Err(Pause::Call(call)),
            Err(other) => {
                said.push(errors::words(&other));
                return Ok(said.join("\n\n"));
            }
        }
    }
    if steps.len() > MAX_STEPS {
        said.push(format!("I did the first {MAX_STEPS} steps; please send the rest in another message."));
    }
    match steps.last() {
        Some(DraftStep::Add(_) | DraftStep::Remove(_)) => said.push(next_words(draft.as_ref())),
        Some(DraftStep::Start { .. } | DraftStep::AddUnknown | DraftStep::Preview) | None => {}
    }
    Ok(said.join("\n\n"))
}

fn carry_out(scene: &Scene<'_>, draft: &mut Option<Draft>, step: &DraftStep) -> Script {
    match step {
        DraftStep::Start { name, subject, trigger } => {
            let entity = subject.table(scene)?;
            let name = name.clone().unwrap_or_else(|| {
                let table = entity.rsplit_once('.').map_or(entity.as_str(), |(_, table)| table);
                format!("{} Workflow", words::titled(table))
            });
            let input = json!({ "name": name, "entity": entity, "trigger_type": trigger });
            let result = scene.ask("start_draft", input)?;
            let Some(id) = words::str_at(result, &["draft_id"]) else {
                return Err(Pause::Say(
                    "The draft was started, but its id is missing from the answer, so I cannot go on with it."
                        .to_owned(),
                ));
            };
            let text = format!(
                "I've started a draft of {}. It will run {}. What should happen first? For example: \
                 *add a condition step if quantity < 10*, or *add a high severity alert*.",
                words::bold(&name),
                trigger_words(trigger, &entity),
            );
            *draft = Some(Draft { id: id.to_owned(), name: Some(name), entity: Some(entity), actions: Vec::new() });
            Ok(text)
        }
        DraftStep::Add(step) => add(scene, open(draft)?, step),
        DraftStep::AddUnknown => Err(Pause::Say(format!(
            "{} I can add an alert, an e-mail, a notification, a condition, a delay, a field update, an approval, an \
             inventory check or an audit entry.",
            questions::STEP
        ))),
        DraftStep::Remove(name) => {
            let draft = open(draft)?;
            // The user may write the name in another case.
            let exact = draft.actions.iter().find(|action| words::same_name(&action.name, name));
            let name = exact.map_or(name, |action| &action.name).clone();
            scene.ask("remove_draft_action", json!({ "draft_id": draft.id, "action_name": name }))?;
            draft.actions.retain(|action| action.name != name);
            Ok(format!("I removed the step {}. Steps that followed it no longer follow anything.", words::bold(&name)))
        }
        DraftStep::Preview => {
            let draft = open(draft)?;
            let name = draft.name.clone().unwrap_or_else(|| "the workflow".to_owned());
            let steps: Vec<String> = draft.actions.iter().map(|action| action.name.clone()).collect();
            let description = match steps.as_slice() {
                [] => format!("Create {name}"),
                steps => format!("Create {name} with {}: {}", words::count(steps.len(), "step"), steps.join(", ")),
            };
            let result = scene.ask("preview_draft", json!({ "draft_id": draft.id, "description": description }))?;
            if let Some(text) = errors::refused_preview(result) {
                return Err(Pause::Say(text));
            }
            Ok(format!(
                "I've sent a preview of {} for your review; nothing is saved yet. Accept it to save it, or tell me what to change.",
                words::bold(&name)
            ))
        }
    }
}

fn open(draft: &mut Option<Draft>) -> Script<&mut Draft> {
    draft.as_mut().ok_or_else(|| {
        Pause::Say(
            "There is no open draft in this conversation. Start one first, for example: \
             *create a workflow called Low Stock for inventory.inventory_items on update*. \
             (To a workflow that is open on your screen I can add steps; other changes of it need a real model.)"
                .to_owned(),
        )
    })
}

fn add(scene: &Scene<'_>, draft: &mut Draft, step: &Step) -> Script {
    let workflow = draft.name.as_deref().unwrap_or("Workflow");
    let config = step.kind.config(workflow, draft.entity.as_deref()).map_err(Pause::Say)?;
    let name = free_name(step, draft.actions.iter().map(|action| action.name.as_str()));
    let after = predecessor(draft, step);
    let mut input = json!({
        "draft_id": draft.id,
        "name": name,
        "action_type": step.kind.action_type(),
        "action_config": config,
    });
    if let (Some(after), Some(fields)) = (&after, input.as_object_mut()) {
        fields.insert("after".to_owned(), Value::String(after.clone()));
    }
    let result = scene.ask("add_draft_action", input)?;
    let mut text = format!("I added the step {}", words::bold(&name));
    match after.as_deref().map(|after| after.split_once(':').unwrap_or((after, ""))) {
        None => text.push_str(" as the first step."),
        Some((before, "")) => text.push_str(&format!(" after {}.", words::bold(before))),
        Some((before, port)) => {
            text.push_str(&format!(" on the {} branch of {}.", words::code(port), words::bold(before)))
        }
    }
    if let Kind::Alert { .. } = step.kind {
        text.push_str(" The alert names no recipients yet.");
    }
    let ports: Vec<String> =
        words::items(result, &["output_ports"]).iter().filter_map(Value::as_str).map(words::code).collect();
    if ports.len() > 1 && matches!(step.kind, Kind::Condition(_) | Kind::CheckInventory { .. } | Kind::Approval { .. })
    {
        text.push_str(&format!(" The next steps can follow its branches {}.", words::joined(&ports)));
    }
    draft.actions.push(DraftAction { name, action_type: step.kind.action_type().to_owned() });
    Ok(text)
}

/// What `step` follows, in the `after` shorthand: what the user named, else the newest step; for a branch the newest condition.
fn predecessor(draft: &Draft, step: &Step) -> Option<String> {
    let named = step.after.as_ref().map(|after| {
        let exact = draft.actions.iter().find(|action| words::same_name(&action.name, after));
        exact.map_or(after, |action| &action.name).clone()
    });
    let is_branch = matches!(step.port, Some("true" | "false"));
    let newest_condition = || draft.actions.iter().rev().find(|action| action.action_type == "evaluate_condition");
    let newest = || if is_branch { newest_condition() } else { draft.actions.last() };
    let before = named.or_else(|| newest().map(|action| action.name.clone()))?;
    Some(match step.port {
        Some(port) => format!("{before}:{port}"),
        None => before,
    })
}

fn next_words(draft: Option<&Draft>) -> String {
    let names: Vec<String> =
        draft.iter().flat_map(|draft| &draft.actions).map(|action| words::bold(&action.name)).collect();
    match names.as_slice() {
        [] => "The draft has no steps now.".to_owned(),
        names => format!(
            "The draft has {} so far: {}. {}",
            words::count(names.len(), "step"),
            words::joined(names),
            questions::PREVIEW
        ),
    }
}
