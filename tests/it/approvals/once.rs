//! A decision is taken once, however often and by however many it is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{World, approve, assert_made, body, id, problem, reject};
use crate::support::frames;
use crate::support::model::{Script, Scripted, calls, says, turn};
use crate::support::tickets::{PROFILE, started, write};
use crate::support::upstream::{Answer, Upstream};

fn closing() -> Script {
    calls("c1", "close_ticket", &json!({"id": 7}))
}

const CLOSED: &str = "POST /v1/tickets/7/close {}";

#[tokio::test]
async fn of_many_decisions_at_once_one_is_taken() {
    let w = World::playing([closing(), says("Closed.")]).await;
    let shown = w.held("Close 7").await;
    let decision = json!({"decision": "approve", "on_busy": "enqueue"});
    let tries = join_all((0..6).map(|_| w.decide_as(&w.s.app.token, id(&shown), &decision))).await;
    let mut taken = 0;
    for response in tries {
        match response.status().as_u16() {
            200 => {
                assert_made(&frames::parse(&response.text().await.unwrap()), true);
                taken += 1;
            }
            _ => assert_eq!(problem(response).await, (409, "already_decided".to_owned())),
        }
    }
    assert_eq!(taken, 1);
    assert_eq!(w.writes(), [CLOSED]);
}

#[tokio::test]
async fn a_decision_stands() {
    let w = World::playing([closing(), says("Closed."), closing(), says("Not closed.")]).await;
    let first = w.held("Close 7").await;
    w.decide(&first, &approve()).await;
    let second = w.held("Close 7 again").await;
    w.decide(&second, &reject()).await;
    for shown in [&first, &second] {
        for decision in [approve(), reject()] {
            let late = w.decide_as(&w.s.app.token, id(shown), &decision).await;
            assert_eq!(problem(late).await, (409, "already_decided".to_owned()));
        }
    }
    assert_eq!(w.writes(), [CLOSED]);
}

#[tokio::test]
async fn a_request_that_is_sent_again_finds_its_run() {
    let w = World::playing([closing(), says("Closed.")]).await;
    let shown = w.held("Close 7").await;
    let app = &w.s.app;
    let send = async |decision: Value| {
        let request = app.http.post(app.url(&format!("/v1/agent/approvals/{}", id(&shown)))).bearer_auth(&app.token);
        let response = request.header("idempotency-key", "k1").json(&decision).send().await.unwrap();
        let run = response.headers().get("x-run-id").map(|run| run.to_str().unwrap().to_owned());
        (response.status().as_u16(), run, response.text().await.unwrap())
    };
    let first = send(approve()).await;
    assert_made(&frames::parse(&first.2), true);
    assert_eq!(send(approve()).await, first);
    assert_eq!(send(reject()).await.0, 422, "the key was used for another request");
    assert_eq!(w.writes(), [CLOSED]);
}

#[tokio::test]
async fn a_decision_that_is_cancelled_before_its_call_can_be_taken_again() {
    let gate = Arc::new(Notify::new());
    let slow = turn().text("Well").answer().gated(&gate, says(".").bytes());
    let w = World::answering([closing().answer(), slow, says("Closed.").answer()]).await;
    let shown = w.held("Close 7").await;
    let mut other = body("Anything else?");
    other["background"] = json!(true);
    let mut other = w.s.app.post(&other).await;
    frames::read_until(&mut other, "Well").await;
    let queued = w.decide_as(&w.s.app.token, id(&shown), &json!({"decision": "approve", "on_busy": "enqueue"})).await;
    assert_eq!(w.waiting(&w.s.app.token).await, [""; 0]);
    let run = queued.headers()["x-run-id"].to_str().unwrap().to_owned();
    let app = &w.s.app;
    let cancel = app.http.post(app.url(&format!("/v1/agent/runs/{run}/cancel"))).bearer_auth(&app.token);
    assert_eq!(cancel.send().await.unwrap().status(), 200);
    queued.text().await.unwrap();
    assert_eq!(w.waiting(&w.s.app.token).await, [id(&shown)]);
    assert_eq!(w.writes(), [""; 0]);
    gate.notify_one();
    other.text().await.unwrap();
    assert_made(&w.decide(&shown, &approve()).await, true);
    assert_eq!(w.writes(), [CLOSED]);
}

