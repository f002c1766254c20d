//! Plans: made, drafted, reviewed, carried out by tools and by executors; and how they fail and are cancelled.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{Set, frame, project, read, text, types};
use crate::support::model::{Script, calls, says, turn};
use crate::support::upstream::{Answer, Request, Upstream};
use crate::support::wait::eventually;

pub(super) const PLAN: &str = "agent_create_plan";

/// A turn in the project p1.
pub(super) fn go() -> Value {
    json!({"message": "Go", "context_type": "project", "entity_id": "p1"})
}

/// A call that makes a plan of these steps.
fn plans(steps: &Value) -> Script {
    calls("c1", PLAN, &json!({"objective": "All of it", "plan": {"steps": steps}}))
}

pub(super) fn of_kind<'a>(frames: &'a [Value], kind: &str) -> Vec<&'a Value> {
    frames.iter().filter(|frame| frame["type"] == kind).collect()
}

/// What the planner reads of its plan.
pub(super) fn result(frames: &[Value]) -> &Value {
    let mut results = of_kind(frames, "tool_result").into_iter().map(|frame| &frame["result"]);
    results.rfind(|result| result["toolName"] == PLAN).unwrap_or_else(|| panic!("{frames:#?}"))
}

fn statuses(plan: &Value) -> Vec<&str> {
    plan["steps"].as_array().unwrap().iter().map(|step| step["status"].as_str().unwrap()).collect()
}

/// What the model named `name` is asked, last of all.
fn asked_of(model: &Upstream, name: &str) -> Vec<Value> {
    model.requests().iter().map(Request::json).filter(|body| body["model"] == name).collect()
}

/// What a helper says, each time.
type Says = Box<dyn Fn() -> Script + Send + Sync>;

/// What the answering model says next.
pub(super) type Turns = Arc<Mutex<VecDeque<Script>>>;

/// A model whose parts are told apart by their names; the answering one plays `turns`.
async fn models(
    turns: impl Into<VecDeque<Script>>,
    helper: impl Fn(&str, &Value) -> Option<Script> + Send + Sync + 'static,
) -> Upstream {
    over(Arc::new(Mutex::new(turns.into())), helper).await
}

pub(super) async fn over(
    turns: Turns,
    helper: impl Fn(&str, &Value) -> Option<Script> + Send + Sync + 'static,
) -> Upstream {
    Upstream::choosing(move |request| {
        let body = request.json();
        let name = body["model"].as_str().unwrap_or_default().to_owned();
        let script = match name.as_str() {
            "planner" | "reviewer" | "worker" => helper(&name, &body),
            _ => turns.lock().unwrap().pop_front(),
        };
        script.map(Script::answer)
    })
    .await
}

pub(super) const HELPERS: [(&str, &str); 3] = [
    ("HELPERS__PLAN", "openai:planner"),
    ("HELPERS__REVIEW", "openai:reviewer"),
    ("HELPERS__EXECUTOR", "openai:worker"),
];

async fn helped(turns: Vec<Script>, helper: impl Fn(&str, &Value) -> Option<Script> + Send + Sync + 'static) -> Set {
    Set::over(models(turns, helper).await, Upstream::choosing(project).await, &HELPERS).await
}

