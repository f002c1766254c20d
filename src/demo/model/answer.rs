//! One turn, decided: the request in, words and calls out. Every intent of the message runs as a script; independent ones
//! get their calls in the same turn.

use super::addition;
use super::desk;
use super::drafts::{self, DraftStep};
use super::errors;
use super::intents::{self, Intent, Surroundings};
use super::one_shot;
use super::questions;
use super::scene::{Answer, Pause, Planned, Scene, Script};
use super::steps::Step;
use super::tables;
use super::words;
use super::workflow;
use crate::agent::ports::llm::ChatRequest;
use crate::chat::preview::{Decided, Verdict};

/// How many calls a run makes before it stops asking: more than any script needs.
const MAX_CALLS: usize = 40;
/// How many earlier messages an answer to a question may complete.
const MAX_QUESTIONS: usize = 3;

/// The next turn of the conversation in `request`.
pub(super) fn answer(request: &ChatRequest<'_>) -> Answer {
    if !has_script(request) {
        return desk::answer(request);
    }
    let Some(scene) = Scene::read(request) else {
        return Answer { text: help(false), calls: Vec::new() };
    };
    let news = match scene.calls_made() {
        0 => acknowledgement(scene.decisions),
        _ => None,
    };
    let wanted = wanted(&scene);
    let mut said: Vec<String> = Vec::new();
    let mut calls: Vec<Planned> = Vec::new();
    for intent in &wanted {
        match run(&scene, intent) {
            Ok(text) => said.push(text),
            Err(Pause::Call(call)) if scene.calls_made() >= MAX_CALLS => {
                said.push(format!("I stop here before calling {}: this took too many steps.", words::code(&call.tool)));
            }
            Err(Pause::Call(call)) => {
                if !calls.contains(&call) {
                    calls.push(call);
                }
            }
            Err(other) => said.push(errors::words(&other)),
        }
    }
    if !calls.is_empty() {
        // What other scripts have to say waits for the last turn: they run again then.
        let lead = if scene.calls_made() == 0 || is_preview(&calls) { lead_in(&calls) } else { String::new() };
        let text: Vec<String> = news.into_iter().chain((!lead.is_empty()).then_some(lead)).collect();
        return Answer { text: text.join("\n\n"), calls };
    }
    // A word or two after a decision only wait to hear of it; more than that wanted something.
    if said.is_empty() && (news.is_none() || scene.text.split_whitespace().count() > 3) {
        said.push(small_talk(&scene));
    }
    let text: Vec<String> = news.into_iter().chain(said).collect();
    Answer { text: text.join("\n\n"), calls: Vec::new() }
}

/// Whether this is a screen of the workflows or of the tables; one without any tools counts as such.
fn has_script(request: &ChatRequest<'_>) -> bool {
    let is_known = |name: &str| name.contains("workflow") || name.contains("table_config") || name.contains("alert");
    request.tools.is_empty() || request.tools.iter().any(|tool| is_known(&tool.name))
}

fn run(scene: &Scene<'_>, intent: &Intent) -> Script {
    match intent {
        Intent::ExplainRule(name) => workflow::explain_rule(scene, name.as_deref()),
        Intent::ExplainStep(name) => workflow::explain_step(scene, name),
        Intent::Rules => workflow::rules(scene),
        Intent::Alerts(filter) => workflow::alerts(scene, filter),
        Intent::AlertsOfRule { rule, filter } => workflow::alerts_of_rule(scene, rule.as_deref(), filter),
        Intent::Alert(id) => workflow::alert(scene, id),
        Intent::Catalogue(which) => workflow::catalogue(scene, *which),
        Intent::Draft(steps) => match (additions(steps), scene.screen_str("workflow_id")) {
            (Some(added), Some(open)) if scene.draft.is_none() => addition::preview(scene, open, &added),
            _ => drafts::build(scene, steps),
        },
        Intent::New(wish) => one_shot::preview(scene, wish),
        Intent::ChangeRule => {
            Ok("I can explain the workflows there are, add steps to them and build new ones, but other changes need a \
                                  real model. Ask me for *help* to see what I understand."
                .to_owned())
        }
        Intent::Table(wish) => tables::run(scene, wish),
    }
}

/// The steps that are added, where nothing else is to be done.
fn additions(steps: &[DraftStep]) -> Option<Vec<&Step>> {
    let added = steps.iter().map(|step| match step {
        DraftStep::Add(step) => Some(step),
        DraftStep::Start { .. } | DraftStep::AddUnknown | DraftStep::Remove(_) | DraftStep::Preview => None,
    });
    added.collect::<Option<Vec<_>>>().filter(|added| !added.is_empty())
}