#[tokio::test]
async fn a_call_that_was_cancelled_and_let_through_again_has_another_id() {
    let data = tempfile::tempdir().unwrap();
    let tool = r#"
[[tool]]
name = "move_ticket"
description = "Moves a ticket."
approval = "user"
input_schema = { type = "object", properties = { board = { type = "string" } } }
[tool.request]
method = "POST"
path = "/v1/moves"
[tool.resolve.board]
path = "/v1/boards"
ttl_s = 0
id = "id"
name = "name"
"#;
    write(&data, "tools/tickets.toml", tool);
    write(
        &data,
        "profiles/tickets.toml",
        &PROFILE.replace(r#""close_ticket", "refund", "get_ticket", "note""#, r#""move_ticket""#),
    );
    let moving = turn().call("c1", "move_ticket", &json!({"board": "Done"})).done();
    let model = Upstream::script([moving.answer(), says("Moved.").answer()]).await;
    let (looks, boards) = (AtomicUsize::new(0), r#"[{"id": 7, "name": "Done"}]"#);
    let gate = Arc::new(Notify::new());
    let backend = Upstream::choosing(move |request| match request.method.as_str() {
        // The second time it does not answer, so that the run can be cancelled before the call is made.
        "GET" if looks.fetch_add(1, Ordering::SeqCst) == 1 => {
            Some(Answer::ok("application/json", "").gated(&gate, boards))
        }
        "GET" => Some(Answer::ok("application/json", boards)),
        _ => Some(Answer::ok("application/json", r#"{"ok":true}"#)),
    });
    let backend = backend.await;
    let app = started(data, (&model, &backend.url()), &[]).await;
    let w = World { s: Scripted { app, model }, backend };
    let shown = w.held("Move it").await;
    let mut first = w.decide_as(&w.s.app.token, id(&shown), &approve()).await;
    frames::read_until(&mut first, "tool_call_start").await;
    let url = w.s.app.url(&format!("/v1/agent/runs/{}/cancel", first.headers()["x-run-id"].to_str().unwrap()));
    w.s.app.http.post(url).bearer_auth(&w.s.app.token).send().await.unwrap();
    first.text().await.unwrap();
    assert_eq!((w.waiting(&w.s.app.token).await, w.writes()), (vec![id(&shown).to_owned()], Vec::new()));
    assert_made(&w.decide(&shown, &approve()).await, true);
    assert_eq!(w.writes(), [r#"POST /v1/moves {"board":7}"#]);
    let asked = w.s.last_asked();
    let calls = asked.iter().filter_map(|message| message["tool_calls"].as_array()).flatten();
    let ids: Vec<&str> = calls.map(|call| call["id"].as_str().unwrap()).collect();
    let [_, first, second] = ids[..] else { panic!("{ids:?}") };
    assert_eq!(second, format!("{first}_2"), "one for each call");
    // Whoever reads it again has the call once, as it ended.
    let (status, read) = w.get_as(&w.s.app.token, "/v1/ai-sdk/chat/c").await;
    let parts = read["messages"].as_array().unwrap().iter().filter_map(|message| message["parts"].as_array()).flatten();
    let states: Vec<&str> =
        parts.filter_map(|part| part["state"].as_str().filter(|_| part["toolCallId"].is_string())).collect();
    assert_eq!((status, &states[..]), (200, &["output-available"][..]), "{read}");
}

#[tokio::test]
async fn a_decision_waits_behind_a_run_or_is_kept_for_later() {
    let gate = Arc::new(Notify::new());
    let slow = turn().text("Well").answer().gated(&gate, says(".").bytes());
    let w = World::answering([closing().answer(), slow, says("Closed.").answer()]).await;
    let shown = w.held("Close 7").await;
    let mut other = body("Anything else?");
    other["background"] = json!(true);
    let mut other = w.s.app.post(&other).await;
    frames::read_until(&mut other, "Well").await;

    let busy = w.decide_as(&w.s.app.token, id(&shown), &approve()).await;
    assert_eq!(problem(busy).await, (409, "conversation_busy".to_owned()));
    assert_eq!(w.waiting(&w.s.app.token).await, [id(&shown)], "what did not begin is not decided");
    let queued = w.decide_as(&w.s.app.token, id(&shown), &json!({"decision": "approve", "on_busy": "enqueue"})).await;
    assert_eq!(queued.status(), 200);
    assert_eq!(w.writes(), [""; 0]);
    gate.notify_one();
    assert_made(&frames::parse(&queued.text().await.unwrap()), true);
    assert_eq!(w.writes(), [CLOSED]);
}
