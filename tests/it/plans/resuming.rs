//! A plan that waits while other things happen to it: it moves, it ends, its decision is late or is never carried out.

use serde_json::{Value, json};

use super::approvals::{again, decide, decide_as, erase, get, kept, of_type, post, states, writes};
use super::{READABLE, TOOLS, desk, of_event, plans, read, things, told};
use crate::support::app::ADA;
use crate::support::frames;
use crate::support::model::{Script, Scripted, calls, says, turn};
use crate::support::upstream::Upstream;
use crate::tools::rest::{Setup, answer};

const ZOE: &str = "22222222-2222-4222-8222-222222222222";

const MORE: &str = r#"
[[tool]]
name = "found"
description = "Makes a project, and goes there."
request = { method = "POST", path = "/projects" }
move = { to = "project", entity = "{{ result.id }}" }
input_schema = { type = "object", properties = { name = { type = "string" } } }

[[tool]]
name = "refund"
description = "Pays back."
approval = "role:chief"
request = { method = "POST", path = "/refunds" }
input_schema = { type = "object", properties = { name = { type = "string" } } }
"#;

/// Another screen, whose assistant makes no plans.
const PROJECT: &str = r#"
id = "project"
context_type = "project"
instructions = ["project.md"]
tools = ["look"]
"#;

async fn desk_with_more(turns: impl IntoIterator<Item = Script>) -> (Scripted, Upstream) {
    desk_of("[plan]\n", turns).await
}

/// The same with this in the profile that makes plans.
async fn desk_of(profile: &str, turns: impl IntoIterator<Item = Script>) -> (Scripted, Upstream) {
    let tools = format!("{TOOLS}{MORE}");
    let mut setup = Setup::of(&tools);
    setup.profile = profile;
    setup.settings = vec![READABLE];
    setup.files.extend([("profiles/project.toml", PROJECT), ("prompts/project.md", "You are in a project.")]);
    setup
        .start(
            turns,
            |request| if request.path == "/api/projects" { answer(&json!({"id": "p7"})) } else { things(request) },
        )
        .await
}

fn shown_of(frames: &[crate::support::frames::Frame]) -> Vec<Value> {
    of_event(frames, "approval_request").into_iter().cloned().collect()
}

/// Moves the conversation, and erases something at the new place.
fn moves() -> Value {
    json!([
        {"type": "action", "tools": ["found"], "arguments": {"name": "Garden"}},
        {"type": "action", "tools": ["erase"], "arguments": {"id": "t1"}, "depends_on": [1]},
        {"type": "action", "tools": ["save"], "arguments": {"title": "x"}, "depends_on": [2]},
    ])
}

#[tokio::test]
async fn a_plan_that_has_moved_its_conversation_goes_on_with_the_assistant_that_makes_it() {
    let (s, backend) = desk_with_more([plans(&moves()), says("All is there.")]).await;
    let frames = told(&s.app, "Go").await;
    assert_eq!(of_event(&frames, "place_changed").len(), 1, "{frames:#?}");
    let frames = decide(&s, &shown_of(&frames)[0], "approve").await;
    let plan = kept(&s, &frames).await;
    assert_eq!((&plan["status"], states(&plan)), (&json!("completed"), vec!["completed"; 3]), "{plan:#}");
    assert_eq!(writes(&backend), ["POST /api/projects", "DELETE /api/things/t1", "POST /api/things"]);
    // The answer is that of the screen where the conversation is.
    let system = s.last_asked()[0]["content"].to_string();
    assert!(system.contains("You are in a project."), "{system}");
}

#[tokio::test]
async fn what_ends_a_plan_before_the_decision_keeps_its_other_calls_from_being_made() {
    let refund = json!({"type": "action", "tools": ["refund"], "arguments": {"name": "x"}});
    let (s, backend) = desk_with_more([plans(&json!([erase("t1"), refund])), says("I see.")]).await;
    let frames = told(&s.app, "Go").await;
    let shown = shown_of(&frames);
    let (own, other) = (of_tool(&shown, "erase"), of_tool(&shown, "refund"));
    let chief = s.app.token_of(ZOE, None, &["chief"]);
    assert_eq!(decide_as(&s, &chief, &other, "reject").await.status(), 200);
    // The model reads first that somebody has turned the other call down, with which the plan has ended.
    let frames = decide(&s, &own, "approve").await;
    assert_eq!(writes(&backend), [""; 0], "{frames:#?}");
    let plan = get(&s, &format!("/v1/agent/plans/{}", own["origin"]["plan_id"].as_str().unwrap())).await;
    assert_eq!((&plan["status"], states(&plan)), (&json!("failed"), vec!["failed"; 2]));
    assert!(read(&s)["error"].as_str().unwrap().contains("the plan that needed it has ended"), "{}", read(&s));
}

