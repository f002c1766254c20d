//! Scripts that build workflows: a whole one from one sentence, and steps added to the one on the screen.

use serde_json::{Value, json};

use super::rules::{self, Line};
use super::say;
use super::scene::{Pause, Scene, Script};
use super::words::{Clause, Comparison, Operator};

/// What the tables of the usual installation are called.
const FAMILIAR: &[(&[&str], &str)] =
    &[(&["stock", "inventory", "quantity"], "inventory.inventory_items"), (&["order", "orders"], "sales.orders")];

/// What sets a workflow off; an update, where the clause names nothing.
const TRIGGERS: &[(&[&str], &str)] = &[
    (&["create", "created", "inserted", "new", "placed"], "on_create"),
    (&["delete", "deleted", "removed"], "on_delete"),
];

/// Kinds of steps: words that mean one, its type, a name for it, and for a workflow that does it.
const KINDS: &[(&[&str], &str, &str, &str)] = &[
    (&["alert", "alerts", "warn"], "create_alert", "Raise Alert", "Alert"),
    (&["email", "emails", "e-mail", "mail"], "send_email", "Send Email", "Email"),
    (&["audit", "log", "logs"], "log_audit_entry", "Log Audit Entry", "Audit"),
];

/// The type of steps that branch.
const CONDITION: &str = "evaluate_condition";

/// The steps that the clause describes (a condition, what is done, or both) in the workflow called `workflow`, the first of
/// them behind `after`.
fn steps(clause: Clause<'_>, workflow: &str, entity: &str, after: Option<String>) -> Script<Vec<Value>> {
    let (mut found, mut next) = (Vec::new(), None);
    if let Some(Comparison { field, operator, value }) = condition(clause) {
        let operator = match operator {
            Operator::Less => "less_than",
            Operator::Greater => "greater_than",
            Operator::Equal => "equals",
        };
        let name = format!("Check {}", say::titled(&field));
        let compared = json!({ "field_name": field, "operator": operator, "value": value });
        let config = json!({ "conditions": [compared], "logic_type": "and" });
        found.push(json!({ "name": name, "action_type": CONDITION, "action_config": config }));
        next = Some(format!("{name}:true"));
    }
    if let Some((_, action_type, name, _)) = KINDS.iter().find(|(words, ..)| clause.has(words)) {
        let config = config(action_type, clause, workflow, entity)?;
        found.push(json!({ "name": name, "action_type": action_type, "action_config": config }));
    }
    // The second one follows the first.
    for (step, after) in found.iter_mut().zip([after, next]) {
        after.into_iter().for_each(|after| step["after"] = Value::from(after));
    }
    match found.is_empty() {
        true => Err(Pause::Say(
            "What should it do? I can add a condition, an alert, an e-mail or an audit entry.".to_owned(),
        )),
        false => Ok(found),
    }
}

/// The configuration of a step of a type, as far as the clause names it.
fn config(action_type: &str, clause: Clause<'_>, workflow: &str, entity: &str) -> Script<Value> {
    let text = clause.quoted();
    let message = text.map_or_else(|| format!("{workflow}: a record of {entity} needs attention."), str::to_owned);
    Ok(match action_type {
        "create_alert" => {
            let severity = ["critical", "high"].into_iter().find(|level| clause.has(&[level])).unwrap_or("medium");
            let title = text.unwrap_or(workflow);
            json!({ "alert_type": "workflow_alert", "severity": severity, "title": title, "message": message })
        }
        "send_email" => {
            let all = clause.0.iter().map(|word| word.text.as_str());
            let is_address = |text: &&str| text.split_once('@').is_some_and(|(_, host)| host.contains('.'));
            let to: Vec<&str> = all.filter(is_address).collect();
            if to.is_empty() {
                let question = "Who should get the e-mail? Say it again with an address, such as `ops@example.com`.";
                return Err(Pause::Say(question.to_owned()));
            }
            json!({ "recipients": to, "subject": workflow, "body": message })
        }
        _ => json!({ "entity_name": entity, "action": "workflow_run", "message": message }),
    })
}

/// The comparison that a workflow checks. Stock is a quantity, low is below 10, and an order over 5000 is about its amount.
fn condition(clause: Clause<'_>) -> Option<Comparison> {
    if clause.has(&["low"]) && clause.has(&["stock", "quantity", "inventory"]) {
        return Some(Comparison { field: "quantity".to_owned(), operator: Operator::Less, value: Value::from(10) });
    }
    let found = Comparison::find(clause).filter(|found| found.value.is_number() || clause.has(&["condition", "if"]))?;
    let field = match found.field.as_str() {
        "stock" | "inventory" => "quantity".to_owned(),
        "order" | "orders" => "amount".to_owned(),
        _ => found.field,
    };
    Some(Comparison { field, ..found })
}

