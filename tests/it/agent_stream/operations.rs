//! Operations: what a call does is told in words that users know, and never by an id.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Set, frame, project, types};
use crate::support::model::{Script, calls, says, turn};
use crate::support::upstream::{Answer, Request, Upstream};

const DIG: &str = "0198c0de-0000-7000-8000-000000000001";
const WATER: &str = "0198c0de-0000-7000-8000-000000000002";
const GONE: &str = "0198c0de-0000-7000-8000-000000000003";
const SLOW: &str = "0198c0de-0000-7000-8000-000000000004";
const MADE: &str = "0198c0de-0000-7000-8000-000000000005";

/// Tasks: one that lists tell of, one that only its own request does, one that is gone, one that takes too long.
fn tasks(request: &Request) -> Option<Answer> {
    let (method, path) = (request.method.as_str(), request.path.split('?').next().unwrap_or_default());
    let task = |id: &str, title: &str| json!({"success": true, "data": {"task": {"id": id, "title": title}}});
    let body = match (method, path.strip_prefix("/api/onto/tasks/")) {
        _ if (method, path) == ("GET", "/rest/v1/onto_tasks") => json!([{"id": DIG, "title": "Dig"}]),
        _ if (method, path) == ("GET", "/api/onto/edges/linked") => json!({"data": {"linked": []}}),
        ("GET", Some(WATER)) => task(WATER, "Water\nthe  roses"),
        ("GET", Some(SLOW)) => {
            return Some(
                Answer::ok("application/json", "").later(Duration::from_secs(20), task(SLOW, "Late").to_string()),
            );
        }
        ("PATCH", Some(id)) if id != GONE => json!({"success": true, "data": {"task": {"id": id}}}),
        ("POST", Some("create")) => task(MADE, "Mow"),
        _ => return project(request),
    };
    Some(Answer::ok("application/json", body.to_string()))
}

async fn set(turns: impl IntoIterator<Item = Script>) -> Set {
    let model = Upstream::script(turns.into_iter().map(Script::answer)).await;
    Set::over(model, Upstream::choosing(tasks).await, &[]).await
}

/// The operations of a turn: action, type, name, status, and the id where there is one.
fn operations(frames: &[Value]) -> Vec<Value> {
    let told = frames.iter().filter(|frame| frame["type"] == "operation");
    told.map(|frame| {
        assert_eq!(frame["source"], "planner", "{frame}");
        let operation = frame["operation"].as_object().unwrap();
        let mut facts: Vec<Value> =
            ["action", "entity_type", "entity_name", "status"].map(|key| operation[key].clone()).into();
        facts.extend(operation.get("entity_id").cloned());
        facts.into()
    })
    .collect()
}

/// The arguments of a call as the client sees them.
fn arguments(frames: &[Value], id: &str) -> Map<String, Value> {
    let mut calls = frames.iter().filter(|frame| frame["type"] == "tool_call").map(|frame| &frame["tool_call"]);
    let call = calls.rfind(|call| call["id"] == id).unwrap();
    serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap()
}

fn here() -> Value {
    json!({"message": "Go", "context_type": "project", "entity_id": "p1"})
}

#[tokio::test]
async fn what_results_have_named_is_told_by_its_name_also_in_later_turns() {
    let done = |call: &str| calls(call, "update_onto_task", &json!({"task_id": DIG, "state_key": "done"}));
    let list = calls("c1", "list_onto_tasks", &json!({}));
    let set = set([list, done("c2"), says("Done."), done("c3"), says("Again.")]).await;
    let first = set.turn(&here()).await;
    let expected = json!([
        ["list", "task", "tasks", "start"],
        ["list", "task", "tasks", "success"],
        ["update", "task", "Dig", "start", DIG],
        ["update", "task", "Dig", "success", DIG],
    ]);
    assert_eq!(Value::from(operations(&first)), expected);
    let block: Vec<&str> = types(&first).into_iter().skip_while(|kind| *kind != "tool_call").take(4).collect();
    assert_eq!(block, ["tool_call", "operation", "tool_result", "operation"]);
    assert_eq!(arguments(&first, "c2")["task_title"], "Dig");
    let session = frame(&first, "session")["session"]["id"].clone();
    let second = set.turn(&json!({"message": "Once more", "session_id": session})).await;
    assert_eq!(operations(&second)[0], json!(["update", "task", "Dig", "start", DIG]));
    assert_eq!(arguments(&second, "c3")["task_title"], "Dig");
    assert!(
        !set.lines().iter().any(|line| line.starts_with("GET /api/onto/tasks")),
        "nobody is asked: {:?}",
        set.lines()
    );
    for sent in set.backend.requests().into_iter().filter(|request| request.method == "PATCH") {
        assert!(sent.json().get("task_title").is_none(), "{}", sent.json());
    }
    let asked = set.s.last_asked();
    assert!(!json!(asked).to_string().contains("task_title"), "the model never sees it");
}

