//! Calls that become tasks: a client comes back for the result, here or at another replica.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::approvals::approves;
use super::{call, error, forms, post, request, result, result_as, tasks, text};
use crate::approvals::World;
use crate::openai::{playing, with};
use crate::support::app::TestApp;
use crate::support::model::{calls, says, turn};
use crate::support::tickets::writes;
use crate::support::wait::eventually;

fn ask(tool: &str) -> Value {
    call(tool, json!({"message": "Close 7"}), tasks())
}

pub fn about(method: &str, task: &Value) -> Value {
    request(method, json!({"taskId": task["taskId"]}), tasks())
}

pub async fn until(app: &TestApp, task: &Value, status: &str) -> Value {
    eventually(status, async || {
        let now = result(app, &about("tasks/get", task)).await;
        (now["status"] == status).then_some(now)
    })
    .await
}

#[tokio::test]
async fn a_task_is_there_at_once_and_its_result_later_also_after_a_restart() {
    let s = playing([says("Done.")]).await;
    let task = result(&s.app, &ask("ask_workflow")).await;
    assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")), "{task}");
    assert!(task["ttlMs"].is_null() && task["pollIntervalMs"].is_u64() && task["createdAt"].is_string());
    let done = until(&s.app, &task, "completed").await;
    assert_eq!(
        (text(&done["result"]), &done["result"]["structuredContent"]["state"]),
        ("Done.".to_owned(), &json!("completed"))
    );
    let bob = s.app.token_of("bob", None, &["USER"]);
    let (status, error) = error(post(&s.app, &bob, "/mcp", &about("tasks/get", &task)).await).await;
    assert_eq!((status, &error["code"]), (200, &json!(-32602)), "another user's");
    let crate::support::model::Scripted { app, model: _model } = s;
    let app = TestApp::start_in(app.stop().await, &[]).await;
    let again = result_as(&app, &app.token, &about("tasks/get", &task)).await;
    assert_eq!((&again["status"], text(&again["result"])), (&json!("completed"), "Done.".to_owned()));
}

#[tokio::test]
async fn a_task_is_cancelled() {
    let s = playing([turn().text("Slowly").hangs()]).await;
    let task = result(&s.app, &ask("ask_workflow")).await;
    assert_eq!(result(&s.app, &about("tasks/get", &task)).await["status"], "working");
    eventually("the model is asked", async || (s.model.requests().len() == 1).then_some(())).await;
    assert_eq!(result(&s.app, &about("tasks/cancel", &task)).await["resultType"], "complete");
    until(&s.app, &task, "cancelled").await;
    s.model.clients_gone(1).await;
}