/// A whole workflow from one sentence.
pub(super) fn one_sentence(scene: &Scene<'_>, clause: Clause<'_>) -> Script {
    let familiar = || FAMILIAR.iter().find(|(words, _)| clause.has(words)).map(|(_, table)| *table);
    let question = "Which entity should it watch? Say it again with a table, for example `sales.orders`.";
    let entity = clause.table().or_else(familiar).ok_or_else(|| Pause::Say(question.to_owned()))?;
    // A clause names what is created first, and what sets it off behind that.
    let rest = clause.behind(&["workflow", "rule", "automation"]).unwrap_or(clause);
    let trigger = TRIGGERS.iter().find(|(words, _)| rest.has(words)).map_or("on_update", |(_, trigger)| trigger);
    let condition = condition(clause);
    let does = KINDS.iter().find(|(words, ..)| clause.has(words)).map_or("Check", |(_, _, _, does)| does);
    let name = match &condition {
        Some(Comparison { field, operator: Operator::Less, .. }) if field == "quantity" => format!("Low Stock {does}"),
        Some(Comparison { field, .. }) => format!("{} {does}", say::titled(field)),
        None => format!("{does} for {}", say::titled(entity.rsplit('.').next().unwrap_or(entity))),
    };
    let name = clause.behind(&["called", "named"]).and_then(Clause::name).unwrap_or(name);
    let actions = steps(clause, &name, entity, None)?;
    let names: Vec<String> = actions.iter().filter_map(|step| say::text(step, &["name"])).map(say::bold).collect();
    let workflow = json!({ "name": name, "entity": entity, "trigger_type": trigger, "actions": actions });
    let runs = rules::runs(trigger, entity);
    let description = format!("{name} runs {runs}.");
    let sent = scene.ask("preview_workflow", json!({ "workflow": workflow, "description": description }))?;
    let only = condition.map(|condition| format!(" It goes on only where {}.", condition.text())).unwrap_or_default();
    let steps = format!("{}: {}", say::count(names.len(), "step"), say::joined(&names));
    previewed(sent, &say::bold(&name), &format!(" It runs {runs} and has {steps}.{only}"))
}

/// What to say of a preview of `what` that was sent, or was refused.
pub(super) fn previewed(sent: &Value, what: &str, more: &str) -> Script {
    if sent.get("valid") == Some(&Value::Bool(false)) {
        let problems = say::bullets(say::list_at(sent, "/errors").iter().map(say::brief), 0);
        return Ok(format!("The validation refused this, so I sent no preview:\n\n{problems}"));
    }
    Ok(format!(
        "I've sent a preview of {what}; nothing is saved yet.{more}\n\nAccept it to save it, or tell me what should be \
         different."
    ))
}

/// Previews the workflow on the screen with the steps of the clause in it.
pub(super) fn add(scene: &Scene<'_>, clause: Clause<'_>) -> Script {
    let no_rule = || Pause::Say("No workflow is open on your screen that I could add a step to.".to_owned());
    let open = scene.screen_text("workflow_id").ok_or_else(no_rule)?;
    let found = scene.ask("get_workflow_rule", json!({ "workflow_id": open }))?;
    let (rule, summary) = (found.get("rule").unwrap_or(found), found.get("summary").unwrap_or(&Value::Null));
    let (name, entity) = (say::text(rule, &["name"]).unwrap_or_default(), rules::entity(rule));
    let lines = rules::outline(rule, summary);
    let meets_again = "The steps of this workflow meet again behind a branch; adding to that needs a real model.";
    let mut actions = placed(&lines, summary).ok_or_else(|| Pause::Say(meets_again.to_owned()))?;
    let last = lines.last().and_then(|line| say::text(line.action, &["name"])).map(str::to_owned);
    let added = steps(clause, name, &entity, clause.behind(&["after"]).and_then(Clause::name).or(last))?;
    let names: Vec<String> = added.iter().filter_map(|step| say::text(step, &["name"])).map(say::bold).collect();
    actions.extend(added);
    let trigger = say::text(rule, &["trigger_type_name", "trigger_type"]);
    let workflow = json!({
        "name": name, "entity": entity, "trigger_type": trigger, "is_active": rule.get("is_active"), "actions": actions,
    });
    let description = format!("{name} with {} added", say::count(names.len(), "step"));
    let input = json!({ "workflow_id": open, "workflow": workflow, "description": description });
    let sent = scene.ask("preview_workflow", input)?;
    previewed(sent, &format!("{} with {} added", say::bold(name), say::joined(&names)), "")
}

/// The steps that are there, each with what it follows; `None` where the outline does not tell that of all of them.
fn placed(lines: &[Line<'_>], summary: &Value) -> Option<Vec<Value>> {
    let mut actions: Vec<Value> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let before = lines.get(..at)?;
        let mut action = line.action.clone();
        if let Some(last) = before.last() {
            // Deeper, or as deep and no other branch of one above: it follows the step before.
            let is_branch = !matches!(line.port, None | Some("success"))
                && say::text(last.action, &["action_type"]) != Some(CONDITION);
            let is_next = last.depth < line.depth || (last.depth == line.depth && !is_branch);
            let above = || before.iter().rev().find(|other| other.depth + 1 == line.depth);
            let source = say::text(if is_next { last } else { above()? }.action, &["name"])?;
            action["after"] = line.port.map_or_else(|| source.into(), |port| format!("{source}:{port}").into());
        }
        actions.push(action);
    }
    // An edge for each step, the one that leads to the first included: no branches that meet again, and no step left out.
    let count = |key: &str| summary.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    (count("edge_count") == Some(actions.len()) && count("node_count") == Some(actions.len())).then_some(actions)
}
