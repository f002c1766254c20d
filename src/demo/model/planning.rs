//! Scripts that make plans: several things are looked up at once, and put together.

use serde_json::{Value, json};

use super::say;
use super::scene::{Pause, Scene, Script};
use super::words::Clause;

/// The tool that makes plans.
const TOOL: &str = "create_plan";

/// Looks at the rules and at the user's alerts, by a plan; one that is only to be drafted waits for its user.
pub(super) fn look_around(scene: &Scene<'_>, clause: Clause<'_>) -> Script {
    let steps = json!([
        {"step_number": 1, "type": "research", "description": "List the rules", "tools": ["list_workflow_rules"]},
        {"step_number": 2, "type": "research", "description": "List your alerts", "tools": ["list_my_alerts"]},
        {"step_number": 3, "type": "synthesis", "description": "Put both together", "depends_on": [1, 2]},
    ]);
    let mode = if clause.has(&["draft", "first", "later"]) { "draft_only" } else { "auto_execute" };
    let objective = "See which rules there are and which alerts they have raised";
    let plan = json!({"objective": objective, "execution_mode": mode, "plan": {"steps": steps}});
    Ok(told(scene.ask(TOOL, plan)?))
}

/// The tool that makes plans where there are projects.
pub(super) const OF_PROJECTS: &str = "agent_create_plan";

/// Looks at the projects and tasks, and adds a task where that may be done: the one in quotes, or one that is always good.
pub(super) fn week(scene: &Scene<'_>, clause: Clause<'_>) -> Script {
    let mut steps = vec![
        json!({"stepNumber": 1, "type": "research", "description": "List the projects", "tools": ["list_onto_projects"]}),
        json!({"stepNumber": 2, "type": "research", "description": "List the tasks", "tools": ["list_onto_tasks"]}),
    ];
    if scene.tool("create_onto_task").is_some() {
        let title = clause.quoted().unwrap_or("Look through the open tasks");
        steps.push(json!({
            "stepNumber": 3, "type": "action", "description": "Add the task", "tools": ["create_onto_task"],
            "toolArguments": {"title": title}, "dependsOn": [1, 2],
        }));
    }
    let plan = json!({"objective": "See what there is to do, and plan the week", "plan": {"steps": steps}});
    Ok(told(scene.ask(OF_PROJECTS, plan)?))
}

/// Carries out a plan that waits.
pub(super) fn carry_out(scene: &Scene<'_>, clause: Clause<'_>) -> Script {
    let is_id = |word: &&str| word.len() == 36 && word.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    let words = scene.message.text.split_whitespace().map(|word| word.trim_matches(['.', '`', '"']));
    match words.clone().find(is_id) {
        Some(id) if clause.has(&["plan"]) => Ok(told(scene.ask(TOOL, json!({ "plan_id": id }))?)),
        Some(_) | None => Err(Pause::Other),
    }
}

fn told(made: &Value) -> String {
    let lines = say::list_at(made, "/details/steps").iter().filter_map(|step| {
        let (what, status) = (say::text(step, &["description"])?, say::text(step, &["status"])?);
        Some(format!("{}: {status}", say::plain(what)))
    });
    let lines: Vec<String> = lines.collect();
    let count = lines.len();
    let summary = say::text(made, &["summary"]).unwrap_or("The plan was carried out");
    format!("{}\n\n{}", say::sentence(summary), say::bullets(lines, count))
}
