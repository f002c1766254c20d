//! A decision is taken once, however often and by however many it is sent.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{World, approve, assert_made, body, id, problem, reject};
use crate::support::frames;
use crate::support::model::{Script, calls, says, turn};

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