#[tokio::test]
async fn a_name_that_nobody_knows_is_looked_up_once_before_a_change() {
    let update = |call: &str, id: &str| calls(call, "update_onto_task", &json!({"task_id": id, "state_key": "done"}));
    let turns = [update("c1", WATER), update("c2", WATER), update("c3", GONE), update("c4", SLOW), says("Done.")];
    let set = set(turns).await;
    let frames = set.turn(&here()).await;
    let expected = json!([
        ["update", "task", "Water the roses", "start", WATER],
        ["update", "task", "Water the roses", "success", WATER],
        ["update", "task", "Water the roses", "start", WATER],
        ["update", "task", "Water the roses", "success", WATER],
        ["update", "task", "task", "start", GONE],
        ["update", "task", "task", "error", GONE],
        ["update", "task", "task", "start", SLOW],
        ["update", "task", "task", "success", SLOW],
    ]);
    assert_eq!(Value::from(operations(&frames)), expected);
    assert!(!arguments(&frames, "c3").contains_key("task_title"), "the word for its kind is no name");
    let lines = set.lines();
    let count = |id: &str| lines.iter().filter(|line| **line == format!("GET /api/onto/tasks/{id}")).count();
    assert_eq!((count(WATER), count(GONE), count(SLOW)), (1, 1, 1), "{lines:?}");
    let at = |line: String| lines.iter().position(|other| *other == line).unwrap();
    assert!(at(format!("GET /api/onto/tasks/{WATER}")) < at(format!("PATCH /api/onto/tasks/{WATER}")));
}

#[tokio::test]
async fn reads_searches_and_what_is_made_have_their_names_and_other_calls_have_none() {
    let all = turn()
        .call("c1", "get_onto_task_details", &json!({"task_id": WATER}))
        .call("c2", "search_onto_tasks", &json!({"search": "roses"}))
        .call("c3", "create_onto_task", &json!({"title": "Mow"}))
        .call("c4", "get_onto_task_details", &json!({"task_id": GONE}))
        .call("c5", "update_onto_task", &json!({"task_id": "t1", "title": "x"}))
        .call("c6", "get_field_info", &json!({"entity_type": "ontology_task"}))
        .call("c7", "get_linked_entities", &json!({"entity_id": DIG, "entity_kind": "task"}))
        .call("c8", "fly", &json!({}))
        .done();
    let after = calls("c9", "update_onto_task", &json!({"task_id": MADE, "state_key": "done"}));
    let set = set([all, after, says("Done.")]).await;
    let frames = set.turn(&here()).await;
    let expected = json!([
        ["read", "task", "task", "start", WATER],
        ["read", "task", "Water the roses", "success", WATER],
        ["search", "task", "roses", "start"],
        ["search", "task", "roses", "success"],
        ["create", "task", "Mow", "start"],
        ["create", "task", "Mow", "success", MADE],
        ["read", "task", "task", "start", GONE],
        ["read", "task", "task", "error", GONE],
        ["update", "task", "x", "start", "t1"],
        ["update", "task", "x", "error", "t1"],
        ["update", "task", "Mow", "start", MADE],
        ["update", "task", "Mow", "success", MADE],
    ]);
    assert_eq!(Value::from(operations(&frames)), expected);
}

