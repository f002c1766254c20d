//! The steps of plans: how they are read, what one with several tools does, and how many go at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::plans::{PLAN, go, of_kind, result};
use super::{Set, frame, project, text, types};
use crate::support::model::{Script, calls, says};
use crate::support::upstream::{Answer, End, Request, Upstream};

/// A turn in which the model plans these steps, in the project p1: the frames, and the plan as it was kept.
async fn carried_out(set: &Set) -> (Vec<Value>, Value) {
    let frames = set.turn(&json!({"message": "Go", "context_type": "project", "entity_id": "p1"})).await;
    let id = frame(&frames, "plan_created")["plan"]["id"].as_str().unwrap();
    let (_, plan) = set.ask(Method::GET, &format!("/v1/agent/plans/{id}"), None).await;
    (frames, plan)
}

fn plans(steps: &Value) -> [Script; 2] {
    [calls("c1", "agent_create_plan", &json!({"objective": "All of it", "plan": {"steps": steps}})), says("So.")]
}

#[tokio::test]
async fn several_tools_of_a_step_have_their_own_arguments_and_one_failure_fails_it() {
    let steps = json!([
        {"stepNumber": 1, "type": "research", "description": "Look at both",
         "tools": ["list_onto_tasks", "get_onto_task_details"],
         "metadata": {"toolArguments": {"list_onto_tasks": {"limit": 5}, "get_onto_task_details": {"task_id": "t1"}}}},
        {"stepNumber": 2, "type": "action", "description": "Water the roses",
         "tools": ["create_onto_task", "get_onto_task_details"], "arguments": {"task_id": "none"}},
    ]);
    let set = Set::playing(plans(&steps)).await;
    let (frames, plan) = carried_out(&set).await;
    let results = plan["steps"][0]["result"].as_array().unwrap();
    assert_eq!(results.len(), 2, "a list of what both said: {plan:#}");
    assert_eq!(results[0]["tasks"][0]["title"], "Dig");
    assert!(
        set.lines().iter().any(|line| line.contains("onto_tasks") && line.ends_with("limit=5")),
        "{:?}",
        set.lines()
    );
    assert_eq!(plan["steps"][1]["status"], "failed");
    let made = set.backend.requests().into_iter().find(|request| request.method == "POST").unwrap();
    let named = json!([made.json()["title"], made.json()["project_id"]]);
    assert_eq!(named, json!(["Water the roses", "p1"]), "what is missing is taken from the step");
    assert_eq!(plan["status"], "completed_with_errors");
    let order = types(&frames);
    assert_eq!(order[order.len() - 3..], ["agent_state", "last_turn_context", "done"]);
}

#[tokio::test]
async fn steps_are_read_however_the_helper_writes_them() {
    let rows = [
        (
            r#"Here it is: {"steps": [{"description": "Look", "tools": ["LIST_onto_TASKS"]}, {"tools": [], "dependsOn": [1]}]} Good?"#,
            "words around, no numbers",
        ),
        (
            "```json\n[{\"stepNumber\": 1, \"tools\": [\"list_onto_tasks\"]}, {\"stepNumber\": 2, \"dependsOn\": [1]}]\n```",
            "a list in a fence",
        ),
        (
            r#"{"plan": 1, "steps": [{"step": 1, "tools": "list_onto_tasks"}, {"type": "Synthesis", "depends_on": [1]}]}"#,
            "other keys",
        ),
    ];
    for (answer, reason) in rows {
        let turns = Mutex::new(vec![
            says("So."),
            calls("c1", "agent_create_plan", &json!({"objective": "Look", "requested_outputs": ["a list"]})),
        ]);
        let model = Upstream::choosing(move |request| match request.json()["model"] == "planner" {
            true => Some(says(answer).answer()),
            false => turns.lock().unwrap().pop().map(Script::answer),
        });
        let helper = [("HELPERS__PLAN", "openai:planner")];
        let set = Set::over(model.await, Upstream::choosing(project).await, &helper).await;
        let (frames, plan) = carried_out(&set).await;
        let steps = &plan["steps"];
        let read = json!([steps[0]["number"], steps[0]["tools"], steps[1]["number"]]);
        assert_eq!(read, json!([1, ["list_onto_tasks"], 2]), "{reason}: {plan:#}");
        assert_eq!(plan["status"], "completed", "{reason}");
        let asked = set.s.model.requests().iter().map(|request| request.json()).find(|body| body["model"] == "planner");
        let words = asked.unwrap()["messages"][1]["content"].as_str().unwrap().to_owned();
        assert!(words.contains("a list") && words.contains("create_onto_document"), "{reason}: {words}");
        assert_eq!(text(&frames), "So.", "{reason}");
    }
}