#[tokio::test]
async fn a_task_asks_its_user_and_goes_on() {
    let w = World::playing([calls("c1", "close_ticket", &json!({"id": 7})), says("Closed.")]).await;
    let task = result(&w.s.app, &ask("ask_tickets")).await;
    let waits = until(&w.s.app, &task, "input_required").await;
    let key = waits["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let mut update = about("tasks/update", &task);
    update["params"]["inputResponses"] = json!({key: approves()});
    let bob = w.s.app.token_of("bob", None, &["USER"]);
    assert_eq!(error(post(&w.s.app, &bob, "/mcp", &update).await).await.1["code"], -32602);
    assert_eq!(writes(&w.backend), [""; 0]);
    assert_eq!(result(&w.s.app, &update).await["resultType"], "complete");
    let done = until(&w.s.app, &task, "completed").await;
    assert_eq!((text(&done["result"]), &done["taskId"]), ("Closed.".to_owned(), &task["taskId"]));
    assert_eq!(writes(&w.backend).len(), 1);
}

#[tokio::test]
async fn a_task_with_a_schema_keeps_it_behind_decisions_and_restarts() {
    let close = |id: &str, ticket: u32| calls(id, "close_ticket", &json!({"id": ticket}));
    // What is no such object is asked for once more: the form counts.
    let turns = [close("c1", 7), close("c2", 8), says("Both are closed."), says(r#"{"closed": [7, 8]}"#)];
    let mut w = World::playing(turns).await;
    let schema = json!({"type": "object", "properties": {"closed": {"type": "array"}}, "required": ["closed"]});
    let asked = call("ask_tickets", json!({"message": "Close 7 and 8", "answer_schema": schema}), tasks());
    let task = result(&w.s.app, &asked).await;
    for closed in [1, 2] {
        let waits = until(&w.s.app, &task, "input_required").await;
        let key = waits["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        w = w.restarted(async |_| {}).await;
        let mut update = about("tasks/update", &task);
        update["params"]["inputResponses"] = json!({key: approves()});
        assert_eq!(result(&w.s.app, &update).await["resultType"], "complete");
        eventually("the call is made", async || (writes(&w.backend).len() == closed).then_some(())).await;
    }
    let done = until(&w.s.app, &task, "completed").await;
    let answer = &done["result"]["structuredContent"];
    assert_eq!((&answer["state"], &answer["data"]), (&json!("completed"), &json!({"closed": [7, 8]})), "{done}");
    assert_eq!(w.s.model.requests().len(), 4);
}

/// The path of a task's conversation, by the native protocol.
async fn conversation(w: &World, task: &Value) -> Value {
    let (status, run) = w.get_as(&w.s.app.token, &format!("/v1/agent/runs/{}", task["taskId"].as_str().unwrap())).await;
    assert_eq!(status, 200, "{run}");
    run["conversation_id"].clone()
}

#[tokio::test]
async fn a_task_tells_nothing_of_what_else_is_asked_in_its_conversation() {
    let closing = calls("c1", "close_ticket", &json!({"id": 7}));
    let w = World::playing([closing, says("Closed."), says("Something else.")]).await;
    let task = result(&w.s.app, &ask("ask_tickets")).await;
    until(&w.s.app, &task, "input_required").await;
    let waiting = w.waiting(&w.s.app.token).await;
    let [waits] = &waiting[..] else { panic!("one call waits") };
    let decided = w.decide_as(&w.s.app.token, waits, &json!({"decision": "approve"})).await;
    assert_eq!(decided.status(), 200);
    decided.text().await.unwrap();
    let arguments = json!({"message": "And now?", "conversation_id": conversation(&w, &task).await});
    let other = result(&w.s.app, &call("ask_tickets", arguments, forms())).await;
    assert_eq!(text(&other), "Something else.");
    let done = until(&w.s.app, &task, "completed").await;
    assert_eq!(text(&done["result"]), "Closed.");
}

#[tokio::test]
async fn a_task_that_waits_is_cancelled_and_its_call_turned_down() {
    let w = World::playing([calls("c1", "close_ticket", &json!({"id": 7})), says("Never said.")]).await;
    let task = result(&w.s.app, &ask("ask_tickets")).await;
    until(&w.s.app, &task, "input_required").await;
    assert_eq!(result(&w.s.app, &about("tasks/cancel", &task)).await["resultType"], "complete");
    let ended = until(&w.s.app, &task, "cancelled").await;
    assert_eq!(ended["taskId"], task["taskId"]);
    assert_eq!(w.waiting(&w.s.app.token).await.len(), 0);
    assert_eq!((writes(&w.backend), w.s.model.requests().len()), (vec![], 1));
}

#[tokio::test]
async fn a_task_with_two_calls_that_wait_asks_for_both_and_goes_on_behind_both() {
    let both =
        turn().call("c1", "close_ticket", &json!({"id": 7})).call("c2", "close_ticket", &json!({"id": 8})).done();
    let w = World::playing([both, says("Closed."), says("Closed.")]).await;
    let task = result(&w.s.app, &ask("ask_tickets")).await;
    let waits = until(&w.s.app, &task, "input_required").await;
    let keys: Vec<String> = waits["inputRequests"].as_object().unwrap().keys().cloned().collect();
    let [one, two] = &keys[..] else { panic!("{waits}") };
    let mut update = about("tasks/update", &task);
    update["params"]["inputResponses"] = json!({one: approves()});
    result(&w.s.app, &update).await;
    let waits = until(&w.s.app, &task, "input_required").await;
    let left: Vec<&String> = waits["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(left, [two], "{waits}");
    update["params"]["inputResponses"] = json!({two: approves()});
    result(&w.s.app, &update).await;
    let done = until(&w.s.app, &task, "completed").await;
    assert_eq!((text(&done["result"]), writes(&w.backend).len()), ("Closed.".to_owned(), 2), "{done}");
}

#[tokio::test]
async fn a_task_whose_call_a_role_lets_through_says_so_and_goes_on_when_it_has() {
    let w = World::playing([calls("c1", "refund", &json!({"amount": 5})), says("Paid.")]).await;
    let (ada, chief) = (w.s.app.token.clone(), w.s.app.token_of("zoe", None, &["chief"]));
    let task = result(&w.s.app, &ask("ask_tickets")).await;
    let waits = eventually("it waits", async || {
        let now = result(&w.s.app, &about("tasks/get", &task)).await;
        now["statusMessage"].is_string().then_some(now)
    })
    .await;
    assert_eq!(waits["status"], "working", "its own user is not asked: {waits}");
    assert!(waits["statusMessage"].as_str().unwrap().contains("chief"), "{waits}");
    let waiting = w.waiting(&chief).await;
    let [approval] = &waiting[..] else { panic!("one call waits") };
    let mut update = about("tasks/update", &task);
    update["params"]["inputResponses"] = json!({approval: approves()});
    let (status, refused) = error(post(&w.s.app, &ada, "/mcp", &update).await).await;
    assert_eq!((status, &refused["code"]), (200, &json!(-32602)), "{refused}");
    let approve = json!({"decision": "approve"});
    assert_eq!(w.decide_as(&chief, approval, &approve).await.status(), 200);
    assert_eq!(writes(&w.backend), [""; 0], "a grant makes no call");
    w.decide_as(&ada, approval, &approve).await.text().await.unwrap();
    let done = until(&w.s.app, &task, "completed").await;
    assert_eq!((text(&done["result"]), writes(&w.backend).len()), ("Paid.".to_owned(), 1));
}

#[tokio::test]
async fn another_user_cancels_no_task() {
    let gate = Arc::new(Notify::new());
    let s = with(&[], &[], [turn().text("Half").answer().gated(&gate, says(" done.").bytes())]).await;
    let task = result(&s.app, &ask("ask_workflow")).await;
    let bob = s.app.token_of("bob", None, &["USER"]);
    for asked in [about("tasks/cancel", &task), about("tasks/update", &task)] {
        let (status, refused) = error(post(&s.app, &bob, "/mcp", &asked).await).await;
        assert_eq!((status, &refused["code"]), (200, &json!(-32602)), "{refused}");
    }
    gate.notify_one();
    until(&s.app, &task, "completed").await;
}