#[tokio::test]
async fn nothing_is_asked_for_a_call_that_is_refused() {
    let arguments = json!({"task_id": WATER});
    let delete = json!({});
    let all = turn().call("c1", "update_onto_task", &arguments).call("c2", "delete_onto_task", &delete).done();
    let set = set([all, says("Done.")]).await;
    let frames = set.turn(&here()).await;
    let told: Vec<Value> = operations(&frames).into_iter().map(|operation| operation[3].clone()).collect();
    assert_eq!(told, ["start", "error", "start", "error"]);
    let lines: Vec<String> = set.lines().into_iter().filter(|line| line.contains("/tasks/")).collect();
    assert_eq!(lines, [""; 0]);
}

#[tokio::test]
async fn other_wires_and_the_steps_of_plans_tell_the_same() {
    let steps = json!([{"type": "action", "tools": ["create_onto_task"], "arguments": {"title": "Mow"}}]);
    let plan = || calls("c1", "agent_create_plan", &json!({"objective": "Mow", "plan": {"steps": steps}}));
    let add = || calls("c2", "create_onto_task", &json!({"title": "Mow", "project_id": "p1"}));
    let script = || [plan(), add(), says("Done.")];
    let set = set([script(), script(), script(), script()].into_iter().flatten()).await;
    let frames = set.turn(&here()).await;
    let told: Vec<&Value> = frames.iter().filter(|frame| frame["type"] == "operation").collect();
    assert_eq!(told.len(), 4, "{told:#?}");
    let id = &frame(&frames, "plan_created")["plan"]["id"];
    for (nth, source) in ["plan_step", "plan_step", "planner", "planner"].into_iter().enumerate() {
        assert_eq!((&told[nth]["source"], &told[nth]["operation"]["entity_name"]), (&json!(source), &json!("Mow")));
        assert_eq!(told[nth].get("planId"), (source == "plan_step").then_some(id));
    }

    let frames = set.app().chat(&json!({"message": "Go", "context_type": "project", "entity_id": "p1"})).await;
    let told: Vec<&Value> = frames.iter().filter(|frame| frame.event == "operation").map(|frame| &frame.data).collect();
    assert_eq!(told.len(), 4);
    assert_eq!((&told[1]["status"], &told[1]["origin"]["step"]), (&json!("success"), &json!(1)));
    let expected = json!({
        "tool_use_id": "c2", "action": "create", "entity_type": "task", "entity_id": MADE, "entity_name": "Mow",
        "status": "success",
    });
    assert_eq!(told[3]["tool_use_id"].as_str().map(|id| id.starts_with("c2")), Some(true));
    let mut last = told[3].clone();
    last["tool_use_id"] = json!("c2");
    assert_eq!(last, expected);

    let post = async |path: &str, body: Value| {
        let request = set.app().http.post(set.app().url(path)).bearer_auth(&set.app().token).json(&body);
        let text = request.send().await.unwrap().text().await.unwrap();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter_map(|json| serde_json::from_str::<Value>(json).ok()).collect::<Vec<Value>>()
    };
    let message = json!({"id": "u1", "role": "user", "content": "Go"});
    let input = json!({"threadId": "t", "runId": "r", "state": {}, "messages": [message], "tools": [], "context": [], "forwardedProps": {}});
    let events = post("/v1/ag-ui/project", input).await;
    let told: Vec<&Value> = events.iter().filter(|event| event["name"] == "operation").collect();
    let statuses: Vec<&Value> = told.iter().map(|event| &event["value"]["status"]).collect();
    assert_eq!(statuses, ["start", "error"], "there is no project here; those of the plan are in its activity");

    let parts = json!([{"type": "text", "text": "Go"}]);
    let body =
        json!({"id": "c9", "messages": [{"id": "u1", "role": "user", "parts": parts}], "trigger": "submit-message"});
    let chunks = post("/v1/ai-sdk/chat?context_type=project", body).await;
    let told: Vec<&Value> = chunks.iter().filter(|chunk| chunk["type"] == "data-operation").collect();
    assert_eq!(told.len(), 2);
    assert_eq!((told[0]["id"] == told[1]["id"], &told[1]["data"]["entity_name"]), (true, &json!("Mow")));
}
