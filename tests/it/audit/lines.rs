//! Each kind of line, and that it stays.

use serde_json::{Value, json};

use super::{READABLE, record, told};
use crate::approvals::{World, approve, id, reject};
use crate::support::app::{ADA, TestApp};
use crate::support::frames::data;
use crate::support::model::{calls, says};
use crate::support::upstream::{Answer, Upstream};

const ZOE: &str = "22222222-2222-4222-8222-222222222222";

#[tokio::test]
async fn each_step_of_a_write_that_somebody_let_through_is_a_line_which_outlives_its_conversation() {
    let turns = [calls("c1", "refund", &json!({"amount": 12.5})), says("Paid.")];
    let w = World::playing(turns).await.with(&[READABLE]).await;
    let shown = w.held("Refund it").await;
    let chief = w.s.app.token_of(ZOE, None, &["chief"]);
    assert_eq!(w.decide_as(&chief, id(&shown), &approve()).await.status(), 200);
    w.decide(&shown, &approve()).await;

    let lines = record(&w.s.app, None).await;
    let fields = ["act", "actor", "user", "conversation_id", "tool", "subject", "outcome"];
    let expected = [
        json!(["approval.granted", ZOE, ADA, "c", "refund", id(&shown), null]),
        json!(["approval.approved", ADA, ADA, "c", "refund", id(&shown), null]),
        json!(["write.dispatched", ADA, ADA, "c", "refund", null, null]),
        json!(["write.ended", ADA, ADA, "c", "refund", null, "done"]),
    ];
    assert_eq!(told(&lines, &fields), expected);
    assert_eq!(lines[2]["call_id"], lines[3]["call_id"], "one call");
    assert_eq!(lines[2]["run_id"], lines[3]["run_id"], "one run");
    let digests: Vec<&str> = lines[..3].iter().map(|line| line["arguments_digest"].as_str().unwrap()).collect();
    assert!(digests.iter().all(|digest| digest.len() == 64), "{digests:?}");

    let url = w.s.app.url("/v1/agent/conversations/c");
    assert_eq!(w.s.app.http.delete(url).bearer_auth(&w.s.app.token).send().await.unwrap().status(), 204);
    let after = record(&w.s.app, None).await;
    assert_eq!(after, lines, "it is gone, and its lines are not");
    assert!(!Value::from(after).to_string().contains("12.5"), "no content");
}

#[tokio::test]
async fn what_is_turned_down_and_what_fails_is_told() {
    let turns = [
        calls("c1", "close_ticket", &json!({"id": 7})).answer(),
        says("I see.").answer(),
        calls("c2", "note", &json!({"text": "x"})).answer(),
        says("It failed.").answer(),
    ];
    let backend = Upstream::choosing(|_| Some(Answer::status(400, "application/json", r#"{"error":"no"}"#))).await;
    let w = World { backend, ..World::answering(turns).await }.with(&[READABLE]).await;
    let shown = w.held("Close it").await;
    w.decide(&shown, &reject()).await;
    w.say("Note it").await;
    let expected = [
        json!(["approval.rejected", "close_ticket", null]),
        json!(["write.dispatched", "note", null]),
        json!(["write.ended", "note", "failed"]),
    ];
    assert_eq!(told(&record(&w.s.app, None).await, &["act", "tool", "outcome"]), expected);
}

#[tokio::test]
async fn a_run_without_writes_writes_nothing() {
    let turns = [calls("c1", "get_ticket", &json!({"id": 7})), says("It is open.")];
    let w = World::playing(turns).await.with(&[READABLE]).await;
    w.say("How is it?").await;
    assert_eq!(record(&w.s.app, None).await, [Value::Null; 0]);
}

#[tokio::test]
async fn what_is_previewed_saved_and_turned_down_is_told() {
    let app = TestApp::start(&[READABLE]).await;
    let mut previews = Vec::new();
    for conversation in ["one", "two"] {
        let frames = app.say(conversation, "Create a workflow that alerts when stock is low").await;
        previews.push(data(&frames, "workflow_preview")["preview_id"].as_str().unwrap().to_owned());
    }
    for (preview, decision) in previews.iter().zip(["accept", "reject"]) {
        let url = app.url(&format!("/v1/agent/previews/{preview}/decision"));
        let decided = app.http.post(url).bearer_auth(&app.token).json(&json!({"decision": decision})).send().await;
        assert_eq!(decided.unwrap().status(), 200);
    }
    let lines = record(&app, None).await;
    let of = |preview: &str| -> Vec<Value> {
        let own: Vec<Value> = lines.iter().filter(|line| line["subject"] == json!(preview)).cloned().collect();
        told(&own, &["act", "user", "conversation_id", "outcome"])
    };
    let made = |conversation: &str| json!(["preview.made", ADA, conversation, null]);
    assert_eq!(of(&previews[0])[0], made("one"));
    assert_eq!(of(&previews[0]).last(), Some(&json!(["preview.ended", ADA, "one", "done"])));
    assert_eq!(of(&previews[1]), [made("two"), json!(["preview.rejected", ADA, "two", null])]);
}