/// What the user wants. A message that says nothing by itself may answer the question before it: then both are read together.
fn wanted(scene: &Scene<'_>) -> Vec<Intent> {
    let around = Surroundings {
        is_tables: scene.is_tables(),
        has_draft: scene.draft.is_some(),
        step_names: workflow::screen_steps(scene),
    };
    let found = intents::read(scene.text, &around);
    let question = scene.answers_before.first().map_or("", String::as_str);
    if !found.is_empty() {
        return found;
    }
    if question.contains(questions::PREVIEW) && questions::is_yes(scene.text) {
        return vec![Intent::Draft(vec![DraftStep::Preview])];
    }
    let mut text = scene.text.to_owned();
    for (said, answer) in scene.said_before.iter().zip(&scene.answers_before).take(MAX_QUESTIONS) {
        if !questions::waits_for_more(answer) {
            break;
        }
        text = format!("{}, {text}", said.trim_end_matches(['.', '!', '?', ',', ' ', '\n']));
        let mut found = intents::read(&text, &around);
        if let [Intent::Draft(steps)] = found.as_mut_slice() {
            let done = questions::steps_done(answer).min(steps.len());
            steps.drain(..done);
        }
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

fn is_preview(calls: &[Planned]) -> bool {
    calls.iter().any(|call| call.tool.starts_with("preview_"))
}

/// What is said before `calls`.
fn lead_in(calls: &[Planned]) -> String {
    let text = match calls {
        [call] => match &*call.tool {
            "get_workflow_rule" => "Let me look up that workflow.",
            "explain_workflow_node" => "Let me look at that step.",
            "list_workflow_rules" => "Let me list the workflows.",
            "list_my_alerts" | "list_alerts_for_rule" | "get_alert_detail" => "Let me check the alerts.",
            "discover_action_types" | "discover_trigger_types" | "discover_entities" => "Let me see what is available.",
            "start_draft" | "add_draft_action" | "remove_draft_action" => "I'll work on the draft.",
            "preview_workflow" => "I'll build that workflow and send you a preview.",
            "preview_draft" | "preview_table_config" => "I'll prepare a preview.",
            "get_table_config" => "Let me look at the table configuration.",
            "apply_column_change" | "apply_filter_change" | "apply_join_change" | "apply_sort_change" => {
                "Let me make that change."
            }
            "list_table_configs" => "Let me look at the table configurations.",
            _ => "Let me look that up.",
        },
        _ => "Let me look these up.",
    };
    format!("{text}\n\n")
}

/// What to say of the user's decisions; `None` when there are none.
fn acknowledgement(decisions: &[Decided]) -> Option<String> {
    let lines: Vec<String> = decisions.iter().map(decision_words).collect();
    (!lines.is_empty()).then(|| lines.join("\n\n"))
}

fn decision_words(decided: &Decided) -> String {
    let what = &decided.what;
    let name = words::bold(&decided.name);
    match (decided.verdict, &decided.saved_id) {
        (Verdict::Accept, Some(id)) => {
            format!("You accepted the preview: the {what} {name} is saved (id {}).", words::code(id))
        }
        (Verdict::Accept, None) => format!("You accepted the preview: the {what} {name} is saved."),
        (Verdict::Reject, _) => {
            let why = decided.comment.as_deref().map(words::plain).filter(|why| !why.is_empty());
            let comment = why.map(|why| format!(" You said: \"{why}\".")).unwrap_or_default();
            format!(
                "You rejected the preview of the {what} {name}, so nothing was saved.{comment} Tell me what should be different."
            )
        }
    }
}

fn small_talk(scene: &Scene<'_>) -> String {
    let first =
        scene.text.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).unwrap_or("").to_lowercase();
    let is_short = scene.text.chars().count() <= 40;
    match first.as_str() {
        "thanks" | "thank" | "thx" if is_short => "You're welcome.".to_owned(),
        "bye" | "goodbye" if is_short => "Goodbye!".to_owned(),
        "no" | "nope" if is_short => {
            "All right. Tell me what to change, or what else you would like to see.".to_owned()
        }
        _ => help(scene.is_tables()),
    }
}

/// Who answers, what it understands, and how to connect a real model.
fn help(is_tables: bool) -> String {
    let examples: &[&str] = if is_tables {
        &[
            "*show my tables*, *show the inventory table*, *show this table*",
            "*hide column reserved_quantity*, *add column minimum_stock*, *change the header of quantity to On Hand*",
            "*sort by quantity descending*, *filter quantity < 20*, *join the inventory_locations table with aisle*",
            "*what column types are there?*, *what columns does inventory.inventory_items have?*",
        ]
    } else {
        &[
            "*what does this workflow do?*, *explain the step Check Stock Level*",
            "*list the rules and my alerts*, *alerts for this rule*",
            "*what actions are there?*, *which triggers?*, *list the entities*",
            "*create a workflow that alerts when stock is low*",
            "*create a workflow called Low Stock for inventory.inventory_items on update*, then *add a condition step if \
             quantity < 10*, *add a high severity alert*, *preview it*",
        ]
    };
    let list = words::bullets(examples.iter().map(|example| (*example).to_owned()), None);
    format!(
        "I am the built-in demo model: I follow simple rules and understand plain requests such as\n\n{list}\n\n\
         For everything else connect a real model: set `SWITCHBOARD__LLM__PROVIDER` to `gemini`, `claude`, `openai` or `ollama` \
         and give its key (`GEMINI_API_KEY`, `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`; Ollama needs none), then restart the server."
    )
}