fn of_tool(shown: &[Value], tool: &str) -> Value {
    shown.iter().find(|shown| shown["tool"] == tool).unwrap().clone()
}

#[tokio::test]
async fn readers_without_details_learn_nothing_of_what_a_step_has_done_before_it_waited() {
    let both = json!({"type": "action", "tools": ["look", "erase"], "depends_on": [],
        "arguments": {"look": {"id": "t1"}, "erase": {"id": "t1"}}, "parallelize_tools": false});
    let (s, _backend) = desk([plans(&json!([both])), says("Done.")]).await;
    let frames = told(&s.app, "Go").await;
    let frames = decide(&s, &shown_of(&frames)[0], "approve").await;
    let told_all = frames.iter().map(|frame| frame.data.to_string()).collect::<String>();
    assert_eq!(of_event(&frames, "plan_finished")[0]["plan"]["status"], "completed");
    assert!(!told_all.contains("Secret") && !told_all.contains("so_far"), "{told_all}");
}

#[tokio::test]
async fn a_sub_agents_call_that_was_let_through_is_no_error_of_its_step() {
    let by_agent =
        json!([{"type": "action", "description": "Clear t1", "tools": ["erase"], "executor_required": true}]);
    let erases = calls("c2", "erase", &json!({"id": "t1"}));
    let (s, _backend) =
        desk([plans(&by_agent), erases, says(r#"{"success": true, "summary": "Cleared."}"#), says("Done.")]).await;
    let frames = told(&s.app, "Go").await;
    let frames = decide(&s, &shown_of(&frames)[0], "approve").await;
    let plan = kept(&s, &frames).await;
    assert!(!plan["steps"][0]["result"].to_string().contains("awaiting_approval"), "{plan:#}");
    assert_eq!(plan["executions"][0]["tool_calls"], 1);
}

#[tokio::test]
async fn ag_ui_ends_well_when_the_first_of_several_decisions_ends_the_plan() {
    let two = json!([
        {"tools": ["erase"], "arguments": {"id": "t1"}},
        {"tools": ["erase"], "arguments": {"id": "t2"}},
    ]);
    let (s, backend) = desk([plans(&two), says("I see.")]).await;
    let message = json!({"id": "u1", "role": "user", "content": "Go"});
    let mut input = json!({"threadId": "t", "runId": "r", "state": {}, "messages": [message], "tools": [], "context": [],
        "forwardedProps": {"protocolVersion": "1.0"}, "protocolVersion": "1.0"});
    let events = post(&s, "/v1/ag-ui/mine", &input).await;
    let interrupts = of_type(&events, "RUN_FINISHED")[0]["outcome"]["interrupts"].as_array().unwrap().clone();
    assert_eq!(interrupts.len(), 2);
    let no = |interrupt: &Value| json!({"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": false}});
    input["resume"] = interrupts.iter().map(no).collect();
    input["runId"] = json!("r2");
    let answer = json!({"id": "a1", "role": "assistant", "content": "They wait."});
    input["messages"].as_array_mut().unwrap().push(answer);
    let events = post(&s, "/v1/ag-ui/mine", &input).await;
    assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED", "{events:#?}");
    assert_eq!((of_type(&events, "RUN_ERROR").len(), of_type(&events, "RUN_FINISHED").len()), (0, 1));
    assert_eq!((writes(&backend), s.model.requests().len()), (Vec::new(), 2));
    assert_eq!(get(&s, "/v1/agent/approvals").await["items"], json!([]));
}

#[tokio::test]
async fn an_answer_behind_a_rejection_is_given_again_without_the_plan() {
    let more = json!({"type": "action", "tools": ["save"], "arguments": {"title": "x"}});
    let (s, backend) = desk([plans(&json!([erase("t1"), more])), says("I see."), says("Once more.")]).await;
    let frames = told(&s.app, "Go").await;
    let shown = shown_of(&frames);
    let response = decide_as(&s, &s.app.token, &shown[0], "reject").await;
    let conversation = response.headers()["x-conversation-id"].to_str().unwrap().to_owned();
    response.text().await.unwrap();
    let body = json!({"regenerate": true, "context_type": "mine", "conversation_id": conversation});
    let response = s.app.post(&body).await;
    let (status, text) = (response.status(), response.text().await.unwrap());
    assert_eq!(status, 200, "{text}");
    let asked = s.last_asked();
    let results = asked.iter().rfind(|message| message["role"] == "tool").unwrap();
    assert!(results["content"].as_str().unwrap().contains("turned this call down"), "{asked:#?}");
    assert_eq!(writes(&backend), ["POST /api/things"]);
}

#[tokio::test]
async fn a_plan_ends_where_whoever_decides_may_not_use_the_assistant_that_makes_it() {
    let (s, backend) = desk_of("roles = [\"PLANNER\"]\n[plan]\n", [plans(&moves()), says("It has ended.")]).await;
    let planner = s.app.token_of(ADA, None, &["USER", "PLANNER"]);
    let response = s.app.post_as(&planner, &json!({"message": "Go", "context_type": "mine"})).await;
    let frames = frames::parse(&response.text().await.unwrap());
    let frames = decide(&s, &shown_of(&frames)[0], "approve").await;
    let plan = kept(&s, &frames).await;
    assert_eq!((&plan["status"], states(&plan)), (&json!("failed"), vec!["completed", "failed", "skipped"]));
    assert_eq!(writes(&backend), ["POST /api/projects"]);
    assert!(read(&s)["error"].as_str().unwrap().contains("the plan that needed it has ended"), "{}", read(&s));
}

#[tokio::test]
async fn a_plan_ends_where_its_assistant_makes_none_any_more() {
    for decision in ["approve", "reject"] {
        let steps =
            json!([erase("t1"), erase("t2"), {"tools": ["look"], "arguments": {"id": "t1"}, "depends_on": [1]}]);
        let (s, backend) = desk([plans(&steps), says("It has ended.")]).await;
        let frames = told(&s.app, "Go").await;
        let shown = shown_of(&frames);
        let Scripted { app, model } = s;
        let data = app.stop().await;
        let profile = data.path().join("config/profiles/mine.toml");
        let text = std::fs::read_to_string(&profile).unwrap();
        std::fs::write(&profile, text.replace("[plan]\n", "")).unwrap();
        let s = again(data, model, &backend).await;
        let frames = decide(&s, &shown[0], decision).await;
        let plan = kept(&s, &frames).await;
        assert_eq!((&plan["status"], states(&plan)), (&json!("failed"), vec!["failed", "failed", "skipped"]));
        assert_eq!(of_event(&frames, "plan_finished")[0]["plan"]["status"], "failed");
        assert_eq!((writes(&backend), get(&s, "/v1/agent/approvals").await["items"].clone()), (Vec::new(), json!([])));
        assert_eq!(s.model.requests().len(), 2, "the model goes on");
    }
}

#[tokio::test]
async fn a_call_that_has_changed_stays_with_its_plan_on_a_wire_whose_plans_do_not_wait() {
    let (s, backend) = desk([plans(&json!([erase("t1")])), says("Done.")]).await;
    let frames = told(&s.app, "Go").await;
    let shown = shown_of(&frames)[0].clone();
    let Scripted { app, model } = s;
    let data = app.stop().await;
    let tools = data.path().join("config/tools/more.toml");
    let text = std::fs::read_to_string(&tools).unwrap();
    std::fs::write(&tools, text.replace("Erases.", "Erases all of it.")).unwrap();
    let s = again(data, model, &backend).await;
    let pressed = json!({"approval_id": shown["approval_id"], "digest": shown["digest"]});
    let body = json!({"message": "Approve", "context": {"current_page": "mine"}, "interaction_type": "action_executed",
        "action_metadata": {"action_identifier": "approve_call", "action_data": pressed}});
    let events = post(&s, "/api/chat/stream", &body).await;
    assert_eq!((writes(&backend), s.model.requests().len()), (Vec::new(), 1), "{events:#?}");
    let waits = get(&s, "/v1/agent/approvals").await["items"][0].clone();
    assert_eq!(waits["origin"], shown["origin"], "{events:#?}");
    assert_ne!(waits["digest"], shown["digest"]);
    decide(&s, &waits, "approve").await;
    assert_eq!(
        (writes(&backend), read(&s)["status"].clone()),
        (vec!["DELETE /api/things/t1".to_owned()], json!("executed"))
    );
}

#[tokio::test]
async fn a_plan_of_a_run_that_is_continued_without_a_body_waits_too() {
    let (s, _backend) = desk([turn().text("Half a").breaks(), plans(&json!([erase("t1")]))]).await;
    let first = s.app.post(&json!({"message": "Go", "context_type": "mine"})).await;
    let run = first.headers()["x-run-id"].to_str().unwrap().to_owned();
    first.text().await.unwrap();
    let url = s.app.url(&format!("/v1/agent/runs/{run}/continue"));
    let second = s.app.http.post(url).bearer_auth(&s.app.token).send().await.unwrap();
    let frames = frames::parse(&second.text().await.unwrap());
    assert_eq!((of_event(&frames, "plan_paused").len(), shown_of(&frames).len()), (1, 1), "{frames:#?}");
}