#[tokio::test]
async fn steps_begin_when_their_needs_are_met_and_are_told_as_they_happen() {
    let gate = Arc::new(Notify::new());
    let held = gate.clone();
    let backend = Upstream::choosing(move |request| match request.path.starts_with("/rest/v1/onto_tasks") {
        true => Some(Answer::ok("application/json", "").gated(&held, r#"[{"id": "t1", "title": "Dig"}]"#)),
        false => project(request),
    })
    .await;
    let steps = json!([
        {"stepNumber": 1, "type": "research", "description": "List", "tools": ["LIST_ONTO_TASKS"], "toolArguments": {"limit": 5}},
        {"stepNumber": 2, "type": "research", "description": "Look", "tools": ["get_onto_task_details"],
         "metadata": {"toolArguments": {"get_onto_task_details": {"task_id": "t1"}}}},
        {"stepNumber": 3, "type": "action", "description": "Water", "tools": ["create_onto_task"], "dependsOn": [2]},
        {"stepNumber": 4, "type": "synthesis", "description": "Say so", "dependsOn": [1, 3]},
    ]);
    let model = Upstream::script([plans(&steps), says("All done.")].map(Script::answer)).await;
    let set = Set::over(model, backend, &[]).await;
    let mut response = set.post(&go()).await;
    let mut told = String::new();
    // Steps 2 and 3 go on while the first one waits for its backend.
    while told.matches("\"type\":\"step_complete\"").count() < 2 {
        told.push_str(&String::from_utf8_lossy(&response.chunk().await.unwrap().unwrap()));
    }
    assert!(!told.contains(r#""toolName":"list_onto_tasks""#), "{told}");
    // What was told is kept soon, though the first step goes on.
    let made = told.split("\n\n").find_map(|block| block.strip_prefix(r#"data: {"type":"plan_created","#)).unwrap();
    let made: Value = serde_json::from_str(&format!("{{{made}")).unwrap();
    let path = format!("/v1/agent/plans/{}", made["plan"]["id"].as_str().unwrap());
    eventually("the steps are kept", async || {
        let (_, plan) = set.ask(Method::GET, &path, None).await;
        (statuses(&plan) == ["executing", "completed", "completed", "pending"]).then_some(())
    })
    .await;
    gate.notify_one();
    told.push_str(&response.text().await.unwrap());
    let frames = read(&told);
    let created = &frame(&frames, "plan_created")["plan"];
    assert_eq!(created["metadata"]["estimatedDuration"], 7000);
    assert_eq!((&created["status"], &created["strategy"]), (&json!("pending"), &json!("planner_stream")));
    assert_eq!(created["steps"][0]["tools"][0], "list_onto_tasks", "by its own name");
    let executing = of_kind(&frames, "agent_state").into_iter().filter(|frame| frame["state"] == "executing_plan");
    assert_eq!(executing.count(), 1);
    for kind in ["step_start", "step_complete"] {
        let mut numbers: Vec<u64> =
            of_kind(&frames, kind).iter().map(|frame| frame["step"]["stepNumber"].as_u64().unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2, 3, 4], "{kind}");
    }
    for call in of_kind(&frames, "tool_call") {
        let expected = if call["tool_call"]["function"]["name"] == PLAN { "planner" } else { "plan_step" };
        assert_eq!(call["source"], expected, "{call}");
        assert_eq!(call.get("planId").is_some(), expected == "plan_step", "{call}");
    }
    let read = result(&frames);
    let facts = json!([read["success"], read["data"]["status"], read["data"]["details"]["completed_steps"]]);
    assert_eq!(facts, json!([true, "executed", 4]), "{read}");
    let posted = set.backend.requests().into_iter().find(|request| request.path == "/api/onto/tasks/create").unwrap();
    assert_eq!((&posted.json()["title"], &posted.json()["project_id"]), (&json!("Water"), &json!("p1")));
    assert!(posted.header("idempotency-key").is_some());
    assert_eq!(text(&frames), "All done.");

    // The same is kept, for its owner alone.
    let id = created["id"].as_str().unwrap();
    let (status, plan) = set.ask(Method::GET, &format!("/v1/agent/plans/{id}"), None).await;
    assert_eq!((status, &plan["status"]), (200, &json!("completed")));
    assert_eq!(statuses(&plan), ["completed"; 4]);
    assert_eq!(plan["steps"][0]["result"]["tasks"][0]["title"], "Dig");
    let bob = set.app().token_of("bob", None, &[]);
    let foreign = set.ask_as(&bob, Method::GET, &format!("/v1/agent/plans/{id}"), None).await.0;
    assert_eq!(foreign, 404);
    let session = frame(&frames, "session")["session"]["id"].as_str().unwrap();
    let (_, list) = set.ask(Method::GET, &format!("/v1/agent/conversations/{session}/plans"), None).await;
    assert_eq!(list["items"][0]["id"], id);
    let row = set.ask(Method::GET, &format!("/api/agent/stream?session_id={session}"), None).await.1;
    let rows = row["data"]["session"]["messages"].as_array().unwrap();
    let called: Vec<&Value> = rows.iter().flat_map(|row| row["tool_calls"].as_array().into_iter().flatten()).collect();
    assert_eq!(called.len(), 1, "the planner's alone: {called:#?}");
    let answer = rows.iter().find(|row| row["role"] == "assistant").unwrap();
    let sources = answer["metadata"]["tool_call_sources"].as_array().unwrap();
    let told: BTreeSet<String> = sources.iter().map(|source| source["tool_call_id"].to_string()).collect();
    let of_steps = of_kind(&frames, "tool_call").into_iter().filter(|call| call["source"] == "plan_step");
    let streamed: BTreeSet<String> = of_steps.map(|call| call["tool_call"]["id"].to_string()).collect();
    assert_eq!(told, streamed, "{sources:#?}");
}

#[tokio::test]
async fn every_mistake_of_a_plan_is_named_and_nothing_of_it_is_done() {
    let many: Vec<Value> = (0..10_000).map(|_| json!({})).collect();
    let rows = [
        (
            json!([
                {"stepNumber": 1, "tools": ["fly"], "dependsOn": [7]},
                {"stepNumber": 2, "tools": [PLAN], "dependsOn": [2]},
                {"stepNumber": 2, "tools": ["list_onto_tasks"], "dependsOn": [3]},
                {"stepNumber": 3, "dependsOn": [1]},
            ]),
            vec!["fly", "step 7", PLAN, "depends on step 2", "given twice", "depends on step 3"],
        ),
        (json!([]), vec!["no steps"]),
        (json!(["x"]), vec!["place 1"]),
        (json!([{"stepNumber": 0}, {"stepNumber": 2, "tools": ["fly"]}]), vec!["place 1", "fly"]),
        (Value::Array(many), vec!["10000 steps", "20"]),
        (json!([{"tools": ["delegate"]}, {"tools": ["find_tools"]}]), vec!["delegate", "find_tools"]),
    ];
    for (steps, named) in rows {
        let set = Set::playing([plans(&steps), says("No.")]).await;
        let frames = set.turn(&go()).await;
        let read = result(&frames);
        assert_eq!((&read["success"], &read["errorType"]), (&json!(false), &json!("validation_error")));
        let error = read["error"].as_str().unwrap();
        for part in named {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(of_kind(&frames, "plan_created").is_empty());
        assert!(!set.lines().iter().any(|line| line.starts_with("POST")), "{:?}", set.lines());
        assert_eq!(text(&frames), "No.", "the turn goes on");
    }
}

#[tokio::test]
async fn a_step_that_fails_ends_what_depends_on_it() {
    let fails = json!({"stepNumber": 1, "tools": ["get_onto_task_details"], "arguments": {"task_id": "none"}});
    let step = |mut step: Value, kind: &str| {
        step["type"] = json!(kind);
        step
    };
    let rows = [
        (
            json!([step(fails.clone(), "research"), {"stepNumber": 2, "type": "action", "tools": ["create_onto_task"], "dependsOn": [1]}]),
            "failed",
            vec!["failed", "skipped"],
        ),
        (
            json!([step(fails.clone(), "action"), {"stepNumber": 2, "dependsOn": [1]}, {"stepNumber": 3, "dependsOn": [2]}]),
            "failed",
            vec!["failed", "skipped", "skipped"],
        ),
        (
            json!([step(fails, "action"), {"stepNumber": 2, "type": "action", "tools": ["create_onto_task"]}]),
            "completed_with_errors",
            vec!["failed", "completed"],
        ),
    ];
    for (steps, expected, each) in rows {
        let set = Set::playing([plans(&steps), says("Well.")]).await;
        let frames = set.turn(&go()).await;
        let id = frame(&frames, "plan_created")["plan"]["id"].as_str().unwrap();
        let (_, plan) = set.ask(Method::GET, &format!("/v1/agent/plans/{id}"), None).await;
        assert_eq!((plan["status"].as_str().unwrap(), statuses(&plan)), (expected, each), "{plan:#}");
        assert_eq!(result(&frames)["success"], expected != "failed");
        if expected == "failed" {
            assert!(result(&frames)["error"].as_str().unwrap().contains("step 1"), "{frames:#?}");
        }
        let ended = of_kind(&frames, "step_complete");
        assert_eq!(ended.len(), plan["steps"].as_array().unwrap().len(), "skipped ones too");
        assert!(of_kind(&frames, "error").is_empty());
        assert_eq!(frame(&frames, "done")["finished_reason"], "stop");
    }
}

#[tokio::test]
async fn a_draft_waits_and_is_carried_out_once() {
    let steps = json!([{"description": "Water it", "tools": ["create_onto_task"], "arguments": {"title": "Water"}}]);
    let draft =
        calls("c1", PLAN, &json!({"objective": "A green\ngarden", "auto_execute": false, "plan": {"steps": steps}}));
    let next: Turns = Arc::new(Mutex::new([draft, says("Shall I?")].into()));
    let set = Set::over(over(next.clone(), |_, _| None).await, Upstream::choosing(project).await, &[]).await;
    let frames = set.turn(&go()).await;
    let ready = frame(&frames, "plan_ready_for_review");
    assert_eq!((ready["summary"].as_str(), &ready["plan"]["status"]), (Some("1. Water it"), &json!("pending_review")));
    assert_eq!(result(&frames)["data"]["status"], "pending_review");
    assert!(!set.lines().iter().any(|line| line.starts_with("POST")), "nothing of it is done");
    let id = ready["plan"]["id"].as_str().unwrap().to_owned();
    let session = frame(&frames, "session")["session"]["id"].clone();

    let mut again = go();
    again["session_id"] = session.clone();
    let still = calls("c2", PLAN, &json!({"plan_id": id, "execution_mode": "draft_only"}));
    next.lock().unwrap().extend([still, says("It waits.")]);
    let frames = set.turn(&again).await;
    assert!(result(&frames)["error"].as_str().unwrap().contains("goes on waiting"), "{frames:#?}");
    for _ in 0..3 {
        next.lock().unwrap().extend([calls("c2", PLAN, &json!({"plan_id": id})), says("Yes.")]);
    }
    let frames = set.turn(&again).await;
    assert!(set.prompt(4).contains(&format!("[{id}] A green garden")), "{}", set.prompt(4));
    assert_eq!(result(&frames)["data"]["status"], "executed", "{frames:#?}");
    assert_eq!(set.lines().iter().filter(|line| line.starts_with("POST /api/onto/tasks")).count(), 1);
    let frames = set.turn(&again).await;
    assert!(!set.prompt(6).contains(&format!("[{id}]")), "it waits no more");
    assert_eq!(result(&frames)["success"], false);
    assert!(result(&frames)["error"].as_str().unwrap().contains(&id));

    // Nor is it there for another conversation.
    let frames = set.turn(&go()).await;
    assert_eq!(result(&frames)["success"], false);
}

#[tokio::test]
async fn a_draft_that_is_dropped_is_never_carried_out() {
    let steps = json!([{"tools": ["create_onto_task"], "arguments": {"title": "Water"}}]);
    let draft = calls("c1", PLAN, &json!({"execution_mode": "draft_only", "plan": {"steps": steps}}));
    let set = Set::playing([draft, says("Shall I?")]).await;
    let frames = set.turn(&go()).await;
    let id = frame(&frames, "plan_created")["plan"]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        frame(&frames, "plan_created")["plan"]["user_message"],
        "Go",
        "the user's message where nothing is said"
    );
    let path = format!("/v1/agent/plans/{id}");
    let drop = async |token: &str| {
        let request = set.app().http.delete(set.app().url(&path)).bearer_auth(token);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(drop(&set.app().token_of("bob", None, &[])).await, 404);
    assert_eq!(drop(&set.app().token).await, 204);
    assert_eq!(drop(&set.app().token).await, 409);
    let (_, plan) = set.ask(Method::GET, &path, None).await;
    assert_eq!(plan["status"], "cancelled");
}

#[tokio::test]
async fn a_review_lets_a_plan_through_or_holds_it() {
    let rows = [
        (r#"Fine. {"verdict": "APPROVED", "notes": "Good."}"#, "approved", true),
        (r#"{"verdict": "changes_requested", "notes": "Ask first."}"#, "changes_requested", false),
        (r#"{"verdict": "rejected", "notes": "No."}"#, "rejected", false),
        ("I cannot say.", "changes_requested", false),
    ];
    let steps = json!([{"tools": ["create_onto_task"], "arguments": {"title": "Water"}}]);
    for (answer, verdict, runs) in rows {
        let make = json!({"objective": "x", "execution_mode": "agent_review", "requested_outputs": ["a list"], "plan": {"steps": steps}});
        let turns = vec![calls("c1", PLAN, &make), says("So.")];
        let set = helped(turns, move |name, _| (name == "reviewer").then(|| says(answer))).await;
        let frames = set.turn(&go()).await;
        let review = frame(&frames, "plan_review");
        assert_eq!((&review["verdict"], &review["reviewer"]), (&json!(verdict), &json!("plan_reviewer")), "{answer}");
        assert_eq!(set.lines().iter().any(|line| line.starts_with("POST")), runs, "{answer}");
        assert_eq!(of_kind(&frames, "plan_ready_for_review").len(), usize::from(!runs));
        let expected = if runs { "executed" } else { "changes_requested" };
        assert_eq!(result(&frames)["data"]["status"], expected);
        if !runs {
            assert_eq!(frame(&frames, "plan_ready_for_review")["recommendations"], json!(["a list"]));
            assert_eq!(result(&frames)["data"]["review"]["verdict"], verdict);
        }
        assert_eq!(frame(&frames, "done")["usage"]["total_tokens"], 45, "the review counts");
    }
    let settings = [&HELPERS[..], &[("PLANS__ON_REVIEWER_FAILURE", "approve")]].concat();
    let make = json!({"objective": "x", "execution_mode": "agent_review", "plan": {"steps": steps}});
    let model = models(vec![calls("c1", PLAN, &make), says("So.")], |_, _| Some(says("Well, well."))).await;
    let set = Set::over(model, Upstream::choosing(project).await, &settings).await;
    let frames = set.turn(&go()).await;
    assert_eq!(frame(&frames, "plan_review")["verdict"], "approved");
    assert_eq!(result(&frames)["data"]["status"], "executed");
}

#[tokio::test]
async fn a_helper_writes_the_steps_that_are_not_given() {
    let rows = [
        (r#"{"steps": [{"tools": ["list_onto_tasks"]}], "reasoning": "x"}"#, true),
        ("```json\n[{\"tools\": \"list_onto_tasks\"}]\n```\nThere.", true),
        ("No plan.", false),
        (r#"{"steps": []}"#, false),
        (r#"{"steps": [{"tools": ["fly"]}]}"#, false),
    ];
    for (answer, is_plan) in rows {
        let turns = vec![calls("c1", PLAN, &json!({"objective": "Look"})), says("So.")];
        let set = helped(turns, move |name, _| (name == "planner").then(|| says(answer))).await;
        let frames = set.turn(&go()).await;
        assert_eq!(result(&frames)["success"], is_plan, "{answer}");
        assert_eq!(of_kind(&frames, "plan_created").len(), usize::from(is_plan));
        let asked = asked_of(&set.s.model, "planner");
        let request = asked[0]["messages"][1]["content"].as_str().unwrap();
        assert!(request.contains("Look") && request.contains("create_onto_task") && request.contains("title"));
        assert!(asked[0].get("tools").is_none(), "it has none");
        assert_eq!(frame(&frames, "done")["usage"]["total_tokens"], 45, "it counts");
    }
}

#[tokio::test]
async fn an_executor_sees_its_step_and_nothing_else() {
    let steps = json!([
        {"stepNumber": 1, "tools": ["list_onto_tasks"]},
        {"stepNumber": 2, "description": "Judge them", "executorRequired": true, "tools": ["get_onto_task_details"], "dependsOn": [1]},
    ]);
    let worker = |name: &str, body: &Value| {
        assert_eq!(name, "worker");
        Some(match body["messages"].as_array().unwrap().len() {
            2 => turn()
                .call("c1", "get_onto_task_details", &json!({"task_id": "t1"}))
                .call("c2", "create_onto_task", &json!({"title": "No"}))
                .done(),
            _ => says("```json\n{\"success\": true, \"summary\": \"Fine\", \"data\": [1]}\n```"),
        })
    };
    let secret = json!({"message": "The secret word is plover", "context_type": "project", "entity_id": "p1"});
    let set = helped(vec![plans(&steps), says("So.")], worker).await;
    let frames = set.turn(&secret).await;
    let asked = asked_of(&set.s.model, "worker");
    let first = asked[0].to_string();
    assert!(first.contains("Judge them") && first.contains("Dig"), "{first}");
    assert!(!first.contains("plover"), "nothing of the conversation: {first}");
    let tools: Vec<&str> =
        asked[0]["tools"].as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    assert_eq!(tools, ["get_onto_task_details"]);
    assert!(!set.lines().iter().any(|line| line.starts_with("POST")), "what it was not given is not made");
    let spawned = frame(&frames, "executor_spawned");
    let executor = &spawned["executorId"];
    for kind in ["tool_call", "tool_result"] {
        let of = of_kind(&frames, kind).into_iter().filter(|frame| frame["source"] == "executor");
        let of: Vec<&Value> = of.collect();
        assert_eq!(of.len(), 2, "{kind}");
        assert!(of.iter().all(|frame| frame["executorId"] == *executor && frame["stepNumber"] == 2), "{of:#?}");
    }
    let ids: Vec<&str> =
        of_kind(&frames, "tool_call").iter().map(|frame| frame["tool_call"]["id"].as_str().unwrap()).collect();
    let distinct: std::collections::HashSet<&&str> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "no id is given twice: {ids:?}");
    let order = types(&frames);
    let at = |kind: &str| order.iter().position(|other| *other == kind).unwrap();
    assert!(at("step_start") < at("executor_spawned") && at("executor_spawned") < at("executor_result"), "{order:?}");
    let last = order.iter().rposition(|kind| *kind == "step_complete").unwrap();
    assert!(at("executor_result") < last, "{order:?}");
    let outcome = &frame(&frames, "executor_result")["result"];
    assert_eq!(outcome["metadata"], json!({"tokensUsed": 30, "toolCallsMade": 2}));
    assert_eq!(outcome["data"]["toolResults"][0]["success"], true, "{outcome}");
    assert_eq!(outcome["data"]["toolResults"][1]["success"], false, "{outcome}");
    assert_eq!(frame(&frames, "done")["usage"]["total_tokens"], 60, "all four model calls");
    let id = frame(&frames, "plan_created")["plan"]["id"].as_str().unwrap();
    let (_, plan) = set.ask(Method::GET, &format!("/v1/agent/plans/{id}"), None).await;
    let work = &plan["executions"][0];
    let facts = json!([work["executor_id"], work["step"], work["success"], work["tool_calls"], work["permission"]]);
    assert_eq!(facts, json!([executor, 2, true, 2, "read_only"]), "{work:#}");
    assert_eq!(plan["steps"][1]["result"]["data"], json!([1]));
}

#[tokio::test]
async fn an_executor_that_fails_fails_its_step_alone() {
    let steps = json!([
        {"stepNumber": 1, "type": "action", "executorRequired": true, "tools": ["list_onto_tasks"]},
        {"stepNumber": 2, "type": "action", "tools": ["list_onto_tasks"]},
    ]);
    let looped = || calls("c", "list_onto_tasks", &json!({}));
    let rows: Vec<(&str, Says)> = vec![
        ("completed", Box::new(|| says("Just words."))),
        ("failed", Box::new(|| says(r#"{"success": false, "error": "no luck"}"#))),
        ("failed", Box::new(|| turn().text("I was ab").breaks())),
        ("failed", Box::new(looped)),
        ("failed", Box::new(|| turn().text("wait").hangs())),
    ];
    for (expected, script) in rows {
        let settings = [&HELPERS[..], &[("PLANS__EXECUTOR_TOOL_CALLS", "3"), ("PLANS__EXECUTOR_S", "2")]].concat();
        let model = models(vec![plans(&steps), says("So.")], move |_, _| Some(script())).await;
        let set = Set::over(model, Upstream::choosing(project).await, &settings).await;
        let frames = set.turn(&go()).await;
        let id = frame(&frames, "plan_created")["plan"]["id"].as_str().unwrap();
        let (_, plan) = set.ask(Method::GET, &format!("/v1/agent/plans/{id}"), None).await;
        assert_eq!(statuses(&plan), [expected, "completed"], "{plan:#}");
        assert_eq!(frame(&frames, "done")["finished_reason"], "stop");
        if expected == "completed" {
            assert_eq!(plan["steps"][0]["result"]["response"], "Just words.");
        }
    }
}

#[tokio::test]
async fn a_client_that_leaves_takes_every_step_with_it() {
    let backend = Upstream::choosing(|request| match request.path.starts_with("/rest/v1/") {
        true => Some(Answer::ok("application/json", "[").ending(crate::support::upstream::End::Hang)),
        false => project(request),
    })
    .await;
    let steps = json!([
        {"tools": ["list_onto_tasks"]},
        {"tools": ["list_onto_goals"]},
        {"executorRequired": true, "tools": ["list_onto_tasks"]},
        {"dependsOn": [1]},
    ]);
    let model = models(vec![plans(&steps)], |_, _| Some(turn().text("thinking").hangs())).await;
    let set = Set::over(model, backend, &HELPERS).await;
    let mut response = set.post(&go()).await;
    let mut told = String::new();
    while !told.contains("executor_spawned") || told.matches("step_start").count() < 3 {
        told.push_str(&String::from_utf8_lossy(&response.chunk().await.unwrap().unwrap()));
    }
    eventually("three requests are there", async || {
        let (lines, asked) = (set.lines(), asked_of(&set.s.model, "worker"));
        (lines.iter().filter(|line| line.contains("/rest/v1/")).count() == 2 && asked.len() == 1).then_some(())
    })
    .await;
    let id = told.split("\"plan_created\",\"plan\":{\"id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let left = std::time::Instant::now();
    drop(response);
    set.backend.clients_gone(2).await;
    set.s.model.clients_gone(1).await;
    assert!(left.elapsed() < std::time::Duration::from_secs(2), "{:?}", left.elapsed());
    let path = format!("/v1/agent/plans/{id}");
    eventually("the plan is cancelled", async || {
        (set.ask(Method::GET, &path, None).await.1["status"] == "cancelled").then_some(())
    })
    .await;
    let (_, plan) = set.ask(Method::GET, &path, None).await;
    assert_eq!(statuses(&plan), ["cancelled"; 4]);
    assert_eq!(plan["executions"][0]["status"], "cancelled");
}

#[tokio::test]
async fn in_project_create_a_plan_makes_the_project_first() {
    let place = json!({"message": super::CLEAR, "context_type": "project_create"});
    let without = plans(&json!([{"tools": ["create_onto_task"], "arguments": {"title": "Water"}}]));
    let set = Set::playing([without, says("No.")]).await;
    let frames = set.turn(&place).await;
    assert!(result(&frames)["error"].as_str().unwrap().contains("create_onto_project"), "{frames:#?}");

    let made = json!({"project": {"name": "Garden", "type_key": "project.home.garden"}});
    let steps = json!([
        {"stepNumber": 1, "type": "action", "tools": ["create_onto_project"], "arguments": made},
        {"stepNumber": 2, "type": "action", "tools": ["create_onto_task"], "arguments": {"title": "Water"}},
    ]);
    let set = Set::playing([plans(&steps), says("There it is.")]).await;
    let frames = set.turn(&place).await;
    let plan = &frame(&frames, "plan_created")["plan"];
    assert_eq!((&plan["strategy"], &plan["steps"][1]["dependsOn"]), (&json!("project_creation"), &json!([1])));
    let task = set.backend.requests().into_iter().find(|request| request.path == "/api/onto/tasks/create").unwrap();
    assert_eq!(task.json()["project_id"], "p1");
    assert_eq!(frame(&frames, "context_shift")["context_shift"]["entity_id"], "p1");
    let order = types(&frames);
    let at = |kind: &str| order.iter().position(|found| *found == kind).unwrap();
    assert_eq!(order.iter().filter(|kind| **kind == "context_shift").count(), 1, "{order:?}");
    assert_eq!(order[at("context_shift") + 1], "last_turn_context", "{order:?}");
    assert!(at("context_shift") < at("step_complete"), "inside the plan: {order:?}");
    assert_eq!(frames[frames.len() - 3]["contextType"], "project", "{:?}", types(&frames));
}

#[tokio::test]
async fn what_only_reads_makes_no_plan_that_writes() {
    let steps = json!([{"tools": ["create_onto_task"], "arguments": {"title": "Water"}}]);
    let set = Set::playing([plans(&steps), says("No.")]).await;
    let frames = set.turn(&json!({"message": "Go", "context_type": "project_audit", "entity_id": "p1"})).await;
    assert!(result(&frames)["error"].as_str().unwrap().contains("create_onto_task"));
    assert!(!set.lines().iter().any(|line| line.starts_with("POST")));
}

#[tokio::test]
async fn a_write_of_unknown_outcome_keeps_its_key_beyond_its_plan() {
    let backend = Upstream::choosing(|request| match request.path.as_str() {
        "/api/onto/tasks/create" => Some(Answer::status(504, "application/json", "{}")),
        _ => project(request),
    })
    .await;
    let steps = json!([
        {"stepNumber": 1, "type": "research", "tools": ["list_onto_tasks"]},
        {"stepNumber": 2, "type": "research", "tools": ["create_onto_task"], "arguments": {"title": "Water"}, "dependsOn": [1]},
    ]);
    let again = calls("c2", "create_onto_task", &json!({"title": "Water"}));
    let turns = [plans(&steps), again, says("I cannot tell.")].map(Script::answer);
    let set = Set::over(Upstream::script(turns).await, backend, &[]).await;
    let frames = set.turn(&go()).await;
    let error = result(&frames)["error"].as_str().unwrap();
    assert!(error.contains("step 2") && error.contains("Steps 1 are done"), "{error}");
    let posts: Vec<Request> =
        set.backend.requests().into_iter().filter(|request| request.path == "/api/onto/tasks/create").collect();
    let keys: BTreeSet<&str> = posts.iter().map(|request| request.header("idempotency-key").unwrap()).collect();
    assert_eq!((posts.len(), keys.len()), (2, 1), "the backend can tell that both are the same write");
}

#[tokio::test]
async fn a_plan_that_cannot_be_carried_out_any_more_goes_on_waiting() {
    let steps = json!([{"tools": ["create_onto_task"], "arguments": {"title": "Water"}}]);
    let draft = calls("c1", PLAN, &json!({"objective": "x", "execution_mode": "draft_only", "plan": {"steps": steps}}));
    let next: Turns = Arc::new(Mutex::new([draft, says("Shall I?")].into()));
    let set = Set::over(over(next.clone(), |_, _| None).await, Upstream::choosing(project).await, &[]).await;
    let frames = set.turn(&go()).await;
    let id = frame(&frames, "plan_created")["plan"]["id"].as_str().unwrap().to_owned();
    next.lock().unwrap().extend([calls("c2", PLAN, &json!({"plan_id": id})), says("No.")]);
    let session = frame(&frames, "session")["session"]["id"].clone();
    // Where nothing may be written it is no plan.
    let frames = set.turn(&json!({"message": "Go", "session_id": session, "context_type": "project_audit"})).await;
    assert!(result(&frames)["error"].as_str().unwrap().contains("create_onto_task"), "{frames:#?}");
    assert!(!set.lines().iter().any(|line| line.starts_with("POST")));
    let (_, plan) = set.ask(Method::GET, &format!("/v1/agent/plans/{id}"), None).await;
    assert_eq!(plan["status"], "draft");
}
