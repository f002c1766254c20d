//! What waits for a decision, in a browser: every case is a function of `tests/peers/frontends/decisions.mjs`.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::approvals::{World, approve};
use crate::support::app::TestApp;
use crate::support::model::{Scripted, calls, says, turn};

const ZOE: &str = "22222222-2222-4222-8222-222222222222";

async fn visit(case: &str, app: &TestApp, gate: &Notify) -> Option<Value> {
    super::visit("decisions.mjs", case, app, gate).await
}

#[tokio::test]
async fn a_second_call_of_a_turn_is_approved_while_the_run_behind_the_first_waits() {
    let close = |id: u32| json!({ "id": id });
    let both = turn().call("c1", "close_ticket", &close(1)).call("c2", "close_ticket", &close(2)).done();
    // Longer than any test takes.
    let w = World::playing([both, says("Both are closed.")]).await.with(&[("RUNS__DECISIONS_S", "600")]).await;
    let Some(seen) = visit("together", &w.s.app, &Notify::new()).await else { return };
    let states = ["accepted", "accepted"];
    let calls = ["approved", "approved", "done", "done"];
    let expected = json!({"states": states, "calls": [calls, calls], "last": true, "waits": false, "wrong": []});
    assert_eq!(seen, expected, "each call, and what was made of it");
    assert_eq!(w.writes(), ["POST /v1/tickets/1/close {}", "POST /v1/tickets/2/close {}"]);
    assert_eq!(w.s.asked().len(), 2, "one answer to both");
}

#[tokio::test]
async fn a_call_still_waits_where_another_answer_is_written() {
    let gate = Arc::new(Notify::new());
    let closes = calls("c1", "close_ticket", &json!({"id": 1})).answer();
    let slow = turn().text("Once").answer().gated(&gate, says(" upon a time").bytes());
    let w = World::answering([closes, slow]).await;
    let Some(seen) = visit("refused", &w.s.app, &gate).await else { return };
    assert_eq!(seen, json!({"state": "waiting", "wrong": []}));
    assert_eq!(w.writes(), [""; 0]);
}

#[tokio::test]
async fn a_change_that_was_decided_has_no_buttons_when_its_run_is_read_again() {
    let gate = Arc::new(Notify::new());
    let wait = json!({"name": "Wait", "action_type": "delay", "action_config": {"duration": "30m"}, "is_active": true});
    let workflow = json!({"name": "W", "is_active": true, "entity": "sales.orders", "trigger_type": "on_create", "actions": [wait]});
    let proposes = calls("c1", "preview_workflow", &json!({"workflow": workflow, "description": "d"})).answer();
    let slow = turn().text("Once").answer().gated(&gate, says(" upon a time").bytes());
    let s = Scripted::with(&[], [proposes, slow]).await;
    let Some(seen) = visit("again", &s.app, &gate).await else { return };
    let expected = json!([[["waiting", true, ""]], 1, [["ended", false, "It does not wait any more."]]]);
    assert_eq!(seen, json!({"seen": expected, "wrong": []}));
}

#[tokio::test]
async fn who_asked_is_told_that_somebody_with_the_role_has_approved() {
    let w = World::playing([calls("c1", "refund", &json!({"amount": 12.5})), says("Paid.")]).await;
    let gate = Notify::new();
    let granting = async {
        gate.notified().await;
        let chief = w.s.app.token_of(ZOE, None, &["chief"]);
        let id = w.waiting(&chief).await.remove(0);
        assert_eq!(w.decide_as(&chief, &id, &approve()).await.status(), 200);
        std::future::pending::<()>().await;
    };
    let seen = tokio::select! {
        seen = visit("granted", &w.s.app, &gate) => seen,
        () = granting => unreachable!("it never ends"),
    };
    let Some(seen) = seen else { return };
    let granted = "Somebody with the role “chief” has approved this. The call is made when you approve it, too.";
    let notes = ["Somebody with the role “chief” has to approve this.", granted, granted];
    assert_eq!(seen, json!({"notes": notes, "isListed": true, "last": true, "wrong": []}));
    assert_eq!(w.writes(), [r#"POST /v1/refunds {"amount":12.5}"#]);
}

#[tokio::test]
async fn what_came_of_a_call_that_was_decided_elsewhere_is_read() {
    let w = World::playing([calls("c1", "close_ticket", &json!({"id": 1})), says("It is closed.")]).await;
    let gate = Notify::new();
    let approving = async {
        gate.notified().await;
        let id = w.waiting(&w.s.app.token).await.remove(0);
        let response = w.decide_as(&w.s.app.token, &id, &approve()).await;
        // Whoever goes away stops the run.
        assert!(response.text().await.unwrap().contains("It is closed."));
        std::future::pending::<()>().await;
    };
    let seen = tokio::select! {
        seen = visit("elsewhere", &w.s.app, &gate) => seen,
        () = approving => unreachable!("it never ends"),
    };
    let Some(seen) = seen else { return };
    assert_eq!(seen, json!({"calls": ["approved", "done"], "forms": 0, "last": true, "wrong": []}));
    assert_eq!(w.writes(), ["POST /v1/tickets/1/close {}"]);
}