#[tokio::test]
async fn no_more_steps_run_at_once_than_the_settings_allow() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (begun, seen) = (now.clone(), most.clone());
    let backend = Upstream::choosing(move |request| {
        if request.path.starts_with("/rest/v1/onto_tasks") {
            let at_once = begun.fetch_add(1, Ordering::SeqCst) + 1;
            seen.fetch_max(at_once, Ordering::SeqCst);
            let ends = begun.clone();
            // The request counts until its answer is on the way.
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(80)).await;
                ends.fetch_sub(1, Ordering::SeqCst);
            });
            return Some(Answer::ok("application/json", "").later(Duration::from_millis(120), "[]"));
        }
        project(request)
    });
    let steps: Vec<Value> = (0..6).map(|_| json!({"type": "action", "tools": ["list_onto_tasks"]})).collect();
    let model = Upstream::script(plans(&json!(steps)).map(Script::answer)).await;
    let set = Set::over(model, backend.await, &[("PLANS__PARALLEL", "2")]).await;
    let (_, plan) = carried_out(&set).await;
    assert_eq!(plan["status"], "completed", "{plan:#}");
    assert_eq!(
        set.lines().iter().filter(|line| line.contains("onto_tasks")).count(),
        6,
        "the next one waits for a place"
    );
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_mode_that_is_none_carries_nothing_out() {
    let steps = json!([{"tools": ["create_onto_task"], "arguments": {"title": "Water"}}]);
    for mode in [json!("draft"), json!(7), json!(["draft_only"])] {
        let make = json!({"objective": "x", "execution_mode": mode, "plan": {"steps": steps}});
        let set = Set::playing([calls("c1", PLAN, &make), says("No.")]).await;
        let frames = set.turn(&go()).await;
        let read = result(&frames);
        assert_eq!((&read["success"], &read["errorType"]), (&json!(false), &json!("validation_error")), "{mode}");
        assert!(read["error"].as_str().unwrap().contains("draft_only"), "{read}");
        assert!(!set.lines().iter().any(|line| line.starts_with("POST")), "{mode}: {:?}", set.lines());
    }
}

#[tokio::test]
async fn calls_of_steps_that_are_broken_off_have_their_results() {
    let begun = Arc::new(Notify::new());
    let backend = Upstream::choosing(move |request: &Request| match request.path.split('?').next().unwrap() {
        // It fails once the other two are under way.
        "/api/onto/tasks/none" => Some(Answer::status(404, "application/json", "").gated(&begun, "{}")),
        "/api/onto/tasks/create" => Some(Answer::ok("application/json", "{").ending(End::Hang)),
        "/api/onto/tasks/t1" => {
            begun.notify_one();
            Some(Answer::ok("application/json", "{").ending(End::Hang))
        }
        _ => project(request),
    });
    let steps = json!([
        {"stepNumber": 1, "type": "research", "tools": ["get_onto_task_details"], "arguments": {"task_id": "none"}},
        {"stepNumber": 2, "type": "action", "tools": ["create_onto_task"], "arguments": {"title": "Water"}},
        {"stepNumber": 3, "tools": ["get_onto_task_details"], "arguments": {"task_id": "t1"}},
    ]);
    let model = Upstream::script(plans(&steps).map(Script::answer)).await;
    let set = Set::over(model, backend.await, &[]).await;
    let frames = set.turn(&go()).await;
    let ids = |kind: &str, id: fn(&Value) -> &Value| {
        let mut ids: Vec<String> = of_kind(&frames, kind).into_iter().map(|frame| id(frame).to_string()).collect();
        ids.sort();
        ids
    };
    let (called, answered) = (
        ids("tool_call", |frame| &frame["tool_call"]["id"]),
        ids("tool_result", |frame| &frame["result"]["toolCallId"]),
    );
    assert_eq!((called.len(), called), (4, answered), "{frames:#?}");
    assert_eq!(text(&frames), "So.", "the turn goes on");
}
